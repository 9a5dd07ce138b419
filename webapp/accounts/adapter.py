"""Adapter of allauth's sign-in and sign-up: failures are counted so that nobody can lock out somebody else.

A stranger's failures count for the address, for the address and the account together, and, in a number that only
many addresses reach, for the account. A device on which the person has signed in before counts its own failures only,
so that it gets in while the account is attacked. Names that look like others are refused at sign-up.
"""

from __future__ import annotations

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.internal.userkit import filter_users_by_email, get_user_by_username
from allauth.core.internal import ratelimit
from django import forms
from django.conf import settings
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse

from training.errors import BadInput
from webapp.accounts import devices, names
from webapp.accounts.models import Role, User

LOOKS_LIKE_ANOTHER = "This name looks like somebody else's. Choose another."


def is_guest(request: HttpRequest) -> bool:
    """Whether a guest is signed in."""
    return isinstance(request.user, User) and request.user.is_guest


class Adapter(DefaultAccountAdapter):
    """Replaces allauth's throttle of failed tries and its check of new names."""

    def pre_authenticate(self, request: HttpRequest, **credentials: Any) -> None:
        """Count this try; raise `ValidationError` if there were too many. Success takes it back from the failures."""
        user = _account(credentials)
        device = devices.known(request, user) if user is not None else ""
        account = f"account {user.pk}" if user is not None else f"no account {_login(credentials)}"
        if device:
            keys = {"device": f"{account} {device}"}
        else:
            keys = {"tries": "", "address": "", "pair": f"{account} {ratelimit.get_ip(request)}", "account": account}
        counted = ratelimit.RateLimitUsage(usage=[])
        self._login_failed_rl_usage = counted
        for action, key in keys.items():
            usage = ratelimit.consume(request, app="parley", action=action, config=settings.SIGN_IN_LIMITS, key=key)
            if usage is None:
                raise self.validation_error("too_many_login_attempts")
            if action != "tries":
                counted.usage.extend(usage.usage)

    def post_login(self, request: HttpRequest, user: User, **more: Any) -> HttpResponse:
        """Redirect to the requested page, and remember the device."""
        response: HttpResponse = super().post_login(request, user, **more)
        devices.remember(request, response, user)
        return response

    def new_user(self, request: HttpRequest) -> User:
        """Return the account to fill in: a guest's own row, so that their games stay theirs, else a new one."""
        if not is_guest(request):
            user: User = super().new_user(request)
            return user
        guest = User.objects.get(username=request.user.get_username())
        guest.first_name, guest.role, guest.member_since = "", Role.PLAYER, Now()
        return guest

    def clean_username(self, username: str, shallow: bool = False) -> str:
        """Return the name; raise `ValidationError` if it is taken or could be taken for another's."""
        username = super().clean_username(username, shallow)
        try:
            names.check_form(username)
        except BadInput as error:
            raise forms.ValidationError(error.why[:1].upper() + error.why[1:] + ".") from error
        if not shallow and User.objects.filter(skeleton=names.skeleton(username)).exists():
            raise forms.ValidationError(LOOKS_LIKE_ANOTHER)
        return username


def _login(credentials: dict[str, Any]) -> str:
    return str(credentials.get("email") or credentials.get("username") or "").lower()


def _account(credentials: dict[str, Any]) -> User | None:
    """The account of an attempt, by name or mail address, so that both count as one."""
    user = get_user_by_username(credentials["username"]) if credentials.get("username") else None
    if user is None and credentials.get("email"):
        user = next(iter(filter_users_by_email(credentials["email"], prefer_verified=True)), None)
    return user
