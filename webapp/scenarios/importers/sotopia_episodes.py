"""Reads played SOTOPIA episodes with their scores, each a scenario with one conversation and its judgments.

Two forms: SOTOPIA's own `EpisodeLog` (`messages`, `rewards`, `reasoning`), one a line or in a list; and episodes whose
conversation stands in the judge's prompt (`rewards_prompt`), with the scores of `scores.json` by the episode's key.
A score that is out of range or of an unknown label_type is an error; a missing one is a judgment without values, never
a zero. An episode that our rules cannot follow is left out with a notice. Source: Zhou et al., "SOTOPIA", ICLR 2024.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from training.dataset import DatasetLine
from training.errors import BadInput
from training.games.dialogue import DialogueSettings
from training.labels.codebooks import SOTOPIA
from training.records import Episode, Judgment, Label, Move, Scenario, Seat, SeatMove
from training.store import dumps, from_json
from webapp.scenarios.importers import sotopia_texts as texts
from webapp.scenarios.importers.reading import (
    Progress,
    Reading,
    check_line,
    load_json,
    need,
    noted,
    played,
    read_text,
    scenario_of,
    text_lines,
)

EPISODES, SCORES = "episodes.jsonl", "scores.json"
DIMENSIONS = {label_type.name: label_type for label_type in SOTOPIA.labels}
NAMES = {"financial_and_material_benefits" if name == "financial" else name: name for name in DIMENSIONS}
"""Parley's name of each of SOTOPIA's dimensions."""
OVERALL = "overall_score"
ACQUAINTANCES = 2
DEFAULTS = DialogueSettings.model_fields


class LeftOut(Exception):
    """An episode that is well-formed, but cannot be converted to a conversation; the text says why."""


@dataclass(frozen=True)
class Recorded:
    """A parsed record: its participants and their turns in order."""

    key: str
    environment: str
    context: texts.Context
    relationship: int
    steps: tuple[tuple[tuple[Seat, Move], ...], ...]
    """One entry per turn: the move of one participant, or of both if they acted simultaneously."""


def read(path: Path, progress: Progress) -> Reading:
    """Read a file of episodes, or a folder with `episodes.jsonl` and `scores.json`."""
    reading = Reading(with_judgments=True)
    scores: dict[str, Any] = {}
    file = path
    if path.is_dir():
        file = path / EPISODES
        if missing := [name for name in (EPISODES, SCORES) if not (path / name).exists()]:
            raise BadInput(f"missing {', '.join(missing)}", path.name)
        for other in sorted(path.iterdir()):
            if other.name not in (EPISODES, SCORES):
                reading.notice(other.name, "not one of the two files; left out")
        scores = _scores(path / SCORES)
    records, keys = list(_records(file)), set[str]()
    for number, (where, record) in enumerate(records, 1):
        with noted(reading, where):
            try:
                line = _line(record, scores, where, reading)
            except LeftOut as error:
                reading.notice(where, f"left out: {error}")
                keys.add(str(record.get("pk")))
            else:
                if record["pk"] in keys:
                    raise BadInput(f"a second episode with the key {record['pk']!r}", f"{where}, pk")
                keys.add(record["pk"])
                reading.lines.append(line)
        progress(number, len(records))
    if any("messages" not in record for _, record in records if isinstance(record, dict)):
        why = "a judge's prompt does not tell how close the two are: such scenarios take them for acquaintances"
        reading.notice(file.name, why)
    for key in sorted(scores.keys() - keys):
        reading.notice(f"{SCORES}, {key}", "scores of an episode that is not in this upload; left out")
    if not records:
        reading.error(BadInput("the file contains no episode", path.name))
    return reading


def _records(file: Path) -> Iterator[tuple[str, Any]]:
    """Yield the records of JSON lines, of one JSON list, or of one object over several lines, each with its place."""
    begin = read_text(file).lstrip()
    if begin.startswith("[") or begin.partition("\n")[0].strip() == "{":
        content = load_json(file)
        records = content if isinstance(content, list) else [content]
        yield from ((f"{file.name}, episode {number}", record) for number, record in enumerate(records))
        return
    for number, text in text_lines(file):
        where = f"{file.name} line {number}"
        yield where, from_json(text, where)


def _scores(file: Path) -> dict[str, Any]:
    scores = load_json(file)
    if not isinstance(scores, dict):
        raise BadInput("expected an object from keys of episodes to scores", file.name)
    return scores


# --- the conversation ------------------------------------------------------------------------------------------------


def _line(record: Any, scores: Mapping[str, Any], where: str, reading: Reading) -> DatasetLine:
    key = need(record, "pk", str, where)
    judgments = list(_judgments(record, key, scores, where, reading))
    try:
        recorded = _from_messages(record, key, where) if "messages" in record else _from_prompt(record, key, where)
    except BadInput as error:
        if error.where:  # a field that is missing or of another type
            raise
        raise LeftOut(error.why) from error
    start, scenario = _scenarios(recorded, where)
    moves = [SeatMove(seat=seat, move=move) for step in recorded.steps for seat, move in step]
    try:
        conversation = played(scenario, moves, f"sotopia:{key}"[:200], where)
    except BadInput as error:
        raise LeftOut(error.why) from error
    digest = _digest(conversation.episode)
    conversation = conversation.model_copy(
        update={"judgments": tuple(judgment.model_copy(update={"episode": digest}) for judgment in judgments)}
    )
    line = DatasetLine(scenario=start, conversations=(conversation,))
    check_line(line, where)
    return line


def _digest(episode: Episode) -> str:
    return hashlib.sha256(dumps(episode.to_dict()).encode()).hexdigest()


def _from_prompt(record: Mapping[str, Any], key: str, where: str) -> Recorded:
    """Read the form in which the judge's prompt contains context and turns; it does not state the relationship."""
    prompt = need(record, "rewards_prompt", str, where)
    context = texts.parse_context(prompt)
    steps, due = list[tuple[tuple[Seat, Move], ...]](), 0
    for turn in texts.split_turns(prompt):
        seat, move = texts.attributed(turn, context.names, due)
        steps.append(((seat, move),))
        due = 1 - seat
    return Recorded(key, need(record, "environment", str, where), context, ACQUAINTANCES, tuple(steps))


