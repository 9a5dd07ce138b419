"""The form of a sweep: a name, a search, and up to six fields with their values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms

from training.errors import BadInput
from webapp.runs.sweeps import space
from webapp.runs.sweeps.models import Sweep

FIELDS = 6


class SweepForm(forms.Form):
    """What varies, how, and which metric decides."""

    name = forms.CharField(max_length=70, help_text="Also the group of its runs.")
    search = forms.ChoiceField(choices=Sweep.Search, initial=Sweep.Search.GRID)
    trials = forms.IntegerField(
        min_value=1,
        max_value=space.MOST_TRIALS,
        initial=8,
        help_text="Runs of a random search; a grid has its own number.",
    )
    seed = forms.IntegerField(min_value=0, max_value=2**31 - 1, initial=0, help_text="Of the values that are drawn.")
    metric = forms.CharField(max_length=200, initial="reward", help_text="The metric whose last value decides.")
    goal = forms.ChoiceField(choices=Sweep.Goal, initial=Sweep.Goal.MAXIMUM)

    def __init__(self, data: Mapping[str, Any] | None, **options: Any) -> None:
        super().__init__(data, **options)
        for place in range(FIELDS):
            path = forms.CharField(max_length=200, required=False, label=f"Field {place + 1}")
            path.widget.attrs["list"] = "config-fields"
            self.fields[f"path_{place}"] = path
            self.fields[f"values_{place}"] = forms.CharField(max_length=2000, required=False, label="Values")
        self.trial_values: list[dict[str, Any]] = []

    def pairs(self) -> list[tuple[Any, Any]]:
        """The fields of the form for each configuration field: its path, and its values."""
        return [(self[f"path_{place}"], self[f"values_{place}"]) for place in range(FIELDS)]

    def head(self) -> list[Any]:
        """The other fields of the form."""
        return [self[name] for name in ("name", "search", "trials", "seed", "metric", "goal")]

    def clean(self) -> dict[str, Any]:
        """Combine the values into trials."""
        data = super().clean() or {}
        stated: dict[str, space.Values] = {}
        places: dict[str, int] = {}
        for place in range(FIELDS):
            path, text = data.get(f"path_{place}", ""), data.get(f"values_{place}", "")
            if not path and not text:
                continue
            if not path or not text or path in stated:
                self.add_error(f"path_{place}", "A field has a name and values, and stands here once.")
                continue
            places[path] = place
            try:
                stated[path] = space.parse_values(text, path)
            except BadInput as error:
                self.add_error(f"values_{place}", error.why)
        if not stated and not self.errors:
            self.add_error("path_0", "State at least one field with its values.")
        if not self.errors:
            self._combine(data, stated, places)
        return data

    def _combine(self, data: Mapping[str, Any], stated: Mapping[str, space.Values], places: Mapping[str, int]) -> None:
        try:
            if data["search"] == Sweep.Search.GRID:
                self.trial_values = space.combinations(stated)
            else:
                self.trial_values = space.drawn(stated, data["trials"], data["seed"])
        except BadInput as error:
            self.add_error(f"values_{places[error.where]}" if error.where in places else "trials", error.why)

    def blame(self, error: BadInput) -> None:
        """Put an error of a trial on its field, or above the form."""
        data = self.cleaned_data
        named = [place for place in range(FIELDS) if data.get(f"path_{place}") == error.where]
        self.add_error(f"values_{named[0]}" if named else None, error.why if named else str(error))

    def sweep(self) -> Sweep:
        """The sweep without its owner, not stored."""
        data = self.cleaned_data
        kept = {name: data[name] for name in ("name", "search", "seed", "metric", "goal")}
        texts = [(data[f"path_{place}"], data[f"values_{place}"]) for place in range(FIELDS)]
        return Sweep(**kept, fields=[list(pair) for pair in texts if pair[0]])
