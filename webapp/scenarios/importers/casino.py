"""Reads CaSiNo: one JSON list of human dialogues about dividing food, water and firewood before a camping trip.

One dialogue is one scenario with one conversation. `Submit-Deal`, `Accept-Deal`, `Reject-Deal` and `Walk-Away` are
separate turns; everything else is talk. Annotated strategies become labels of turns by the author `CaSiNo`. Source:
Chawla et al., "CaSiNo", NAACL 2021.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from training.dataset import DatasetLine
from training.errors import BadInput
from training.games import make
from training.games.negotiation import NegotiationSettings
from training.records import ArgValue, Move, Scenario, Seat, SeatMove
from webapp.scenarios.importers import casino_annotations
from webapp.scenarios.importers.reading import (
    Progress,
    Reading,
    load_json,
    need,
    noted,
    played,
    scenario_of,
    storable,
)

ITEMS = ("Food", "Water", "Firewood")
COUNT = 3
POINTS = {"High": 5, "Medium": 4, "Low": 3}
WALK_AWAY = 5
TURN_LIMIT, MAX_CHARS = (NegotiationSettings.model_fields[name].default for name in ("turn_limit", "max_chars"))
AGENTS = ("mturk_agent_1", "mturk_agent_2")
SEATS = ("Camper 1", "Camper 2")
STORY = (
    "Two campers who share a site are getting ready for a trip. Each has enough of the basics; three extra packages "
    "each of food, water and firewood are left, and the two of them must agree who takes how many."
)


def read(path: Path, progress: Progress) -> Reading:
    """Read every dialogue; one that does not fit the format or does not replay is an error."""
    records = load_json(path)
    if not isinstance(records, list):
        raise BadInput("expected a list of dialogues", path.name)
    reading = Reading(with_judgments=True)
    ids: set[str] = set()
    for number, record in enumerate(records):
        where = f"{path.name}, dialogue {number}"
        with noted(reading, where):
            line = _line(record, where, reading)
            if line.scenario.id in ids:
                raise BadInput(f"a second dialogue with the id {record['dialogue_id']}", f"{where}, dialogue_id")
            ids.add(line.scenario.id)
            reading.lines.append(line)
        progress(number + 1, len(records))
    if not records:
        reading.error(BadInput("the file contains no dialogue", path.name))
    return reading


def _line(record: Any, where: str, reading: Reading) -> DatasetLine:
    key = need(record, "dialogue_id", int, where)
    logs = need(record, "chat_logs", list, where)
    people = need(record, "participant_info", dict, where)
    if not logs:
        raise BadInput("empty", f"{where}, chat_logs")
    speakers = [_speaker(entry, f"{where}, chat_logs.{n}") for n, entry in enumerate(logs)]
    longest = max(len(need(entry, "text", str, f"{where}, chat_logs.{n}")) for n, entry in enumerate(logs))
    settings = {
        "deal": {
            "kind": "items",
            "story": STORY,
            "items": [{"name": item.lower(), "count": COUNT} for item in ITEMS],
            "sides": [
                _side(need(people, agent, dict, f"{where}, participant_info"), f"{where}, participant_info, {agent}")
                for agent in AGENTS
            ],
        },
        "first_seat": speakers[0],
    }
    scenario = scenario_of(
        {"id": f"casino-{key}", "game": "negotiation", "settings": settings, "seats": list(SEATS), "seed": 0}, where
    )
    _playable(scenario, where)
    moves = [
        SeatMove(seat=seat, move=_move(entry, f"{where}, chat_logs.{n}"))
        for n, (seat, entry) in enumerate(zip(speakers, logs, strict=True))
    ]
    # the record has room for all its turns and words; the start for new games keeps the game's own limits
    limits = {"turn_limit": max(TURN_LIMIT, len(logs)), "max_chars": max(MAX_CHARS, longest)}
    recorded = scenario.model_copy(update={"settings": {**scenario.settings, **limits}})
    conversation = played(recorded, moves, f"casino:{key}", where)
    aligned = casino_annotations.align(record, where) if "annotations" in record else casino_annotations.Aligned({}, ())
    for number in aligned.unplaced:
        reading.notice(f"{where}, annotations.{number}", "no turn has this text here; it is left out")
    if (judgment := casino_annotations.judgment_of(aligned)) is not None:
        conversation = conversation.model_copy(update={"judgments": (judgment,)})
    return storable(DatasetLine(scenario=scenario, conversations=(conversation,)), where)


def _playable(scenario: Scenario, where: str) -> None:
    try:
        make(scenario)
    except BadInput as error:
        raise BadInput(error.why, f"{where}, {error.where}") from error


def _speaker(entry: Any, where: str) -> Seat:
    agent = need(entry, "id", str, where)
    if agent not in AGENTS:
        raise BadInput(f"unknown speaker {agent!r}; expected {' or '.join(AGENTS)}", f"{where}, id")
    return AGENTS.index(agent)


def _side(person: Mapping[str, Any], where: str) -> dict[str, Any]:
    issues = need(person, "value2issue", dict, where)
    reasons = need(person, "value2reason", dict, where)
    if sorted(issues) != sorted(POINTS) or sorted(map(str, issues.values())) != sorted(ITEMS):
        raise BadInput(f"must rank {', '.join(ITEMS)} as High, Medium and Low", f"{where}, value2issue")
    return {
        "values": {issues[level].lower(): points for level, points in POINTS.items()},
        "reasons": {issues[level].lower(): str(reasons[level]) for level in POINTS if reasons.get(level)},
        "walk_away": WALK_AWAY,
    }


def _move(entry: Mapping[str, Any], where: str) -> Move:
    text = entry["text"]
    action = {"Accept-Deal": "accept", "Reject-Deal": "reject", "Walk-Away": "walk_away"}.get(text)
    if action:
        return Move(action=action)
    if text == "Submit-Deal":
        return Move(action="propose", args=_shares(need(entry, "task_data", dict, where), f"{where}, task_data"))
    return Move(action="talk", text=text)


def _shares(deal: Mapping[str, Any], where: str) -> dict[str, ArgValue]:
    my_shares, other_shares = need(deal, "issue2youget", dict, where), need(deal, "issue2theyget", dict, where)
    shares: dict[str, ArgValue] = {}
    for item in ITEMS:
        try:
            share, other = int(my_shares[item]), int(other_shares[item])
        except (KeyError, ValueError, TypeError, OverflowError) as error:
            raise BadInput("expected a whole number for each side", f"{where}, {item}") from error
        if share < 0 or other < 0 or share + other != COUNT:
            raise BadInput(f"the two shares must add up to {COUNT}, not {share} + {other}", f"{where}, {item}")
        shares[item.lower()] = share
    return shares
