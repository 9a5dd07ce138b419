"""The form of values about a seat or a game."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from django import forms

from training.labels.codebooks import Codebook, LabelType
from training.records import LabelValue

MOST_BUTTONS = 21


class RankingField(forms.CharField):
    """Turns in order, written as their numbers from 1: `3, 1`. `turns` are those that may be ranked, by their number.

    The value is a tuple of what `turns` has for each.
    """

    def __init__(self, turns: Mapping[int, int], **kwargs: Any) -> None:
        super().__init__(max_length=2000, **kwargs)
        self.turns = turns
        attrs = {"data-ranking": json.dumps([number + 1 for number in turns]), "inputmode": "numeric"}
        self.widget.attrs |= {**attrs, "placeholder": "numbers of turns, the first in rank first: 3, 1"}

    def clean(self, value: Any) -> tuple[int, ...]:
        written = re.findall(r"[^\s,;>]+", super().clean(value))
        if wrong := [each for each in written if not each.isdecimal() or int(each) - 1 not in self.turns]:
            raise forms.ValidationError(f"There is no turn {wrong[0][:20]} to rank here.")
        if len(set(map(int, written))) < len(written):
            raise forms.ValidationError("A turn stands in one place of the ranking.")
        return tuple(self.turns[int(each) - 1] for each in written)

    def prepare_value(self, value: Any) -> Any:
        """Write a stored ranking in the numbers of the page."""
        if not isinstance(value, tuple):
            return value
        numbers = {turn: str(number + 1) for number, turn in self.turns.items()}
        return ", ".join(numbers[turn] for turn in value if turn in numbers)


class ValuesForm(forms.Form):
    """A value for each label type about a seat or a game: buttons for short scales and choices, else a field.

    `optional`: a label type may be left without a value. `turns` are the indices of the turns that can be ranked, by
    their number on the page from 0.
    """

    def __init__(
        self,
        codebook: Codebook,
        *args: Any,
        about: str = "seat",
        optional: bool = False,
        turns: Mapping[int, int] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.codebook = codebook
        for label_type in codebook.labels:
            if label_type.about == about and (label_type.kind != "ranking" or turns is not None):
                required = not optional and label_type.required and label_type.when is None
                self.fields[label_type.name] = _value_field(label_type, turns or {}, required=required)

    def values(self) -> dict[str, LabelValue]:
        """Return the chosen values by label type."""
        chosen = {name: self.cleaned_data[name] for name in self.fields}
        return {
            name: _value(self.codebook.type_of(name), value)
            for name, value in chosen.items()
            if value not in (None, "", [], ())
        }


def _value(label_type: LabelType, entered: Any) -> LabelValue:
    """Return the value of a label from the form's cleaned value."""
    match label_type.kind:
        case "yes_no":
            return bool(entered == "1")
        case "scale":
            return float(entered)
        case "many_of" | "ranking":
            return tuple(entered)
        case "one_of" | "text":
            return str(entered)
        case "span" | "relation":
            raise ValueError(f"{label_type.name} has no value to enter")


def form_value(label_type: LabelType, value: LabelValue) -> Any:
    """Return a stored value as the form's field for this label type holds it."""
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, tuple):
        return value if label_type.kind == "ranking" else list(value)
    return str(int(value)) if isinstance(value, float) and _has_buttons(label_type) and value.is_integer() else value


def _has_buttons(label_type: LabelType) -> bool:
    low, high = label_type.bounds
    return label_type.yes_no or (low.is_integer() and (high - low).is_integer() and high - low < MOST_BUTTONS)


def _value_field(label_type: LabelType, turns: Mapping[int, int], *, required: bool) -> forms.Field:
    field = RankingField(turns) if label_type.kind == "ranking" else _bare_field(label_type)
    meanings = "; ".join(f"{value:g} = {text}" for value, text in label_type.meanings)
    field.label, field.help_text = label_type.title, f"{label_type.definition} {meanings}".strip()
    field.required = field.widget.is_required = required
    condition = label_type.when
    field.when = "" if condition is None else json.dumps([condition.label, condition.equals])  # type: ignore[attr-defined]
    return field


def _bare_field(label_type: LabelType) -> forms.Field:
    options = [(option.name, option.title) for option in label_type.options]
    match label_type.kind:
        case "one_of":
            return forms.ChoiceField(choices=options, widget=forms.RadioSelect)
        case "many_of":
            return forms.MultipleChoiceField(choices=options, widget=forms.CheckboxSelectMultiple)
        case "text":
            return forms.CharField(max_length=10_000, widget=forms.Textarea(attrs={"rows": 2}))
        case "yes_no" | "scale":
            return _number_field(label_type)
        case "ranking" | "span" | "relation":
            raise ValueError(f"{label_type.name} is not entered in such a field")


def _number_field(label_type: LabelType) -> forms.Field:
    low, high = label_type.bounds
    if not _has_buttons(label_type):
        return forms.FloatField(min_value=low, max_value=high)
    numbers = [str(value) for value in range(int(low), int(high) + 1)]
    choices = [("0", "0 no"), ("1", "1 yes")] if label_type.yes_no else [(number, number) for number in numbers]
    # the digit that a value begins with chooses it
    return forms.ChoiceField(choices=choices, widget=forms.RadioSelect(attrs={"class": "scale"}))
