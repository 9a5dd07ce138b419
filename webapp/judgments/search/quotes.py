"""The words that a label is about, as people read them."""

from __future__ import annotations

from dataclasses import dataclass

from training.records import Label
from webapp.judgments.annotating.turns import TurnLine

LONGEST = 400
"""Characters of a turn that a list shows."""
AROUND = 120
"""Characters of its turn that are shown on each side of marked words."""


@dataclass(frozen=True)
class Quote:
    """A turn's speaker and words; `marked` are those that a label marks, else the turn is all `before`."""

    who: str
    turn: int
    before: str
    marked: str = ""
    after: str = ""


def quotes(label: Label, lines: list[TurnLine]) -> list[Quote]:
    """Return the turns of a label, as far as the game shows them; none for a label about a seat or a game."""
    by_turn = {line.turn: line for line in lines if line.turn is not None}
    return [
        _quote(by_turn[turn], turn, label)
        for turn in (label.turn, label.other_turn)
        if turn is not None and turn in by_turn
    ]


def _quote(line: TurnLine, turn: int, label: Label) -> Quote:
    text = line.text
    marked = [at for at, place in enumerate(line.places) if (label.start or 0) <= place < (label.end or 0)]
    if not marked:
        return Quote(line.who, turn, _cut(text))
    start, end = marked[0], marked[-1] + 1
    before, after = text[:start], text[end:]
    return Quote(
        line.who,
        turn,
        before if len(before) <= AROUND else f"…{before[-AROUND:]}",
        _cut(text[start:end]),
        after if len(after) <= AROUND else f"{after[:AROUND]}…",
    )


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
