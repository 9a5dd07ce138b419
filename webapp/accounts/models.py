"""People with one role each, and their API keys, of which only a hash is stored."""

import hashlib
import secrets
from typing import Any, ClassVar

from django.contrib.auth.models import AbstractUser, UserManager
from django.db import models
from django.db.models.functions import Now

from training.errors import BadInput
from webapp.accounts.names import skeleton

FORMER = "a former player"
"""How a person is named whose account was deleted."""


class Role(models.TextChoices):
    """What a person may do. A guest is a person without a password, let in by a link to one seat."""

    PLAYER = "player"
    ANNOTATOR = "annotator"
    RESEARCHER = "researcher"
    ADMIN = "admin"
    GUEST = "guest"


class People(UserManager["User"]):
    """Makes people; `manage.py createsuperuser` makes an administrator."""

    use_in_migrations = False

    def members(self) -> "models.QuerySet[User]":
        """Return all people with an account."""
        return self.exclude(role=Role.GUEST).filter(deleted_at=None)

    def create_superuser(
        self, username: str, email: str | None = None, password: str | None = None, **fields: Any
    ) -> "User":
        """Return a new administrator: roles decide here what somebody may do, Django's own flags decide nothing.

        Raises `BadInput` if the name looks like that of another account.
        """
        if self.filter(skeleton=skeleton(username)).exists():
            raise BadInput(f"{username!r} looks like the name of another account: choose another", "username")
        return super().create_superuser(username, email, password, **{"role": Role.ADMIN, **fields})


class User(AbstractUser):
    """A person (or a guest) with one role.

    The row of a deleted account stays under a random name, so that games and judgments of others stay whole.
    """

    role = models.CharField(max_length=12, choices=Role.choices, default=Role.PLAYER)

    member_since = models.DateTimeField(
        null=True, default=None, editable=False, help_text="When a guest made an account; empty for everybody else."
    )
    deleted_at = models.DateTimeField(
        null=True, default=None, editable=False, help_text="When the account was deleted: nothing personal is left."
    )
    skeleton = models.CharField(max_length=300, null=True, default=None, editable=False, unique=True)  # noqa: DJ001
    """A key that is equal for names that look alike; None for accounts whose lookalike is older than the constraint."""

    objects: ClassVar[People] = People()

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Store the row, and what its name looks like."""
        if self._state.adding or self.skeleton is not None:
            self.skeleton = skeleton(self.username)
        super().save(*args, **kwargs)

    @property
    def is_admin(self) -> bool:
        """May change everything."""
        return self.role == Role.ADMIN

    @property
    def is_researcher(self) -> bool:
        """Sees all datasets, runs, checkpoints and judgments, and changes their own (an admin: all)."""
        return self.role in {Role.RESEARCHER, Role.ADMIN}

    @property
    def is_annotator(self) -> bool:
        """Labels what judgment queues assign (researchers may, too)."""
        return self.role in {Role.ANNOTATOR, Role.RESEARCHER, Role.ADMIN}

    @property
    def is_guest(self) -> bool:
        """Was let in by a link, to one seat of one match."""
        return self.role == Role.GUEST

    @property
    def shown_name(self) -> str:
        """The name that others at a table see. A guest may choose any, so it is marked as no username can be."""
        if self.deleted_at is not None:
            return FORMER
        return f"{self.first_name} (guest)" if self.is_guest else self.username

    def may_change(self, owner_id: int | None) -> bool:
        """Whether this user may change objects of that owner: researchers their own, admins all."""
        return self.is_admin or (self.is_researcher and owner_id == self.pk)


def digest(token: str) -> str:
    """The stored form of a random token (a key or a link): its SHA-256. Tokens have 256 random bits, so no salt."""
    return hashlib.sha256(token.encode()).hexdigest()


def new_token(prefix: str = "") -> str:
    """A random token of 256 bits, safe in addresses."""
    return prefix + secrets.token_urlsafe(32)


class ApiKeyQuerySet(models.QuerySet["ApiKey"]):
    """Reads of API keys."""

    def live(self) -> "ApiKeyQuerySet":
        """Keys that are valid."""
        return self.filter(revoked_at=None, user__is_active=True)


class ApiKey(models.Model):
    """A key for the REST API; it acts as its person. Shown once, stored as a hash."""

    PREFIX: ClassVar[str] = "parley_"

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_keys")
    name = models.CharField(max_length=80)
    hint = models.CharField(max_length=16)
    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(db_default=Now())
    used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    objects = ApiKeyQuerySet.as_manager()

    def __str__(self) -> str:
        return f"{self.name} ({self.hint}…)"
