"""Reads and writes of a person's choices. What is stored was checked by its class, and is checked again when read."""

from __future__ import annotations

from typing import Annotated, ClassVar, Self

from django.db import transaction
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from training.errors import BadInput
from webapp.accounts.models import User
from webapp.core.http import unstorable
from webapp.runs.preferences.models import Preference

Name = Annotated[str, Field(min_length=1, max_length=200)]
Names = Annotated[tuple[Name, ...], Field(max_length=500)]
LONGEST = 120_000
"""Characters of the JSON text of one kind of choices."""


class Choices(BaseModel):
    """Base of a kind of choices; `key` is its name in the database."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    key: ClassVar[str]

    @classmethod
    def of(cls, user: User) -> Self:
        """What this person has chosen; the defaults if nothing, or if what is stored is no longer valid."""
        stored = Preference.objects.filter(user=user, name=cls.key).values_list("value", flat=True).first()
        try:
            return cls() if stored is None else cls.model_validate(stored)
        except ValidationError:
            return cls()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read choices from JSON text; raises `BadInput`."""
        if len(text) > LONGEST:
            raise BadInput(f"more than {LONGEST} characters", cls.key)
        try:
            choices = cls.model_validate_json(text)
        except ValidationError as error:
            first = error.errors()[0]
            raise BadInput(first["msg"], ".".join(str(part) for part in first["loc"]) or cls.key) from error
        if bad := unstorable(choices.model_dump(mode="json")):
            raise BadInput("it has characters that cannot be stored", bad)
        return choices


class ChartChoices(Choices):
    """How curves are drawn: the weight of the moving average, and by metric order, absence and logarithmic axes."""

    key = "charts"
    smoothing: float = Field(default=0.0, ge=0.0, le=0.99)
    mean: bool = True
    order: Names = ()
    hidden: Names = ()
    log_x: Names = ()
    log_y: Names = ()


@transaction.atomic
def choose(*, user: User, choices: Choices) -> None:
    """Store what a person has chosen."""
    value = choices.model_dump(mode="json")
    Preference.objects.update_or_create(user=user, name=choices.key, defaults={"value": value})


@transaction.atomic
def reset(*, user: User, kind: type[Choices]) -> None:
    """Return a person to the defaults of a kind of choices."""
    Preference.objects.filter(user=user, name=kind.key).delete()
