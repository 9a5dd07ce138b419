"""The form of values about a seat or a game."""

from __future__ import annotations

from typing import Any

from django import forms

from training.labels.codebooks import Codebook, LabelType
from training.records import LabelValue

MOST_BUTTONS = 21


class ValuesForm(forms.Form):
    """A value for each label type about a seat or a game: buttons for short scales and choices, else a field.

    `optional`: a label type may be left without a value.
    """

    def __init__(
        self, codebook: Codebook, *args: Any, about: str = "seat", optional: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.codebook = codebook
        for label_type in codebook.labels:
            if label_type.about == about and label_type.kind != "ranking":
                required = not optional and label_type.required and label_type.when is None
                self.fields[label_type.name] = _value_field(label_type, required=required)

    def values(self) -> dict[str, LabelValue]:
        """Return the chosen values by label type."""
        chosen = {name: self.cleaned_data[name] for name in self.fields}
        return {
            name: _value(self.codebook.type_of(name), value)
            for name, value in chosen.items()
            if value not in (None, "", [])
        }


def _value(label_type: LabelType, entered: Any) -> LabelValue:
    """The value of a label for what was entered."""
    match label_type.kind:
        case "yes_no":
            return bool(entered == "1")
        case "scale":
            return float(entered)
        case "many_of":
            return tuple(entered)
        case _:
            return str(entered)


def form_value(label_type: LabelType, value: LabelValue) -> Any:
    """Return a stored value as the form's field for this label type holds it."""
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, tuple):
        return list(value)
    return str(int(value)) if isinstance(value, float) and _has_buttons(label_type) and value.is_integer() else value


def _has_buttons(label_type: LabelType) -> bool:
    low, high = label_type.bounds
    return label_type.yes_no or (low.is_integer() and (high - low).is_integer() and high - low < MOST_BUTTONS)


def _value_field(label_type: LabelType, *, required: bool) -> forms.Field:
    field = _bare_field(label_type)
    meanings = "; ".join(f"{value:g} = {text}" for value, text in label_type.meanings)
    field.label, field.help_text = label_type.title, f"{label_type.definition} {meanings}".strip()
    field.required = field.widget.is_required = required
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
    low, high = label_type.bounds
    if not _has_buttons(label_type):
        return forms.FloatField(min_value=low, max_value=high)
    numbers = [str(value) for value in range(int(low), int(high) + 1)]
    choices = [("0", "0 no"), ("1", "1 yes")] if label_type.yes_no else [(number, number) for number in numbers]
    # the digit that a value begins with chooses it
    return forms.ChoiceField(choices=choices, widget=forms.RadioSelect(attrs={"class": "scale"}))
