"""What a judge is asked, and how its answer is read, under a codebook about more than numbers of one seat.

The judge lists labels, each with its place: a seat, a turn by its number, another turn, or words that it quotes and
that must stand exactly once in their turn. An answer that does not fit the codebook raises `ValueError` with the label
and the reason, and nothing of it is used: there are no defaults.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from training.engines.base import ChatMessage
from training.errors import BadInput
from training.labels.codebooks import PLACES, SUBJECTS, Codebook, LabelType
from training.records import Label, LabelValue, Seat
from training.rewards.prompts import RULES, Transcript, chat, form
from training.text.messages import neutralise

HOW = """\
List a label for every question about the conversation or a seat, unless it may be left out, and the labels of turns, \
words and pairs only where they apply. `seat` and `turn` are numbers. A quote repeats words of the turn exactly, as \
the turn has them, and so many of them that they stand in it only once. Leave out every field that a label type does \
not have."""


@dataclass(frozen=True, slots=True)
class TurnWords:
    """A turn that can be labelled: who moved, and the text that a judge reads under its number in the transcript.

    `places` says for each character of `text` where it stands in the text of the move; it is empty where the words are
    not the move's own, so that they cannot be marked.
    """

    seat: Seat
    text: str
    places: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """What is labelled: a whole game, or one `seat` of it, whose `turns` are named by the index of their move.

    `roles` are those of all seats, empty texts in a game without roles.
    """

    codebook: Codebook
    transcript: Transcript
    turns: Mapping[int, TurnWords]
    roles: Sequence[str]
    seat: Seat | None = None

    def asked(self, label_type: LabelType) -> list[Seat]:
        """Return the seats that a label type asks about."""
        seats = range(len(self.roles)) if self.seat is None else [self.seat]
        return [seat for seat in seats if label_type.asks(self.roles[seat])]


class Mark(BaseModel):
    """One label of an answer."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)

    label: str
    seat: int | None = None
    turn: int | None = None
    other_turn: int | None = None
    quote: str | None = None
    value: bool | int | float | str | list[str] | list[int] | None = None
    reason: str = ""


