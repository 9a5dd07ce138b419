"""The rules of a table: the settings of its game that somebody may choose where they set it up.

Whatever is left empty stays as the scenario has it. Who is dealt what is nobody's to choose.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.text import capfirst

from training.errors import BadInput
from training.games import GameSpec, lookup, make
from training.games.log import read_settings
from training.records import Scenario
from webapp.core.schema import SchemaForm, takes_one_field


def offered(spec: GameSpec) -> list[str]:
    """The names of the settings that may be chosen: each number, choice and list of words that is no scenario's own."""
    schema = spec.settings.model_json_schema()
    found = {name for name, described in schema["properties"].items() if takes_one_field(described, schema)}
    return [name for name in schema["properties"] if name in found - set(spec.scenario_only)]


def changed(scenario: Scenario, rules: Mapping[str, Any]) -> Scenario:
    """The same start with these settings instead of its own, as the game reads them.

    Raises `BadInput` for a wrong value, and for what is not `offered`: who states what is hidden knows it.
    """
    spec = lookup(scenario.game)
    known = offered(spec)
    if unknown := next((name for name in rules if name not in known), None):
        raise BadInput(f"cannot be chosen at a table; there are: {', '.join(known) or 'none'}", f"rules.{unknown}")
    made = scenario.model_copy(update={"settings": {**scenario.settings, **rules}})
    try:
        make(made)
        read = read_settings(spec.settings, made).model_dump(mode="json")
    except BadInput as error:
        raise BadInput(error.why, error.where.replace("settings", "rules", 1)) from error
    return made.model_copy(update={"settings": {**scenario.settings, **{name: read[name] for name in rules}}})


def in_words(rules: Mapping[str, Any]) -> str:
    """The chosen rules as a line: `rounds 2, reveal no`."""
    return ", ".join(f"{name.replace('_', ' ')} {_said(value)}" for name, value in rules.items())


def _said(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return " + ".join(map(str, value)) if isinstance(value, list) else str(value)


class RulesForm(SchemaForm):
    """The fields of the settings that a game offers."""

    def __init__(self, spec: GameSpec, data: Mapping[str, Any] | None = None) -> None:
        empty = dict.fromkeys(offered(spec))
        super().__init__(empty, spec.settings.model_json_schema(), data, "rules", kept="as in the scenario")
        for field in self.fields.values():
            field.label = capfirst(field.label)

    def chosen(self) -> dict[str, Any]:
        """The settings that were chosen; call it on a valid form only."""
        return {name: value for name, value in self.document().items() if value is not None}
