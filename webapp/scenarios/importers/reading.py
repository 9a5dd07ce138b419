"""The result of an importer: dataset lines, errors that refuse the whole import, and notices that do not."""

from __future__ import annotations

import json
import re
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from training.dataset import Conversation, DatasetLine
from training.errors import BadInput, IllegalMove, ParleyError, boundary
from training.games import Game, advance, lookup, make, replay
from training.games.actions import plain, write
from training.games.log import check_settings
from training.records import Episode, Move, Scenario, SeatMove
from training.store import check_file, unique_keys

Progress = Callable[[int, int], None]
"""Called with (records done, records in all)."""

MAX_PROBLEMS = 200
"""The largest number of listed errors; a file with more is of another format."""

MAX_NOTICES = 2_000
"""The largest number of listed notices: an upload of a few megabytes may cause one per line."""

LONGEST_TEXT = 600
"""Characters of a place or a reason in a report; both may contain keys of the file."""

LONGEST_SOURCE = 200
"""Characters of where a conversation came from, as `StoredConversation` holds them."""

LONGEST_SEAT = 80
"""Characters of a seat's name, as a table that is set up from the scenario holds them."""


@dataclass
class Reading:
    """The outcome of reading one upload. With any error nothing of it may be stored."""

    lines: list[DatasetLine] = field(default_factory=list)
    errors: list[dict[str, str]] = field(default_factory=list)
    notices: list[dict[str, str]] = field(default_factory=list)
    with_judgments: bool = False
    """Whether the format has judgments, so that the report counts them."""

    def error(self, problem: BadInput) -> None:
        """Note why the import is refused; beyond `MAX_PROBLEMS` only the last line says that there are more."""
        _list(self.errors, problem.where, problem.why, MAX_PROBLEMS)

    def notice(self, where: str, why: str) -> None:
        """Note something that was left out, and why; beyond `MAX_NOTICES` likewise."""
        _list(self.notices, where, why, MAX_NOTICES)

    @property
    def conversations(self) -> int:
        """How many conversations were read."""
        return sum(len(line.conversations) for line in self.lines)

    @property
    def judgments(self) -> int:
        """How many judgments were read with the conversations."""
        return sum(len(conversation.judgments) for line in self.lines for conversation in line.conversations)

    @property
    def labels(self) -> int:
        """How many labels these judgments have."""
        conversations = (conversation for line in self.lines for conversation in line.conversations)
        return sum(len(judgment.labels or ()) for each in conversations for judgment in each.judgments)

    def report(self) -> dict[str, Any]:
        """Return what `import_dataset --json` prints."""
        judged = {"judgments": self.judgments, "labels": self.labels} if self.with_judgments else {}
        return {
            "scenarios": len(self.lines),
            "conversations": self.conversations,
            **judged,
            "errors": self.errors,
            "notices": self.notices,
        }


def _list(entries: list[dict[str, str]], where: str, why: str, most: int) -> None:
    if len(entries) < most:
        entries.append({"where": _clean(where), "why": _clean(why)})
    elif len(entries) == most:
        entries.append({"where": "", "why": f"more than {most} of them; the rest is not listed"})


@contextmanager
def noted(reading: Reading, where: str) -> Iterator[None]:
    """Turn exceptions while reading one record into errors of the reading, including bugs of the reader.

    An uncaught exception would leave no report, and the import would be retried forever.
    """
    try:
        with boundary():
            yield
    except BadInput as error:
        reading.error(error)
    except ParleyError as error:
        reading.error(BadInput(f"cannot be read: {error}", where))


def check_regular(path: Path) -> None:
    """Raise `BadInput` with the file's name for what is no regular file."""
    try:
        check_file(path)
    except BadInput as error:
        raise BadInput(error.why, path.name) from error


def read_bytes(path: Path) -> bytes:
    """Return a file's content without a byte order mark; raise `BadInput` for what is no regular file."""
    check_regular(path)
    return path.read_bytes().removeprefix(BOM_UTF8)


def read_text(path: Path) -> str:
    """Return a file's text; raise `BadInput` for what is no regular file or not UTF-8."""
    try:
        return read_bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(f"not UTF-8 at byte {error.start}", path.name) from error


def text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file that are not blank, with their numbers."""
    return ((number, text) for number, text in enumerate(read_text(path).split("\n"), 1) if text.strip())


def load_json(path: Path) -> Any:
    """Return a JSON file's content; raise `BadInput` with line and column."""
    text = read_text(path)
    try:
        return json.loads(text, object_pairs_hook=unique_keys)
    except json.JSONDecodeError as error:
        raise BadInput(f"not JSON: {error.msg}", f"{path.name} line {error.lineno} column {error.colno}") from error
    except RecursionError as error:
        raise BadInput("not JSON: nested too deeply", path.name) from error
    except ValueError as error:
        raise BadInput(f"not JSON: {error}", path.name) from error


