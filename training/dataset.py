"""Dataset files: JSONL, one scenario per line with its conversations; exports, runs and cold starts share this form.

A line is `{"scenario": {…}, "conversations": [{"source", "episode", "judgments"}, …]}`, or a bare scenario. Every
problem is reported with file, line and field; nothing is skipped silently.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from training.errors import BadInput
from training.reading import Record
from training.records import Episode, Judgment, Scenario
from training.store import from_json, numbered_lines

log = logging.getLogger(__name__)


class Conversation(Record):
    """A played or imported game without tokens, with its source and its judgments."""

    source: str
    episode: Episode
    judgments: tuple[Judgment, ...] = ()


class DatasetLine(Record):
    """One scenario with its conversations."""

    scenario: Scenario
    conversations: tuple[Conversation, ...] = Field(default=())

    def dumps(self) -> str:
        """Return the line as it is written to a file, without its line break.

        Keys are sorted, so that equal lines have equal hashes.
        """
        return json.dumps(self.to_dict(), ensure_ascii=False, separators=(",", ":"), allow_nan=False, sort_keys=True)


def episode_hash(episode: Mapping[str, Any]) -> str:
    """Return the SHA-256 of an episode's scenario and moves, which all copies of a game share; it is JSON data.

    Its other fields follow from them, and their form depends on the release. Keys are sorted, as the database keeps no
    order of them.
    """
    played = {"scenario": episode["scenario"], "moves": episode["moves"]}
    text = json.dumps(played, ensure_ascii=False, separators=(",", ":"), allow_nan=False, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def parse_line(text: str | bytes, where: str) -> DatasetLine:
    """Return one line of a dataset file; raise `BadInput` naming `where` and the field."""
    data = from_json(text, where)
    if not isinstance(data, dict):
        raise BadInput("expected an object with a scenario", where)
    if "game" in data:
        data = {"scenario": data}
    try:
        return DatasetLine.from_dict(data)
    except BadInput as error:
        raise BadInput(error.why, f"{where}, {error.where}" if error.where else where) from error


def read(path: Path) -> Iterator[DatasetLine]:
    """Yield the lines of a dataset file; raise `BadInput` at the first invalid line or repeated scenario id.

    A byte order mark at the beginning is skipped.
    """
    ids: set[str] = set()
    for number, text in numbered_lines(path):
        where = f"{path.name} line {number}"
        line = parse_line(text, where)
        if line.scenario.id in ids:
            raise BadInput(f"a second scenario with the id {line.scenario.id!r}", f"{where}, scenario.id")
        ids.add(line.scenario.id)
        yield line


def read_game(path: Path, game: str) -> Iterator[DatasetLine]:
    """Yield the lines of a dataset file whose scenarios play `game`; the log says how many others are left out.

    Raises `BadInput` like `read`, and at the end for a file that holds no scenario of the game.
    """
    matching, left_out, others = 0, 0, set[str]()
    for line in read(path):
        if line.scenario.game == game:
            matching += 1
            yield line
        else:
            others.add(line.scenario.game)
            left_out += 1
    if not matching:
        has = f"it has {', '.join(sorted(others))}" if others else "it is empty"
        raise BadInput(f"the file has no scenario of {game}: {has}", str(path))
    if left_out:
        log.info("%d scenarios of %s are left out: the run plays %s", left_out, ", ".join(sorted(others)), game)
