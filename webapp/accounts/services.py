"""Changes to accounts: keys, guests and roles. Each is one transaction."""

import secrets
import time

from allauth.account.models import EmailAddress
from allauth.core.internal import ratelimit
from django.conf import settings
from django.core.cache import cache
from django.db import transaction
from django.db.models.functions import Now
from django.http import HttpRequest
from django.utils import timezone

from training.errors import BadInput
from webapp.accounts.models import ApiKey, Role, User, digest, new_token
from webapp.core import quotas


class TooManyFailures(Exception):
    """This address has tried too many wrong keys in the last minute."""


@transaction.atomic
def create_key(*, user: User, name: str) -> tuple[ApiKey, str]:
    """Create an API key; the second value is the key itself, which is shown only once.

    Raises `BadInput` once the person has as many keys as their role may have.
    """
    quotas.check(user=user, quota="api_keys", used=ApiKey.objects.live().filter(user=user))
    token = new_token(ApiKey.PREFIX)
    key = ApiKey.objects.create(user=user, name=name, hint=token[:12], digest=digest(token))
    return key, token


@transaction.atomic
def revoke_key(*, key: ApiKey) -> None:
    """Revoke a key; doing it twice changes nothing."""
    ApiKey.objects.filter(pk=key.pk, revoked_at=None).update(revoked_at=Now())


def owner_named(username: str) -> User:
    """Return who owns what a command stores: this person, or the first administrator, who is made if there is none.

    Raises `BadInput` if nobody is called so.
    """
    people = User.objects.filter(username=username) if username else User.objects.filter(role=Role.ADMIN).order_by("pk")
    owner = people.first()
    if owner is None and not username:
        owner = User(username="parley", role=Role.ADMIN)
        owner.set_unusable_password()
        owner.save()
    if owner is None:
        raise BadInput(f"there is no user named {username!r}", "--owner")
    return owner


def user_of_key(*, request: HttpRequest, token: str) -> User | None:
    """Return the owner of a key, or None. Raises `TooManyFailures` once an address has failed too often.

    The address is the connection's own; a forwarding header does not change it.
    """
    limits = {"api_key": settings.API_KEY_FAILURES}
    if _failed_too_often(request, limits):
        raise TooManyFailures("too many wrong API keys from this address: wait a minute")
    key = ApiKey.objects.live().select_related("user").filter(digest=digest(token)).first()
    if key is None:
        ratelimit.consume(request, app="parley", action="api_key", config=limits, limit_get=True)
        return None
    ApiKey.objects.filter(pk=key.pk).update(used_at=Now())
    return key.user


def _failed_too_often(request: HttpRequest, limits: dict[str, str]) -> bool:
    """Whether the address has used up its failures. No lock is taken: right keys must not wait for each other."""
    for rate in ratelimit.get_rates(app="parley", action="api_key", config=limits):
        key = ratelimit.get_cache_key(request, app="parley", action="api_key", rate=rate)
        if not ratelimit.apply_rate(cache.get(key, []), time.time(), rate, dry_run=True)[0]:
            return True
    return False


@transaction.atomic
def create_guest(*, shown_name: str) -> User:
    """A person without password for one seat; sign them in with `django.contrib.auth.login`."""
    guest = User(username=f"guest-{new_token()[:20]}", first_name=shown_name[:60] or "Guest", role=Role.GUEST)
    guest.set_unusable_password()
    guest.save()
    return guest


@transaction.atomic
def set_password(*, user: User, password: str) -> None:
    """Set a person's password. All sessions are signed out; API keys stay valid."""
    user.set_password(password)
    user.save(update_fields=["password"])


@transaction.atomic
def set_role(*, user: User, role: Role, active: bool) -> None:
    """Change what a person may do; an inactive person cannot sign in.

    Raises `BadInput` if no administrator would be left who can.
    """
    admins = User.objects.select_for_update().filter(role=Role.ADMIN, is_active=True).order_by("pk")
    if [admin.pk for admin in admins] == [user.pk] and not (active and role == Role.ADMIN):
        raise BadInput("this is the last administrator: make another person an administrator first", user.username)
    User.objects.filter(pk=user.pk).update(role=role, is_active=active)


@transaction.atomic
def anonymise(*, user: User) -> None:
    """Delete what an account says of its person: the row stays under a random name, and nobody can sign in as it.

    Raises `BadInput` for the last administrator who can sign in.
    """
    set_role(user=user, role=Role(user.role), active=False)
    ApiKey.objects.filter(user=user).delete()
    EmailAddress.objects.filter(user=user).delete()
    user.refresh_from_db()
    user.username, user.skeleton = f"former-{secrets.token_hex(8)}", ""
    user.first_name = user.last_name = user.email = ""
    user.last_login, user.deleted_at = None, timezone.now()
    user.set_unusable_password()  # a new hash: every session ends
    user.save()


@transaction.atomic
def send_confirmation(*, user: User, request: HttpRequest) -> None:
    """Send a link to the address of an account, by which its owner confirms it.

    Raises `BadInput` if the account has no address, the site sends no email, or the hourly quota is used up.
    """
    if not user.email or not settings.MAIL_READY:
        raise BadInput("there is no address to which this site could send email", "email")
    quotas.spend(user=user, quota="alert_tests_per_hour")
    address, _ = EmailAddress.objects.get_or_create(user=user, email=user.email.lower())
    address.send_confirmation(request)
