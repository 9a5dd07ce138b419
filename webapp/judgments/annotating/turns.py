"""A game's turns for annotators: what people read of each, and where these words stand in the text of the move.

Labels name characters of the move's text, which may hold tags that only models read; a page names those of what it
shows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from training.errors import BadInput
from training.games import advance, make
from training.labels.codebooks import Codebook, LabelType
from training.records import ALL, Label, Message, Move, Scenario, Seat, SeatMove
from training.views import Line

MEMBERS = {"label", "turn", "start", "end", "other_turn"}
MOST_LABELS = 2000
"""Labels of one judgment."""


@dataclass(frozen=True)
class TurnLine:
    """One line of a conversation. `turn` is the index of its move, in the first line of a turn only.

    `start` is where the line begins in the move's text; None where its words are not the move's own, so that they
    cannot be labelled.
    """

    who: str
    line: Line
    seat: Seat | None = None
    turn: int | None = None
    start: int | None = None

    @property
    def length(self) -> int:
        """The characters that can be labelled; -1 where none can."""
        return -1 if self.start is None else len(self.line.text)


def turn_lines(scenario: Scenario, moves: Sequence[SeatMove]) -> list[TurnLine]:
    """Return what people read of a game, each turn with its move; raise `IllegalMove` like `replay`."""
    game, pending, waiting = make(scenario), dict[Seat, Move](), dict[Seat, int]()
    shown: list[TurnLine] = []
    count = 0

    def show(messages: Sequence[Message]) -> None:
        for message in messages:
            turn = None if message.author is None else waiting.pop(message.author, None)
            text = "" if turn is None else moves[turn].move.text
            for line in message.lines:
                who = "" if line.seat is None or line.seat >= len(scenario.seats) else scenario.seats[line.seat]
                start = text.find(line.text) if turn is not None and line.kind == "speech" else -1
                shown.append(TurnLine(who, line, message.author, turn, None if start < 0 else start))
                turn = None

    for index in range(len(moves) + 1):
        if not pending:
            messages = game.observe(ALL).messages
            show(messages[count:])
            count, waiting = len(messages), {}
        if index < len(moves):
            waiting[moves[index].seat] = index
            pending = advance(game, pending, moves[index])
    return shown


def offered(codebook: Codebook) -> list[LabelType]:
    """Return the label types that a page marks in a conversation."""
    return [label_type for label_type in codebook.labels if label_type.about in ("turn", "span", "pair")]


def markable(label_type: LabelType) -> bool:
    """Whether a page can mark it: words, a pair of turns, or a turn for which the answer is yes."""
    return label_type.kind in ("span", "relation") or (label_type.about == "turn" and label_type.yes_no)


def types_for_page(codebook: Codebook) -> str:
    """Return the label types as `static/js/annotatable.js` reads them; those without a key get digits."""
    digits = iter("1234567890")
    taken = {label_type.key for label_type in codebook.labels}
    free = (digit for digit in digits if digit not in taken)
    shapes = ("circle", "square", "triangle", "diamond", "star", "cross", "hexagon", "bar")
    return json.dumps(
        [
            {
                "name": label_type.name,
                "title": label_type.title,
                "kind": "turn" if label_type.about == "turn" else label_type.kind,
                "colour": number % 8 if label_type.colour is None else label_type.colour,
                "shape": label_type.shape or shapes[number % len(shapes)],
                "key": label_type.key or next(free, ""),
                "overlap": label_type.overlap,
            }
            for number, label_type in enumerate(offered(codebook))
        ]
    )


def labels_for_page(labels: Sequence[Label], lines: Sequence[TurnLine]) -> str:
    """Return the labels of turns as the page reads them."""
    starts = {line.turn: line.start or 0 for line in lines if line.turn is not None}
    return json.dumps([_shown(label, starts) for label in labels if label.turn is not None])


def _shown(label: Label, starts: Mapping[int, int]) -> dict[str, Any]:
    data: dict[str, Any] = {"label": label.label, "turn": label.turn}
    if label.turn is not None and label.start is not None and label.end is not None:
        shift = starts.get(label.turn, 0)
        data |= {"start": label.start - shift, "end": label.end - shift}
    if label.other_turn is not None:
        data["other_turn"] = label.other_turn
    return data


def labels_from_page(text: str, codebook: Codebook, lines: Sequence[TurnLine]) -> list[Label]:
    """Return the labels that a page sent; raise `BadInput` for what is no such list, or names no turn of the game."""
    try:
        sent = json.loads(text or "[]")
    except (ValueError, RecursionError) as error:
        raise BadInput("the labels could not be read: reload the page", "labels") from error
    if not isinstance(sent, list) or len(sent) > MOST_LABELS:
        raise BadInput(f"expected a list of at most {MOST_LABELS} labels", "labels")
    by_turn = {line.turn: line for line in lines if line.turn is not None}
    return [_label(data, codebook, by_turn) for data in sent]


def _label(data: Any, codebook: Codebook, by_turn: dict[int, TurnLine]) -> Label:
    if not isinstance(data, dict) or not {"label", "turn"} <= data.keys() <= MEMBERS:
        raise BadInput("expected labels with a turn", "labels")
    label = Label.from_dict(data)
    yes_no = codebook.type_of(label.label).yes_no
    line = by_turn.get(-1 if label.turn is None else label.turn)
    if line is None or (label.other_turn is not None and label.other_turn not in by_turn):
        raise BadInput(f"the game has no turn {label.turn if line is None else label.other_turn} to label", label.label)
    if label.start is None or label.end is None:
        return label.model_copy(update={"value": True}) if yes_no else label
    if line.start is None or label.end > line.length:
        raise BadInput(f"turn {label.turn} has no such words to label", label.label)
    return label.model_copy(update={"start": label.start + line.start, "end": label.end + line.start})