def scenario_of(data: Mapping[str, Any], where: str) -> Scenario:
    """Return a scenario; raise `BadInput` naming the place in the file besides the field."""
    try:
        return Scenario.from_dict(data)
    except BadInput as error:
        raise BadInput(error.why, f"{where}, scenario.{error.where}") from error


WHOLE = re.compile(r"[0-9]{1,9}")
"""A whole number in a text. `str.isdigit` takes more than `int` reads, such as superscripts and too many digits."""


def need(record: Any, key: str, kind: type, where: str) -> Any:
    """Return `record[key]`; raise `BadInput` if it is missing or not a `kind`."""
    if not isinstance(record, dict):
        raise BadInput("expected an object", where)
    if key not in record:
        raise BadInput("missing", f"{where}, {key}")
    value = record[key]
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise BadInput(f"expected {kind.__name__}, not {type(value).__name__}", f"{where}, {key}")
    return value


_PRINTED = re.compile(r"[^\x00-\x1f\x7f]+")
_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


def storable(line: DatasetLine, where: str) -> DatasetLine:
    """Return the line; raise `BadInput` for text that the database cannot store, or an id without a unique address."""
    _check_lengths(line, where)
    key = line.scenario.id
    if not _PRINTED.fullmatch(key) or {"", ".", ".."} & set(key.split("/")) or key.endswith("/edit"):
        why = "an id has no control characters, no empty, '.' or '..' part between slashes, and does not end in '/edit'"
        raise BadInput(why, f"{where}, scenario.id")
    text = line.dumps()
    if _NUL.search(text):
        raise BadInput("a text contains a NUL character, which cannot be stored", where)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise BadInput("a text contains an unpaired surrogate, which is not a character", where) from error
    return line


def _check_lengths(line: DatasetLine, where: str) -> None:
    texts = [(f"scenario.seats.{seat}", name, LONGEST_SEAT) for seat, name in enumerate(line.scenario.seats)]
    texts += [(f"conversations.{n}.source", c.source, LONGEST_SOURCE) for n, c in enumerate(line.conversations)]
    for place, text, longest in texts:
        if len(text) > longest:
            raise BadInput(f"at most {longest} characters, not {len(text)}", f"{where}, {place}")


def _clean(text: str) -> str:
    """Return a text for a report: at most `LONGEST_TEXT` characters, unstorable ones replaced by question marks."""
    if len(text) > LONGEST_TEXT:
        text = f"{text[: LONGEST_TEXT // 2]} … {text[-LONGEST_TEXT // 2 :]}"
    return text.encode("utf-8", "replace").decode().replace("\x00", "?")


def check_line(line: DatasetLine, where: str) -> None:
    """Make the scenario's game and replay its conversations; raise `BadInput` naming scenario, setting or move."""
    storable(line, where)
    try:
        check_settings(lookup(line.scenario.game).settings, line.scenario.settings)
        make(line.scenario)
    except BadInput as error:
        raise BadInput(error.why, f"{where}, scenario.{error.where}") from error
    for number, conversation in enumerate(line.conversations):
        try:
            replay(conversation.episode.scenario, conversation.episode.moves)
        except (IllegalMove, BadInput) as error:
            raise BadInput(f"does not replay: {error}", f"{where}, conversations.{number}") from error
        for place, judgment in enumerate(conversation.judgments):
            if judgment.seat is not None and not 0 <= judgment.seat < len(conversation.episode.scenario.seats):
                raise BadInput("no such seat", f"{where}, conversations.{number}.judgments.{place}.seat")


def played(scenario: Scenario, moves: Iterable[SeatMove], source: str, where: str) -> Conversation:
    """Return a conversation in which every move has its canonical text, with the returns of Parley's engine.

    Raises `BadInput` naming the move that our rules do not allow.
    """
    game = make(scenario)
    pending: dict[int, Move] = {}
    entries = []
    for number, entry in enumerate(moves):
        try:
            entry = SeatMove(seat=entry.seat, move=_with_text(game, entry))  # noqa: PLW2901 - the same move, written out
            pending = advance(game, pending, entry)
        except (IllegalMove, ValueError) as error:
            raise BadInput(f"move {number} is not possible: {error}", where) from error
        entries.append(entry)
    episode = Episode(
        scenario=scenario,
        moves=tuple(entries),
        returns=dict(game.returns()),
        metrics=dict(game.metrics()),
        seat_metrics={seat: dict(metrics) for seat, metrics in game.seat_metrics().items()},
        roles=game.roles(),
    )
    return Conversation(source=source, episode=episode)


def _with_text(game: Game, entry: SeatMove) -> Move:
    action = next((a for a in game.observe(entry.seat).actions if a.name == entry.move.action), None)
    if action is None or entry.move.origin != "seat":
        return entry.move
    text = write(action, entry.move.args, plain(entry.move.text))
    return entry.move.model_copy(update={"text": text})