def _from_messages(record: Mapping[str, Any], key: str, where: str) -> Recorded:
    """Read SOTOPIA's own log: turns of (sender, receiver, text); each agent's first message is the context it sees."""
    turns = need(record, "messages", list, where)
    rows = [[_row(row, f"{where}, messages.{n}") for row in turn] for n, turn in enumerate(turns) if _is_list(turn)]
    if len(rows) != len(turns) or not rows:
        raise BadInput("expected a list of turns with messages", f"{where}, messages")
    views = {receiver: texts.parse_context(text) for sender, receiver, text in rows[0] if sender == "Environment"}
    names = next(iter(views.values())).names if views else ("", "")
    if set(views) != set(names):
        raise BadInput("the first turn does not show each participant the context")
    contexts = [views[name] for name in names]
    context = replace(
        contexts[0],
        backgrounds=(contexts[0].backgrounds[0], contexts[1].backgrounds[1]),
        goals=(contexts[0].goals[0], contexts[1].goals[1]),
    )
    relationship = min(texts.closeness(view, seat) for seat, view in enumerate(contexts))
    steps, due = list[tuple[tuple[Seat, Move], ...]](), 0
    for row in rows:
        messages = [(sender, text) for sender, receiver, text in row if receiver == "Environment"]
        acts = [(_seat(sender, names), texts.move_of(text)) for sender, text in messages]
        acting = [(seat, move) for seat, move in acts if move.action != "none"]
        if not acts:
            continue
        steps.append(tuple(sorted(acting, key=lambda act: act[0])) or ((due, Move(action="none")),))
        due = 1 - steps[-1][-1][0]
    return Recorded(key, need(record, "environment", str, where), context, relationship, tuple(steps))


def _is_list(value: object) -> bool:
    return isinstance(value, list)


def _row(row: Any, where: str) -> tuple[str, str, str]:
    if not isinstance(row, list) or len(row) != 3 or not all(isinstance(text, str) for text in row):
        raise BadInput("expected sender, receiver and text", where)
    return row[0], row[1], row[2]


def _seat(sender: str, names: tuple[str, str]) -> Seat:
    if sender not in names:
        raise BadInput(f"a message of neither participant: {sender[:80]!r}")
    return names.index(sender)


def _scenarios(recorded: Recorded, where: str) -> tuple[Scenario, Scenario]:
    """Return the start for new games, with the game's own limits, and the scenario as it was played in the record."""
    context = recorded.context
    if missing := [name for name, goal in zip(context.names, context.goals, strict=True) if not goal]:
        raise LeftOut(f"the goal of {missing[0]} is not stated")
    if not recorded.steps:
        raise LeftOut("it has no turn")
    settings = {
        "scenario": context.scenario,
        "relationship": recorded.relationship,
        "participants": [
            {"goal": goal, "profile": texts.profile(name, background)}
            for name, goal, background in zip(context.names, context.goals, context.backgrounds, strict=True)
        ],
        "codename": recorded.environment,
        "source": "SOTOPIA",
    }
    data = {"id": f"sotopia-episode-{recorded.key}", "game": "dialogue", "seats": list(context.names)}
    start = scenario_of({**data, "settings": settings}, where)
    return start, scenario_of({**data, "settings": {**settings, **_as_played(recorded.steps)}}, where)


