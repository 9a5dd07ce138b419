"""The rules of a table: the settings of its game that somebody may choose where they set it up.

Whatever is left empty stays as the scenario has it. Who is dealt what is nobody's to choose.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms

from training.errors import BadInput
from training.games import GameSpec, lookup
from training.games.log import read_settings
from training.records import Scenario

PREFIX = "rules"
KEPT = "as in the scenario"
YES, NO = "yes", "no"
OF_A_TOOL = {"goal_check", "goal_check_every"}
"""Settings of what only a judge can answer: at a table nobody is asked."""


def changed(scenario: Scenario, rules: Mapping[str, Any]) -> Scenario:
    """The same start with these settings instead of its own, as the game reads them.

    Raises `BadInput` for a wrong value, and for what `offered` does not name: who states what is hidden knows it.
    """
    spec = lookup(scenario.game)
    known = offered(spec)
    if unknown := next((name for name in rules if name not in known), None):
        raise BadInput(f"cannot be chosen at a table; there are: {', '.join(known) or 'none'}", f"settings.{unknown}")
    made = scenario.model_copy(update={"settings": {**scenario.settings, **rules}})
    read = read_settings(spec.settings, made).model_dump(mode="json")
    return made.model_copy(update={"settings": {**scenario.settings, **{name: read[name] for name in rules}}})


def in_words(rules: Mapping[str, Any]) -> str:
    """The chosen rules as a line: `rounds 2, reveal no`."""
    return ", ".join(f"{name.replace('_', ' ')} {_said(value)}" for name, value in rules.items())


def _said(value: Any) -> str:
    if isinstance(value, bool):
        return YES if value else NO
    return " + ".join(map(str, value)) if isinstance(value, list) else str(value)


def offered(spec: GameSpec) -> dict[str, forms.Field]:
    """A field for each number, choice and list of words among a game's settings, by name."""
    described = spec.settings.model_json_schema()["properties"]
    names = [name for name in spec.undealt(dict.fromkeys(described, True)) if name not in OF_A_TOOL]
    found = {name: _field(name, described[name]) for name in names}
    return {name: field for name, field in found.items() if field is not None}


class SeveralField(forms.CharField):
    """Words of a list, with commas between them."""

    def __init__(self, words: list[str], **kwargs: Any) -> None:
        super().__init__(max_length=2000, **kwargs)
        self.words = words
        self.help_text = f"{self.help_text} With commas between them; there are: {', '.join(words)}."

    def clean(self, value: Any) -> list[str] | None:
        found = [word.strip().lower() for word in super().clean(value).split(",") if word.strip()]
        if unknown := next((word for word in found if word not in self.words), None):
            raise forms.ValidationError(f"There is no {unknown!r}; there are: {', '.join(self.words)}.")
        return found or None


class RulesForm(forms.Form):
    """The fields of the settings that a game offers."""

    def __init__(self, spec: GameSpec, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(data, prefix=PREFIX)
        self.fields = offered(spec)

    def chosen(self) -> dict[str, Any]:
        """The settings that were chosen; call it on a valid form only."""
        return {name: value for name, value in self.cleaned_data.items() if value is not None}

    def takes(self, error: BadInput) -> bool:
        """Put a game's complaint about a setting on its field; False if it is about something else."""
        part, _, path = error.where.partition(".")
        name = path.partition(".")[0]
        if part != "settings" or (name and name not in self.fields):
            return False
        self.add_error(name or None, error.why)
        return True


def _field(name: str, schema: Mapping[str, Any]) -> forms.Field | None:
    """The field of one setting; None for what is a story, an object or a deal."""
    schema = {**schema, **next((one for one in schema.get("anyOf", ()) if one.get("type") != "null"), {})}
    said: dict[str, Any] = {
        "label": name.replace("_", " ").capitalize(),
        "help_text": schema.get("description", ""),
        "required": False,
    }
    inner = schema.get("items", {})
    if inner.get("type") == "string" and (words := inner.get("enum")):
        return SeveralField(words, widget=forms.TextInput(attrs={"placeholder": KEPT}), **said)
    if schema.get("type") == "string" and (choices := schema.get("enum")):
        offered = [("", KEPT), *((value, value) for value in choices)]
        return forms.TypedChoiceField(choices=offered, empty_value=None, **said)
    bounds: dict[str, Any] = {"min_value": schema.get("minimum"), "max_value": schema.get("maximum")}
    match schema.get("type"):
        case "boolean":
            offered = [("", KEPT), (YES, YES), (NO, NO)]
            return forms.TypedChoiceField(choices=offered, coerce=lambda text: text == YES, empty_value=None, **said)
        case "integer":
            return forms.IntegerField(widget=forms.NumberInput(attrs={"placeholder": KEPT}), **bounds, **said)
        case "number":
            return forms.FloatField(
                widget=forms.NumberInput(attrs={"placeholder": KEPT, "step": "any"}), **bounds, **said
            )
    return None