class Answer(BaseModel):
    """The form of an answer."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)

    target: str
    labels: list[Mark]


def messages(question: Question) -> list[ChatMessage]:
    """Return the chat that asks for the labels; raise `JudgeError` for a transcript that is empty or too long."""
    whole = question.seat is None
    subject = "the whole conversation" if whole else f"one participant only: seat {question.seat}"
    parts = [
        RULES,
        f"Label {subject}. A line with a number is the turn of this number. Label types:\n",
        *(_described(question, label_type) for label_type in question.codebook.labels),
        f"\n{HOW}",
    ]
    fields = ("seat", "turn", "other_turn", "quote", "value")
    shape = {"label": "its name", "reason": "one sentence", **dict.fromkeys(fields, "if the label type has it")}
    parts.append(form({"target": question.transcript.target, "labels": [shape]}))
    return chat(parts, question.transcript, question.seat)


def _described(question: Question, label_type: LabelType) -> str:
    fields = [*_fields(label_type), *(["value"] if label_type.kind not in ("span", "relation") else [])]
    notes = [f"about {SUBJECTS[label_type.about]}", f"fields: {', '.join(fields)}"]
    if (words := _values(label_type)) is not None:
        notes.append(f"value: {words}")
    if label_type.roles:
        notes.append(f"of seat {', '.join(map(str, question.asked(label_type)))} only")
    if label_type.when is not None:
        notes.append(f"only where {label_type.when}")
    if label_type.about in ("seat", "game") and not label_type.required:
        notes.append("may be left out")
    meanings = "; ".join(f"{value:g} = {text}" for value, text in label_type.meanings if not label_type.yes_no)
    examples = [f"{word}: {'; '.join(texts)}" for word, texts in _examples(label_type) if texts]
    after = "".join(f" {text}." for text in [meanings, *examples] if text)
    return neutralise(f"- {label_type.name} ({'; '.join(notes)}): {label_type.definition}{after}")


def _fields(label_type: LabelType) -> list[str]:
    """The fields of an answer that say where a label is."""
    places = PLACES[label_type.about]
    return [name for name in ("seat", "turn", "other_turn") if name in places] + ["quote"] * ("start" in places)


def _values(label_type: LabelType) -> str | None:
    if label_type.yes_no:
        return "true" if label_type.about in ("turn", "span", "pair") else "true or false"
    return None if label_type.kind in ("span", "relation") else label_type.scale


def _examples(label_type: LabelType) -> list[tuple[str, Sequence[str]]]:
    return [("Counts", label_type.positive), ("Does not count", label_type.negative)]


def labels_of(answer: Answer, question: Question) -> tuple[Label, ...]:
    """Return the labels of an answer; raise `ValueError` naming the label that does not fit.

    What it says goes back to the judge: it quotes nothing of the answer or the transcript.
    """
    if answer.target != question.transcript.target:
        raise ValueError(f"target must be {question.transcript.target}")
    labels = tuple(_label(number, mark, question) for number, mark in enumerate(answer.labels, 1))
    try:
        if question.seat is None:
            movers = {turn: words.seat for turn, words in question.turns.items()}
            question.codebook.check_game(labels, question.roles, movers)
        else:
            question.codebook.check(labels)
    except BadInput as error:
        raise ValueError(f"{error.where}: {error.why}") from error
    return labels


def _label(number: int, mark: Mark, question: Question) -> Label:
    """Return one label; of a label type that the codebook does not have the message has the number alone."""
    label_type = next((each for each in question.codebook.labels if each.name == mark.label), None)
    if label_type is None:
        raise ValueError(f"labels.{number}: there is no label type of this name")
    where = f"labels.{number}, {label_type.name}" + (f" in turn {mark.turn}" if mark.turn is not None else "")
    fields = {name for name in ("seat", "turn", "other_turn", "quote") if getattr(mark, name) is not None}
    if fields != set(_fields(label_type)):
        wanted = ", ".join(_fields(label_type)) or "none: it is about the conversation"
        raise ValueError(f"{where}: the fields of its place are {wanted}")
    for turn in (mark.turn, mark.other_turn):
        if turn is not None and turn not in question.turns:
            raise ValueError(f"{where}: there is no turn {turn}")
    seat = mark.seat if mark.turn is None else question.turns[mark.turn].seat
    if seat is not None and seat not in question.asked(label_type):
        raise ValueError(f"{where}: it is not asked about seat {seat}")
    start, end = (None, None) if mark.quote is None else _span(mark.quote, question.turns[mark.turn or 0], where)
    return Label(
        label=label_type.name,
        value=_value(label_type, mark, where),
        seat=mark.seat,
        turn=mark.turn,
        start=start,
        end=end,
        other_turn=mark.other_turn,
        reason=mark.reason[:1000],
    )


def _value(label_type: LabelType, mark: Mark, where: str) -> LabelValue:
    value: LabelValue = tuple(mark.value) if isinstance(mark.value, list) else mark.value  # type: ignore[assignment]
    if label_type.kind == "scale" and type(mark.value) is int:
        value = float(mark.value)
    try:
        label_type.check_value(value)
    except BadInput as error:
        raise ValueError(f"{where}: {error.why}") from error
    return value


def _span(quote: str, turn: TurnWords, where: str) -> tuple[int, int]:
    """Return where the quoted words begin and end in the text of the move."""
    first = turn.text.find(quote) if quote else -1
    if first < 0 or not turn.places:
        raise ValueError(f"{where}: the quoted words are not in this turn")
    if turn.text.find(quote, first + 1) >= 0:
        raise ValueError(f"{where}: the quoted words stand in this turn more than once: quote more")
    return turn.places[first], turn.places[first + len(quote) - 1] + 1
