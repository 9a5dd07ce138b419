"""The zones of a table that a picture draws, by their kind in `DRAWINGS`. `LEFT_OUT` are the others.

A `draw` function draws a zone below `space.y`, from `space.x` on and at most `space.most` pixels wide, and returns its
lower end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree as ET

from training.views import (
    Board,
    Cells,
    Circle,
    Counters,
    Entries,
    Hand,
    Map,
    Passages,
    Portraits,
    PriceScale,
    SearchField,
    Stacks,
    Tray,
    Zone,
)
from webapp.arena.pictures.drawing import (
    EDGE,
    INK,
    MUTED,
    PAPER,
    SHADE,
    SUITS,
    add,
    avatar,
    colour,
    number,
    wrapped,
    write,
)

CARD, CARD_HEIGHT, GAP = 34.0, 46.0, 6.0


@dataclass(frozen=True)
class Space:
    """Where a zone is drawn: into which element, from which point, how wide, and the names of the seats."""

    parent: ET.Element
    names: Sequence[str]
    x: float
    y: float
    most: float


@dataclass(frozen=True)
class Drawing:
    """How a kind of zone is drawn, and what it shows in words, given the names of the seats."""

    draw: Callable[[Any, Space], float]
    words: Callable[[Any, Sequence[str]], list[str]]


def drawn(zones: Sequence[Zone]) -> list[Zone]:
    """Return the zones that a picture draws; the lines of what happened say the rest."""
    return [zone for zone in zones if type(zone) in DRAWINGS]


def draw(zone: Zone, space: Space) -> float:
    """Draw one of the zones of `drawn`."""
    return DRAWINGS[type(zone)].draw(zone, space)


def described(zones: Sequence[Zone], names: Sequence[str]) -> str:
    """Return what zones of `drawn` show, in words."""
    return "; ".join(part for zone in zones for part in DRAWINGS[type(zone)].words(zone, names))


# --- boards ----------------------------------------------------------------------------------------------------------


def _board(zone: Board, space: Space) -> float:
    columns = len(zone.rows[0])
    side = min(space.most / columns, 300 / len(zone.rows))
    group = add(space.parent, "g", transform=f"translate({number(space.x)} {number(space.y)})")
    for down, row in enumerate(zone.rows):
        for at, square in enumerate(row):
            left, top = at * side, down * side
            add(
                group, "rect", x=left, y=top, width=side, height=side, fill=SHADE if square.last else PAPER, stroke=EDGE
            )
            if square.seat is not None:
                _piece(group, zone.pieces, square.seat, left + side / 2, top + side / 2, 0.36 * side)
    for (first_row, first), (last_row, last) in zone.lines:
        ends = {"x1": (first + 0.5) * side, "y1": (first_row + 0.5) * side}
        ends |= {"x2": (last + 0.5) * side, "y2": (last_row + 0.5) * side}
        add(group, "line", stroke=INK, stroke_width=4, stroke_linecap="round", **ends)
    return space.y + side * len(zone.rows) + 14


def _board_words(zone: Board, names: Sequence[str]) -> list[str]:
    pieces = [square.label for row in zone.rows for square in row if square.seat is not None]
    return ["; ".join(pieces) or "an empty board"]


def _piece(parent: ET.Element, pieces: str, seat: int, x: float, y: float, radius: float) -> None:
    if pieces == "discs":
        add(parent, "circle", cx=x, cy=y, r=radius, fill=colour(seat))
        if seat == 1:
            add(parent, "circle", cx=x, cy=y, r=0.5 * radius, fill=PAPER)
        return
    line: dict[str, str | float] = {"fill": "none", "stroke": colour(seat), "stroke_width": radius / 3}
    if seat == 1:
        add(parent, "circle", cx=x, cy=y, r=radius, **line)
        return
    left, right, top, bottom = (number(value) for value in (x - radius, x + radius, y - radius, y + radius))
    add(
        parent,
        "path",
        d=f"M{left} {top}L{right} {bottom}M{right} {top}L{left} {bottom}",
        stroke_linecap="round",
        **line,
    )


# --- cards, counters and seats ---------------------------------------------------------------------------------------


def _titled(text: str, space: Space) -> float:
    write(space.parent, text, space.x, space.y + 11, font_size=12, fill=MUTED)
    return space.y + 17


def _card(parent: ET.Element, face: str, suit: str, x: float, y: float) -> None:
    ink = SUITS.get(suit, INK)
    add(parent, "rect", x=x, y=y, width=CARD, height=CARD_HEIGHT, rx=5, fill=PAPER if face else SHADE, stroke=ink)
    if face:
        write(parent, face, x + CARD / 2, y + 26, font_size=18, font_weight="700", fill=ink, text_anchor="middle")
    if suit:
        write(parent, suit, x + CARD / 2, y + 41, font_size=9, fill=ink, text_anchor="middle")


def _hand(zone: Hand, space: Space) -> float:
    top = _titled(zone.title, space)
    a_row = max(1, int((space.most + GAP) // (CARD + GAP)))
    for at, card in enumerate(zone.cards[:a_row]):
        _card(space.parent, card.face, card.suit, space.x + at * (CARD + GAP), top)
    return top + CARD_HEIGHT + 10 if zone.cards else top


def _hand_words(zone: Hand, names: Sequence[str]) -> list[str]:
    return [f"{zone.title}: {', '.join(card.label for card in zone.cards)}"] if zone.cards else []


def _stacks(zone: Stacks, space: Space) -> float:
    top = _titled(zone.title, space)
    for at, stack in enumerate(zone.stacks):
        _card(space.parent, str(stack.height or ""), stack.suit, space.x + at * (CARD + GAP), top)
    return top + CARD_HEIGHT + 10


def _stacks_words(zone: Stacks, names: Sequence[str]) -> list[str]:
    return [f"{stack.suit}: {stack.height} of {stack.most}" for stack in zone.stacks]


def _counters(zone: Counters, space: Space) -> float:
    top = _titled(zone.title, space)
    for pile in zone.piles:
        most = "" if pile.most is None else f" of {pile.most}"
        write(space.parent, f"{pile.name}: {pile.value}{most}", space.x, top + 12)
        top += 17
    return top + 6


def _counters_words(zone: Counters, names: Sequence[str]) -> list[str]:
    return [f"{pile.name}: {pile.value}" for pile in zone.piles]


def _circle(zone: Circle, space: Space) -> float:
    top = _titled(zone.title, space)
    for place in zone.places:
        avatar(space.parent, place.seat, space.x, top, 16)
        facts = [place.role, f"out: {place.left}" if place.out else ""]
        facts.append("" if place.voted is None else f"votes for {space.names[place.voted]}")
        beside = ", ".join(fact for fact in facts if fact)
        text = f"{space.names[place.seat]}{f' ({beside})' if beside else ''}"
        for line in wrapped(text, space.most - 22, 13)[:1]:
            weight = "700" if place.speaks else "400"
            ink = MUTED if place.out else INK
            write(space.parent, line, space.x + 22, top + 13, fill=ink, font_weight=weight)
        top += 22
    return top + 6


def _circle_words(zone: Circle, names: Sequence[str]) -> list[str]:
    return [f"{names[place.seat]} is out" for place in zone.places if place.out]


DRAWINGS: dict[type[Zone], Drawing] = {
    Board: Drawing(_board, _board_words),
    Hand: Drawing(_hand, _hand_words),
    Stacks: Drawing(_stacks, _stacks_words),
    Counters: Drawing(_counters, _counters_words),
    Circle: Drawing(_circle, _circle_words),
}
"""The kinds of zones that pictures draw."""
LEFT_OUT: frozenset[type[Zone]] = frozenset({Cells, Tray, PriceScale, Map, Portraits, Passages, Entries, SearchField})
"""The kinds that pictures leave out: mostly text, or controls of the acting person. The log lines say what happened."""
