"""What every format of labels shares: what is written, what is read, and how characters are counted.

Reading raises `BadInput` naming the file, the task or line, and the field.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any

from training.dataset import Conversation, DatasetLine
from training.errors import BadInput
from training.labels.codebooks import Codebook, LabelType
from training.records import Judgment, Scenario
from training.store import dumps


@dataclass(frozen=True)
class LabelledScenario:
    """A scenario with its conversations and their judgments, which are read once, in order."""

    scenario: Scenario
    conversations: Iterable[Conversation]

    @classmethod
    def of(cls, line: DatasetLine) -> LabelledScenario:
        """Return the content of a dataset line."""
        return cls(line.scenario, line.conversations)


@dataclass(frozen=True)
class Mark:
    """A label of an external text before its place is known as characters of a move: see `training.records.Label`.

    `turn` and `other_turn` are indices into `Task.texts`, `start` and `end` characters (code points) of that text.
    `where` is the field that states it.
    """

    label_type: LabelType
    value: Any
    where: str
    seat: int | None = None
    turn: int | None = None
    start: int | None = None
    end: int | None = None
    other_turn: int | None = None
    reason: str = ""


@dataclass(frozen=True)
class Answer:
    """One author's marks of a task. `judgment` has all fields of the judgment but labels and episode.

    `skipped`: the author could not judge it.
    """

    judgment: Judgment
    marks: tuple[Mark, ...] = ()
    skipped: bool = False


@dataclass(frozen=True)
class Task:
    """One text or dialogue of an external file with the answers of its authors: `texts` are (author, text) pairs.

    The author of a text may be empty. `conversation` is the game that Parley exported, without judgments; None for a
    external text. Turns are then indices of its moves.
    """

    key: str
    where: str
    texts: tuple[tuple[str, str], ...] = ()
    answers: tuple[Answer, ...] = ()
    conversation: Conversation | None = None
    notices: tuple[str, ...] = field(default=())


@dataclass(frozen=True)
class Format:
    """One form of a file of labels. `suffix` ends the file's name.

    `write` takes the codebook of the queue and the scenarios, and yields pieces of the file; the same input gives the
    same text. `read` yields the conversations of such a file with their judgments under the codebook; None for a format
    that is written alone.
    """

    name: str
    title: str
    suffix: str
    content_type: str
    write: Callable[[Codebook, Iterable[LabelledScenario]], Iterator[str]]
    read: Callable[[Path, Codebook], Iterator[Conversation]] | None = None


def judgment_hash(conversation: Conversation) -> str:
    """Return the SHA-256 by which judgments name their episode."""
    return hashlib.sha256(dumps(conversation.episode.to_dict()).encode()).hexdigest()


def type_named(codebook: Codebook, name: str, where: str) -> LabelType:
    """Return the label type of a name as other tools write it: our name, its title, or either in another spelling."""
    label_type = find_type(codebook, name)
    if label_type is None:
        known = ", ".join(each.name for each in codebook.labels)
        raise BadInput(f"{codebook.name} v{codebook.version} has no label {name[:80]!r}; it has {known}", where)
    return label_type


def find_type(codebook: Codebook, name: str) -> LabelType | None:
    """Return the label type of a name as other tools write it; None if there is none."""
    exact = next((each for each in codebook.labels if each.name == name), None)
    spelt = _spelling(name)
    return exact or next((each for each in codebook.labels if spelt in (each.name, _spelling(each.title))), None)


def option_named(label_type: LabelType, name: str, where: str) -> str:
    """Return the name of an option by its name or title in any spelling; raise `BadInput` for another one."""
    spelt = _spelling(name)
    for option in label_type.options:
        if name == option.name or spelt in (option.name, _spelling(option.title)):
            return option.name
    raise BadInput(f"{name[:80]!r} is no value of {label_type.name}: {label_type.scale}", where)


def _spelling(name: str) -> str:
    return "_".join("".join(char if char.isalnum() else " " for char in name.casefold()).split())


class Utf16:
    """Positions in a text by UTF-16 code units, as JavaScript counts them, and by code points."""

    def __init__(self, text: str) -> None:
        self._units: Sequence[int] = [0, *accumulate(1 + (char > "\uffff") for char in text)]

    @property
    def length(self) -> int:
        """The code units of the whole text."""
        return self._units[-1]

    def units(self, position: int) -> int:
        """Return the code units before a code point."""
        return self._units[position]

    def position(self, units: int, where: str) -> int:
        """Return the code points before a code unit; raise `BadInput` outside of the text or inside a character."""
        index = bisect_left(self._units, units) if units >= 0 else len(self._units)
        if index == len(self._units) or self._units[index] != units:
            inside = 0 <= units <= self.length
            why = "inside a character" if inside else f"outside of the text, which has {self.length}"
            raise BadInput(f"the position {units} is {why}", where)
        return index


def need(data: Any, key: str, kind: type | tuple[type, ...], where: str) -> Any:
    """Return `data[key]`; raise `BadInput` if it is missing or of another type. A truth value is no number."""
    if not isinstance(data, Mapping):
        raise BadInput(f"expected an object, not {type(data).__name__}", where)
    if key not in data:
        raise BadInput("missing", f"{where}, {key}")
    value = data[key]
    kinds = kind if isinstance(kind, tuple) else (kind,)
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        raise BadInput(
            f"expected {' or '.join(k.__name__ for k in kinds)}, not {type(value).__name__}", f"{where}, {key}"
        )
    return value
