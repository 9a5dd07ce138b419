"""Texts from other tools as turns, and the marks of their authors as judgments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from training.dataset import Conversation
from training.errors import BadInput
from training.games.actions import TAG
from training.labels.codebooks import Codebook, LabelType, check_turns
from training.labels.exchange.base import Answer, Mark, Task, judgment_hash
from training.records import Judgment, Label, LabelValue

Split = Literal["text", "lines"]
"""Whether a text without authors is one turn, or each of its lines is."""
MOST_TURNS, MOST_CHARS = 400, 20_000
"""Turns of a text and characters of a turn that can be read: what `games.dialogue` allows."""
MOST_RAW = 10 * MOST_CHARS
"""Characters of a turn with all its white space."""
YES, NO = frozenset({"yes", "true", "1"}), frozenset({"no", "false", "0"})


class ExternalText:
    """A text in the form in which turns are written: on one line, single spaces, round brackets instead of tags.

    `place` gives the characters of a span of the raw text there.
    """

    def __init__(self, raw: str) -> None:
        same_length = raw
        while TAG.search(same_length):  # brackets inside others may become a tag once those are gone
            same_length = TAG.sub(lambda match: f"({match[0][1:-1]})", same_length)
        written: list[str] = []
        self._positions: list[int] = []
        gap = False
        for char in same_length:
            if char.isspace():
                gap = bool(written)
                self._positions.append(len(written))
                continue
            if gap:
                written.append(" ")
                gap = False
            self._positions.append(len(written))
            written.append(char)
        self._positions.append(len(written))
        self.raw, self.text = raw, "".join(written)

    def place(self, start: int, end: int, where: str) -> tuple[int, int]:
        """Return start and end of the same words; raise `BadInput` for a span outside of the text, or of no word."""
        if not 0 <= start < end <= len(self.raw):
            raise BadInput(f"{start} to {end} is no span of a text of {len(self.raw)} characters", where)
        begin, stop = self._positions[start], self._positions[end]
        while begin < stop and self.text[begin] == " ":
            begin += 1
        while begin < stop and self.text[stop - 1] == " ":
            stop -= 1
        if begin == stop:
            raise BadInput("the span holds no word", where)
        return begin, stop

    def is_whole(self, start: int, end: int) -> bool:
        """Return whether a span of `text` is all of it."""
        return (start, end) == (0, len(self.text))


class Document:
    """The turns of an external task.

    A text without authors is one turn, or with `split` lines each line that is not blank is one; spans of the text are
    then spans of a line. `raw` is such a text, and empty for a dialogue.
    """

    def __init__(self, texts: Sequence[tuple[str, str]], split: Split, where: str) -> None:
        self.starts: list[int] = []
        self.turns: list[tuple[str, ExternalText]] = []
        single = len(texts) == 1 and not texts[0][0]
        self.raw = texts[0][1] if single else ""
        for author, raw in texts:
            at = 0
            for piece in raw.split("\n") if split == "lines" and single else [raw]:
                if len(self.turns) == MOST_TURNS and piece.strip():
                    raise BadInput(f"at most {MOST_TURNS} turns can be read", where)
                if len(piece) > MOST_RAW:
                    raise BadInput(f"a turn has at most {MOST_CHARS} characters, not {len(piece)}", where)
                if piece.strip() or not (split == "lines" and single):
                    self.turns.append((author, ExternalText(piece)))
                    self.starts.append(at)
                at += len(piece) + 1
        self.is_text = single
        for number, (_, text) in enumerate(self.turns):
            if not text.text:
                raise BadInput(f"turn {number} has no text", where)
        if not self.turns:
            raise BadInput("there is no text", where)

    @property
    def texts(self) -> tuple[tuple[str, str], ...]:
        """The turns as (author, text)."""
        return tuple((author, text.text) for author, text in self.turns)

    def in_text(self, start: int, end: int, where: str) -> tuple[int, int, int]:
        """Return (turn, start, end) of a span of the whole text; raise `BadInput` where it is none of one turn."""
        for number, (begin, (_, text)) in enumerate(zip(self.starts, self.turns, strict=True)):
            if begin <= start <= begin + len(text.raw) and start < end:
                if end > begin + len(text.raw) and number + 1 < len(self.turns):
                    raise BadInput(f"the span {start} to {end} reaches over several lines", where)
                return (number, *text.place(start - begin, end - begin, where))
        raise BadInput(f"{start} to {end} is no span of the text", where)

    def in_turn(self, turn: int, where: str) -> ExternalText:
        """Return the text of a turn; raise `BadInput` if there is none."""
        if not 0 <= turn < len(self.turns):
            raise BadInput(f"there is no paragraph {turn}: the text has {len(self.turns)}", where)
        return self.turns[turn][1]


def placed(
    document: Document | None, label_type: LabelType, value: LabelValue, where: str,
    region: tuple[int, int, int, bool] | None, seat: int | None = None, reason: str = "",
) -> Mark:  # fmt: skip
    """Return a mark of a label type at a region (turn, start, end, whether it is the whole turn), or without one.

    A label about a turn or a seat without a region is about the only turn of a `document`, or about seat 0.
    """
    only = document is not None and len(document.turns) == 1
    if label_type.about in ("game", "seat"):
        if region is not None:
            raise BadInput(f"{label_type.name} is about {label_type.about}, not about words or a turn", where)
        if label_type.about == "game":
            return Mark(label_type, value, where, seat=seat, reason=reason)
        if seat is None and not only:
            raise BadInput(f"{label_type.name} is about a seat, which the name of its control does not end with", where)
        return Mark(label_type, value, where, seat=seat or 0, reason=reason)
    if label_type.about == "turn":
        if region is None and not only:
            raise BadInput(f"{label_type.name} is about a turn, and there is no region", where)
        if region is not None and not region[3]:
            raise BadInput(f"{label_type.name} is about a whole turn, and the region is a part of one", where)
        return Mark(label_type, value, where, turn=region[0] if region else 0, reason=reason)
    if label_type.about == "pair":
        raise BadInput(f"{label_type.name} is about a pair of turns: a relation", where)
    if region is None:
        raise BadInput(f"{label_type.name} is about words, and there is no region", where)
    return Mark(label_type, value, where, turn=region[0], start=region[1], end=region[2], reason=reason)


def marked(label_type: LabelType, where: str) -> LabelValue:
    """Return the value of a label type that other tools mark by its name alone; raise `BadInput` for other kinds."""
    if label_type.kind in ("span", "relation"):
        return None
    if label_type.yes_no:
        return True
    raise BadInput(f"{label_type.name} needs a value: {label_type.scale}", where)


def yes_or_no(text: str, label_type: LabelType, where: str) -> bool:
    """Return whether a text says yes; raise `BadInput` if it says neither yes nor no."""
    if text.casefold() in YES | NO:
        return text.casefold() in YES
    raise BadInput(f"{text[:80]!r} is no value of {label_type.name}: yes or no", where)


def judgments(task: Task, conversation: Conversation, codebook: Codebook) -> tuple[Judgment, ...]:
    """Return the task's answers as judgments of its conversation; raise `BadInput` naming the field.

    Under a codebook about seats, each seat has a judgment of its own.
    """
    digest = judgment_hash(conversation)
    return tuple(
        judgment.model_copy(update={"episode": digest})
        for answer in task.answers
        for judgment in _judgments(answer, conversation, codebook, task.where)
    )


def _judgments(answer: Answer, conversation: Conversation, codebook: Codebook, where: str) -> Iterator[Judgment]:
    if answer.skipped:
        yield answer.judgment
        return
    labels = [_label(mark) for mark in answer.marks]
    place = answer.marks[0].where.partition(", result")[0] if answer.marks else where
    try:
        codebook.check(labels, whole=False)
        moves = conversation.episode.moves
        check_turns(labels, [entry.move.text for entry in moves], len(conversation.episode.scenario.seats))
    except BadInput as error:
        raise BadInput(error.why, f"{place}, {error.where}") from error
    if answer.judgment.seat is None and codebook.about_seats and labels:
        for seat in sorted({label.seat for label in labels if label.seat is not None}):
            about = tuple(label for label in labels if label.seat == seat)
            yield answer.judgment.model_copy(update={"seat": seat, "labels": about})
    else:
        yield answer.judgment.model_copy(update={"labels": tuple(labels)})


def _label(mark: Mark) -> Label:
    try:
        mark.label_type.check_value(mark.value)
    except BadInput as error:
        raise BadInput(f"{mark.label_type.name}: {error.why}", mark.where) from error
    return Label(
        label=mark.label_type.name, value=mark.value, seat=mark.seat, turn=mark.turn, start=mark.start, end=mark.end,
        other_turn=mark.other_turn, reason=mark.reason,
    )  # fmt: skip


def number_of(author: Any, where: str) -> int | None:
    """Return the number of an annotator: a number, or an object with one as its `id`. Names and addresses are refused.

    None: the file names none.
    """
    if isinstance(author, Mapping):
        author = author.get("id")
    if author is None:
        return None
    if not isinstance(author, int) or isinstance(author, bool):
        raise BadInput("expected the number of an annotator, or an object with their `id`", where)
    return author
