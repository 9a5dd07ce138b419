"""A choice of checkpoint in a form: by an alias, or by itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from django import forms
from django.db.models import QuerySet

from webapp.core.choices import offer
from webapp.runs.models import Checkpoint
from webapp.runs.registry.services import PREFIX, find, offered


class ChoiceOfCheckpoint(forms.ModelChoiceField):
    """Aliases first, as `checkpoint:ALIAS`, then checkpoints by their ids."""

    def offer(self, queryset: QuerySet[Checkpoint], selected: Iterable[object] = ()) -> None:
        """List the aliases, the first checkpoints and the selected ones; every checkpoint of `queryset` is valid."""
        offer(self, queryset, selected)
        aliases = [(f"{PREFIX}{name}", label) for name, label in offered(queryset)]
        if aliases:
            plain = list(cast(Iterable[Any], self.choices))
            empty = plain[: self.empty_label is not None]
            self.choices = [*empty, ("Aliases", aliases), ("Checkpoints", plain[len(empty) :])]

    def to_python(self, value: Any) -> Any:
        """The checkpoint of an alias or an id, with the alias by which it was chosen."""
        if not isinstance(value, str) or not value.startswith(PREFIX):
            return super().to_python(value)
        checkpoint = find(value, among=self.queryset)
        if checkpoint is None:
            raise forms.ValidationError(f"No checkpoint that you may use has the alias {value.removeprefix(PREFIX)}.")
        return checkpoint