def _as_played(steps: Sequence[Sequence[tuple[Seat, Move]]]) -> dict[str, Any]:
    """Return the settings under which the recorded turns are possible, and after which no seat has to act."""
    acts = [act for step in steps for act in step]
    seats = [seat for seat, _ in acts]
    longest = max(len(move.text) + len(str(move.args.get("what", ""))) for _, move in acts)
    settings: dict[str, Any] = {"max_chars": max(DEFAULTS["max_chars"].default, longest + 100)}
    if acts[-1][1].action != "leave":
        settings["turn_limit"] = max(2, len(acts))
    else:
        settings["turn_limit"] = max(DEFAULTS["turn_limit"].default, len(acts))
    if all(len(step) == 2 for step in steps):
        return {**settings, "order": "simultaneous"}
    if any(len(step) == 2 for step in steps):
        raise LeftOut("in some turns one participant acts and in others both")
    if all(seat != before for before, seat in pairwise(seats)):
        return {**settings, "first_seat": seats[0]}
    return {**settings, "order": "random", "fixed_order": seats}


# --- the judgments ---------------------------------------------------------------------------------------------------


def _judgments(
    record: Mapping[str, Any], key: str, scores: Mapping[str, Any], where: str, reading: Reading
) -> Iterator[Judgment]:
    """Yield the judgments of each agent, from the record or the file of scores."""
    if "rewards" in record:
        rewards = need(record, "rewards", list, where)
        if len(rewards) != 2:
            raise BadInput(f"expected the results of two agents, not {len(rewards)}", f"{where}, rewards")
        reasoning = record.get("reasoning") or ""
        for seat, reward in enumerate(rewards):
            values = reward[1] if isinstance(reward, list) and len(reward) == 2 else {}
            overall = reward[0] if isinstance(reward, list) and reward else None
            place = f"{where}, rewards.{seat}"
            yield _judgment(seat, values, overall, str(reasoning), _author(record, record, where), place, reading)
    if key not in scores:
        return
    entries = scores[key] if isinstance(scores[key], list) else [scores[key]]
    for entry in entries:
        place = f"{SCORES}, {key}"
        if need(entry, "env_pk", str, place) != record.get("environment"):
            raise BadInput(f"another environment than the episode's, {record.get('environment')!r}", f"{place}, env_pk")
        for seat, agent in enumerate(("agent1", "agent2")):
            values = entry.get(agent) or {}
            overall = values.get(OVERALL) if isinstance(values, dict) else None
            author, reasoning = _author(record, entry, where), str(entry.get("reasoning") or "")
            yield _judgment(seat, values, overall, reasoning, author, f"{place}, {agent}", reading)


def _author(record: Mapping[str, Any], entry: Mapping[str, Any], where: str) -> str:
    """Return the rater, where the scores name one, or the model that judged."""
    for name in ("rater", "annotator_id"):
        if entry.get(name):
            return str(need(entry, name, str, where))
    models = need(record, "models", list, where)
    if not models or not isinstance(models[0], str) or not models[0]:
        raise BadInput("expected the judge's name first", f"{where}, models")
    return models[0]


def _judgment(
    seat: Seat, scores: Any, overall: object, reasoning: str, author: str, where: str, reading: Reading
) -> Judgment:
    """Return the record of one agent's scores; `labels` is None where a dimension is missing."""
    if not isinstance(scores, dict):
        raise BadInput("expected an object from dimensions to values", where)
    values = {}
    for name, value in scores.items():
        if name == OVERALL or value is None:
            continue
        if name not in NAMES:
            raise BadInput(f"unknown dimension; known: {', '.join(NAMES)}", f"{where}, {name}")
        values[NAMES[name]] = _value(NAMES[name], value, f"{where}, {name}")
    missing = [name for name, ours in NAMES.items() if ours not in values]
    if not missing:
        _compare(values, overall, where, reading)
    reasons = texts.reasons_of(reasoning, seat + 1, NAMES)
    labels = tuple(
        Label(label=name, value=value, seat=seat, reason=reasons.get(name, "")) for name, value in values.items()
    )
    return Judgment(
        codebook=SOTOPIA.name,
        codebook_version=SOTOPIA.version,
        episode="",
        seat=seat,
        author=author,
        labels=None if missing else labels,
        reason=f"the record has no value for {', '.join(missing)}" if missing else "" if reasons else reasoning,
    )


def _value(name: str, value: object, where: str) -> float:
    low, high = SOTOPIA.type_of(name).bounds
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise BadInput(f"{value!r} is not a value from {SOTOPIA.type_of(name).scale}", where)
    return float(value)


def _compare(values: Mapping[str, float], overall: object, where: str, reading: Reading) -> None:
    """Report a stated mean that is not the mean of the values; only the values are stored."""
    mean = sum(values.values()) / len(values)
    if isinstance(overall, int | float) and not math.isclose(overall, mean, abs_tol=0.01):
        reading.notice(
            where, f"the overall score is {overall:g}, the mean of the dimensions {mean:.3f}; it is left out"
        )
