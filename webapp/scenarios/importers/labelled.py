"""Reads files of labels of Label Studio and doccano: each text or dialogue becomes a conversation of `dialogue`.

A text has one participant who speaks, and a dialogue at most two. A game that Parley exported is the same game again,
so that its new judgments join those that it has. The first problem refuses the file.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic import Field

from training.dataset import Conversation, DatasetLine, episode_hash
from training.errors import BadInput
from training.games.actions import clean
from training.games.dialogue import DialogueSettings
from training.games.log import Settings
from training.labels.codebooks import Codebook
from training.labels.exchange import doccano, label_studio_reading
from training.labels.exchange.base import Task
from training.labels.exchange.external import MOST_CHARS, Split, judgments
from training.records import Move, Scenario, SeatMove
from training.store import dumps
from webapp.scenarios.importers.reading import (
    LONGEST_SEAT,
    Progress,
    Reading,
    check_line,
    check_regular,
    noted,
    played,
    scenario_of,
)
from webapp.scenarios.signals import codebook_wanted

ALONE = ("Author", "Reader")
"""The seats of a text without authors."""
FIELDS = DialogueSettings.model_fields
_NUMBERED = re.compile(r"(\S+?)(?:\s+v([0-9]{1,6}))?")


class LabelOptions(Settings):
    """Options of an import of labels."""

    codebook: str = Field(
        default="",
        max_length=100,
        description="The codebook of the labels, such as negotiation-moves, or with v1 a version.",
    )
    split: Split = Field(
        default="text", description="Whether a text without authors becomes one turn, or each of its lines does."
    )


class LabelStudioOptions(LabelOptions):
    """Options of an import from Label Studio."""

    text: str = Field(
        default="", max_length=100, description="The field of the tasks that was labelled. Empty: the only text."
    )


def read_label_studio(path: Path, progress: Progress, options: LabelStudioOptions) -> Reading:
    """Read Label Studio's JSON export."""
    check_regular(path)
    codebook = _codebook(options.codebook)
    tasks = label_studio_reading.read(path, codebook, text=options.text, split=options.split)
    return _read(path, "label-studio", tasks, codebook, progress)


def read_doccano(path: Path, progress: Progress, options: LabelOptions) -> Reading:
    """Read doccano's JSONL export."""
    check_regular(path)
    codebook = _codebook(options.codebook)
    return _read(path, "doccano", doccano.read(path, codebook, split=options.split), codebook, progress)


def _codebook(text: str) -> Codebook:
    match = _NUMBERED.fullmatch(text.strip())
    if match is None:
        raise BadInput("name the codebook under which the labels are read", "codebook")
    number = int(match[2]) if match[2] else None
    answers: list[tuple[Any, Any]] = codebook_wanted.send(Codebook, name=match[1], number=number)
    codebook: Codebook = answers[0][1]
    return codebook


def _read(path: Path, format: str, tasks: Iterable[Task], codebook: Codebook, progress: Progress) -> Reading:
    reading, games = Reading(with_judgments=True), _Games()
    with noted(reading, path.name):
        for number, task in enumerate(tasks, 1):
            conversation = task.conversation or _recorded(task, format)
            answers = judgments(task, conversation, codebook)
            games.add(conversation.model_copy(update={"judgments": answers}), task)
            for notice in task.notices:
                reading.notice(task.where, notice)
            progress(number, number)
        reading.lines = games.lines()
        if not reading.lines:
            raise BadInput("the file contains no text", path.name)
    return reading


@dataclass
class _Games:
    """The conversations of a file by scenario; a game that occurs twice is one, with the judgments of both."""

    by_scenario: dict[str, dict[tuple[str, str], Conversation]] = field(default_factory=dict)
    texts: dict[str, tuple[str, str]] = field(default_factory=dict)
    where: dict[str, str] = field(default_factory=dict)

    def add(self, conversation: Conversation, task: Task) -> None:
        """Add the conversation of a task; raise `BadInput` for another text with the same key."""
        scenario = conversation.episode.scenario.with_seed(0)
        key = hashlib.sha256(dumps(scenario.to_dict()).encode()).hexdigest()
        name = conversation.source, episode_hash(conversation.episode.to_dict())
        if task.conversation is None and self.texts.setdefault(task.key, name) != name:
            raise BadInput(f"another text with the id {task.key!r}", task.where)
        self.where.setdefault(key, task.where)
        games = self.by_scenario.setdefault(key, {})
        before = games.get(name)
        together = (*before.judgments, *conversation.judgments) if before else conversation.judgments
        games[name] = conversation.model_copy(update={"judgments": together})

    def lines(self) -> list[DatasetLine]:
        """Return a line for each scenario, checked."""
        used: set[str] = set()
        lines = []
        for key, games in self.by_scenario.items():
            conversations = tuple(games.values())
            scenario = conversations[0].episode.scenario
            name = scenario.id if scenario.id not in used else f"{scenario.id[:191]}-{key[:8]}"
            used.add(name)
            line = DatasetLine(scenario=scenario.model_copy(update={"id": name}), conversations=conversations)
            check_line(line, self.where[key])
            lines.append(line)
        return lines


# --- the conversation of an external text -------------------------------------------------------------------------


def _recorded(task: Task, format: str) -> Conversation:
    """Return an external text or dialogue as a conversation of `dialogue`, in which its turns are spoken."""
    names, seats = _seats(task)
    texts = [text for _, text in task.texts]
    if (longest := max(map(len, texts))) > MOST_CHARS:
        raise BadInput(f"a turn has at most {MOST_CHARS} characters, not {longest}", task.where)
    scenario = _scenario(task, format, names, seats, longest)
    moves = [SeatMove(seat=seat, move=Move(action="speak", text=text)) for seat, text in zip(seats, texts, strict=True)]
    conversation = played(scenario, moves, f"{format}:{task.key}", task.where)
    written = [entry.move.text for entry in conversation.episode.moves]
    assert written == texts, "an external text is in the form of turns, which labels refer to"
    return conversation


def _seats(task: Task) -> tuple[tuple[str, str], list[int]]:
    """Return the names of the two seats, and the seat of each turn."""
    authors = list(dict.fromkeys(author for author, _ in task.texts))
    if len(authors) > 2:
        raise BadInput(f"a recorded dialogue has two participants, not {len(authors)}", task.where)
    names = [clean(author)[:LONGEST_SEAT] or ALONE[0] for author in authors]
    names += [name for name in ALONE if name not in names][-1:] if len(names) == 1 else []
    if names[0] == names[1]:
        raise BadInput(f"both participants are called {names[0]!r}", task.where)
    return (names[0], names[1]), [authors.index(author) for author, _ in task.texts]


def _scenario(task: Task, format: str, names: tuple[str, str], seats: Sequence[int], longest: int) -> Scenario:
    """Return the scenario under which the turns are possible, and after which no seat has to act."""
    alternating = all(seat != before for before, seat in pairwise(seats))
    order: dict[str, Any] = {"first_seat": seats[0]} if alternating else {"order": "random", "fixed_order": list(seats)}
    settings = {
        "scenario": "A text that was recorded and labelled elsewhere.",
        "participants": [{"goal": "The recording states no goal."}] * 2,
        "kinds": ["speak"],
        "turn_limit": max(2, len(seats)),
        "max_chars": max(FIELDS["max_chars"].default, longest),
        "source": format,
        **order,
    }
    key = re.sub(r"[^\w.-]+", "-", task.key).strip("-.") or "text"
    data = {"id": f"{format}-{key}", "game": "dialogue", "seats": list(names), "settings": settings}
    return scenario_of(data, task.where)
