"""Reads SOTOPIA: a Redis dump as one JSON object, or the four JSONL files of its evaluation set.

One pairing of an environment with two agents is one scenario. Environments and agents that no pairing uses, and
records of other classes, are notices; a pairing that names something missing is an error. Relationship profiles are
read for nothing but the count: an environment states the relationship that its pairings play. Source: Zhou et al.,
"SOTOPIA", ICLR 2024.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from training.dataset import DatasetLine
from training.errors import BadInput
from training.store import from_json
from webapp.scenarios.importers.reading import (
    WHOLE,
    Progress,
    Reading,
    check_line,
    load_json,
    need,
    noted,
    scenario_of,
    text_lines,
)

CLASSES = {
    "EnvironmentProfile": "environments",
    "AgentProfile": "agents",
    "EnvAgentComboStorage": "pairings",
    "RelationshipProfile": "relationships",
}
FILES = {
    "environment_profiles.jsonl": ("environments", "env_id"),
    "agent_profiles.jsonl": ("agents", "agent_id"),
    "env_agent_combo_storages.jsonl": ("pairings", "combo_id"),
    "relationship_profiles.jsonl": ("relationships", "relationship_id"),
}
CONSTRAINTS = ("age_constraint", "occupation_constraint", "agent_constraint")


@dataclass(frozen=True)
class SourceRecord:
    """One record and the place it was read from."""

    where: str
    data: Mapping[str, Any]


@dataclass
class Tables:
    """The records of both forms by their ids."""

    environments: dict[str, SourceRecord] = field(default_factory=dict)
    agents: dict[str, SourceRecord] = field(default_factory=dict)
    pairings: dict[str, SourceRecord] = field(default_factory=dict)
    relationships: dict[str, SourceRecord] = field(default_factory=dict)

    def add(self, table: str, key: str, record: SourceRecord) -> None:
        """Add a record; raise `BadInput` if its id is taken."""
        records: dict[str, SourceRecord] = getattr(self, table)
        if key in records:
            raise BadInput(f"a second record with the id {key!r}; the first is at {records[key].where}", record.where)
        records[key] = record


def read_redis(path: Path, progress: Progress) -> Reading:
    """Read a dump: an object from `:class:id` to the record (or to the record as a string of JSON)."""
    dump = load_json(path)
    if not isinstance(dump, dict):
        raise BadInput("expected an object from keys to records", path.name)
    reading, tables = Reading(), Tables()
    for key, value in dump.items():
        name = key.strip(":").rpartition(":")[0].rpartition(".")[2]
        where = f"{path.name}, {key}"
        if name not in CLASSES:
            reading.notice(where, f"a record of another class ({name or 'none'}); left out")
            continue
        _file(reading, tables, CLASSES[name], where, value, "pk")
    return _finish(reading, tables, progress)


def read_jsonl(path: Path, progress: Progress) -> Reading:
    """Read the folder with the four files; other files in it are notices."""
    if missing := [name for name in FILES if not (path / name).is_file()]:
        raise BadInput(f"missing {', '.join(missing)}", path.name)
    reading, tables = Reading(), Tables()
    for other in sorted(path.iterdir()):
        if other.name not in FILES:
            reading.notice(other.name, "not one of the four files; left out")
    for name, (table, id_field) in FILES.items():
        for number, text in text_lines(path / name):
            _file(reading, tables, table, f"{name} line {number}", text, id_field)
    return _finish(reading, tables, progress)


def _file(reading: Reading, tables: Tables, table: str, where: str, record: Any, id_field: str) -> None:
    with noted(reading, where):
        data = from_json(record, where) if isinstance(record, str) else record
        tables.add(table, need(data, id_field, str, where), SourceRecord(where, data))


def _finish(reading: Reading, tables: Tables, progress: Progress) -> Reading:
    used: set[str] = set()
    for number, (key, pairing) in enumerate(tables.pairings.items()):
        with noted(reading, pairing.where):
            reading.lines.append(_line(key, pairing, tables, used))
        progress(number + 1, len(tables.pairings))
    for table in (tables.environments, tables.agents):
        for key, record in table.items():
            if key not in used:
                reading.notice(record.where, "no pairing uses it; left out")
    if not tables.pairings and not reading.errors:
        reading.error(BadInput("no pairing of an environment with two agents", "EnvAgentComboStorage"))
    return reading


def _line(key: str, pairing: SourceRecord, tables: Tables, used: set[str]) -> DatasetLine:
    env_id = need(pairing.data, "env_id", str, pairing.where)
    agent_ids = need(pairing.data, "agent_ids", list, pairing.where)
    if len(agent_ids) != 2 or not all(isinstance(agent_id, str) for agent_id in agent_ids):
        raise BadInput("expected the ids of two agents", f"{pairing.where}, agent_ids")
    environment = _get(tables.environments, env_id, f"{pairing.where}, env_id")
    agents = [_get(tables.agents, agent_id, f"{pairing.where}, agent_ids") for agent_id in agent_ids]
    used.update([env_id, *agent_ids])
    goals = need(environment.data, "agent_goals", list, environment.where)
    if len(goals) != 2:
        raise BadInput(f"expected two goals, not {len(goals)}", f"{environment.where}, agent_goals")
    scenario = scenario_of(
        {
            "id": f"sotopia-{key}",
            "game": "dialogue",
            "settings": {
                "scenario": need(environment.data, "scenario", str, environment.where),
                "relationship": _relationship(environment),
                "participants": [
                    {"goal": str(goal), "profile": _profile(agent)} for goal, agent in zip(goals, agents, strict=True)
                ],
                "codename": str(environment.data.get("codename") or ""),
                "source": str(environment.data.get("source") or ""),
                "constraints": {
                    name: str(environment.data[name]) for name in CONSTRAINTS if environment.data.get(name) is not None
                },
            },
            "seats": _names(agents),
        },
        pairing.where,
    )
    line = DatasetLine(scenario=scenario)
    check_line(line, pairing.where)
    return line


def _get(table: Mapping[str, SourceRecord], key: str, where: str) -> SourceRecord:
    if key not in table:
        raise BadInput(f"names {key!r}, which is not in this upload", where)
    return table[key]


def _relationship(environment: SourceRecord) -> int:
    value = environment.data.get("relationship")
    if str(value) not in {"0", "1", "2", "3", "4", "5"}:
        raise BadInput(f"expected a code from 0 to 5, not {value!r}", f"{environment.where}, relationship")
    return int(str(value))


def _names(agents: list[SourceRecord]) -> list[str]:
    names = [
        f"{need(a.data, 'first_name', str, a.where)} {need(a.data, 'last_name', str, a.where)}".strip() for a in agents
    ]
    return names if names[0] != names[1] else [names[0], f"{names[1]} (2)"]


def _profile(agent: SourceRecord) -> dict[str, Any]:
    data = agent.data

    def text(name: str) -> str:
        return str(data.get(name) or "")

    def words(name: str) -> list[str]:
        values = data.get(name) or []
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise BadInput("expected a list of texts", f"{agent.where}, {name}")
        return [value.strip() for value in values]

    age = data.get("age")
    if age is not None and (isinstance(age, bool) or not WHOLE.fullmatch(str(age))):
        raise BadInput(f"expected a whole number, not {age!r}", f"{agent.where}, age")
    return {
        **{name: text(name) for name in (
            "first_name", "last_name", "gender", "occupation", "public_info", "personality_and_values", "secret",
            "big_five", "decision_making_style", "mbti",
        )},
        "pronouns": text("gender_pronoun"),
        "age": None if age is None else int(age),
        "moral_values": words("moral_values"),
        "schwartz_personal_values": words("schwartz_personal_values"),
    }  # fmt: skip
