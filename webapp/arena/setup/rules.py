"""The rules of a table: the game settings that its host may choose.

Empty settings keep the scenario's values. Hidden information cannot be chosen.
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
    """The names of the settings that may be chosen: numbers, choices and word lists that are not scenario-only."""
    schema = spec.settings.model_json_schema()
    editable = {name for name, described in schema["properties"].items() if takes_one_field(described, schema)}
    return [name for name in schema["properties"] if name in editable - set(spec.scenario_only)]


def changed(scenario: Scenario, rules: Mapping[str, Any]) -> Scenario:
    """The scenario with these settings replaced, validated by the game.

    Raises `BadInput` for an invalid value and for a setting that is not `offered`: it could fix hidden information.
    """
    spec = lookup(scenario.game)
    allowed = offered(spec)
    if unknown := next((name for name in rules if name not in allowed), None):
        raise BadInput(f"cannot be chosen at a table; there are: {', '.join(allowed) or 'none'}", f"rules.{unknown}")
    candidate = scenario.model_copy(update={"settings": {**scenario.settings, **rules}})
    try:
        make(candidate)
        settings = read_settings(spec.settings, candidate).model_dump(mode="json")
    except BadInput as error:
        raise BadInput(error.why, error.where.replace("settings", "rules", 1)) from error
    return candidate.model_copy(update={"settings": {**scenario.settings, **{name: settings[name] for name in rules}}})


def in_words(rules: Mapping[str, Any]) -> str:
    """The chosen rules as text: `rounds 2, reveal no`."""
    return ", ".join(f"{name.replace('_', ' ')} {_value_in_words(value)}" for name, value in rules.items())


def _value_in_words(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return " + ".join(map(str, value)) if isinstance(value, list) else str(value)


class RulesForm(SchemaForm):
    """The fields of the settings that a game offers."""

    def __init__(self, spec: GameSpec, data: Mapping[str, Any] | None = None) -> None:
        empty = dict.fromkeys(offered(spec))
        super().__init__(empty, spec.settings.model_json_schema(), data, "rules", empty_text="as in the scenario")
        for field in self.fields.values():
            field.label = capfirst(field.label)

    def chosen(self) -> dict[str, Any]:
        """The chosen settings; only for a valid form."""
        return {name: value for name, value in self.document().items() if value is not None}
