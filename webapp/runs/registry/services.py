"""Services for aliases of checkpoints: set, move, remove, and resolve `checkpoint:ID` and `checkpoint:ALIAS`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from training.config import RunConfig, parse
from training.errors import BadInput
from webapp.accounts.models import User
from webapp.runs.models import Checkpoint
from webapp.runs.registry.models import Alias, AliasMove

NAME = re.compile(r"[a-z][a-z0-9._-]{0,39}")
PREFIX = "checkpoint:"
REFERENCE = re.compile(r"checkpoint:[A-Za-z0-9._-]{1,40}")
COMMON = ("best", "table")
"""Aliases that are offered: the strongest checkpoint, and the one for people at the table."""


@transaction.atomic
def set_alias(*, name: str, checkpoint: Checkpoint, by: User) -> None:
    """Let a name stand for a checkpoint, from now on instead of another; raises `BadInput` for an unfit name."""
    if not NAME.fullmatch(name):
        raise BadInput("a small letter, then at most 39 small letters, digits, dots, dashes or underscores", "alias")
    alias = Alias.objects.select_for_update(of=("self",)).select_related("checkpoint").filter(name=name).first()
    if alias is not None and alias.checkpoint_id == checkpoint.pk:
        return
    before = "" if alias is None else alias.checkpoint.name
    Alias.objects.update_or_create(name=name, defaults={"checkpoint": checkpoint})
    AliasMove.objects.create(name=name, before=before, after=checkpoint.name, by=by)


@transaction.atomic
def remove_alias(*, alias: Alias, by: User) -> None:
    """Take a name away; its checkpoint stays."""
    AliasMove.objects.create(name=alias.name, before=alias.checkpoint.name, by=by)
    alias.delete()


def find(reference: str, *, among: QuerySet[Checkpoint] | None = None) -> Checkpoint | None:
    """The checkpoint that `ID` or `ALIAS` names, with or without `checkpoint:` in front; of all, or `among` some.

    Every choice of a checkpoint is resolved here. `chosen_as` holds the alias that was used, if any. It is
    stored with the checkpoint, because the alias may move later.
    """
    key = reference.removeprefix(PREFIX)
    checkpoints = Checkpoint.objects.all() if among is None else among
    if key.isascii() and key.isdigit() and len(key) < 19:
        return checkpoints.filter(pk=int(key)).first()
    checkpoint = checkpoints.filter(aliases__name=key).first()
    if checkpoint is not None:
        checkpoint.chosen_as = key
    return checkpoint


def offered(checkpoints: QuerySet[Checkpoint]) -> list[tuple[str, str]]:
    """(name, label) of the aliases of these checkpoints, in alphabetical order."""
    rows = Alias.objects.filter(checkpoint__in=checkpoints.order_by()).select_related("checkpoint")
    return [(alias.name, f"{alias.name} → {alias.checkpoint}") for alias in rows]


def resolved(config: RunConfig) -> tuple[RunConfig, dict[str, str]]:
    """The configuration with the names of checkpoints where it says `checkpoint:ID` or `checkpoint:ALIAS`, and the
    aliases by the paths of their fields.

    A run keeps its opponents though an alias moves later. Raises `BadInput` at the field of one that names none.
    """
    fields = {name: value for name, value in config.to_dict().items() if name != "name"}
    aliases: dict[str, str] = {}
    replaced: dict[str, Any] = _replaced(fields, "", aliases)
    return config if replaced == fields else parse({**replaced, "name": config.name}), aliases


def _replaced(value: Any, path: str, aliases: dict[str, str]) -> Any:
    """The value with names of checkpoints; adds what aliases it has to `aliases`."""
    if isinstance(value, Mapping):
        return {name: _replaced(inner, f"{path}.{name}".lstrip("."), aliases) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_replaced(inner, f"{path}.{place}", aliases) for place, inner in enumerate(value)]
    if not isinstance(value, str) or not REFERENCE.fullmatch(value):
        return value
    checkpoint = find(value)
    if checkpoint is None:
        raise BadInput(f"no checkpoint has this id or alias: {value}", path)
    if checkpoint.chosen_as:
        aliases[path] = checkpoint.chosen_as
    return checkpoint.name
