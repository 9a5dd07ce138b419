"""The zones of a table that a picture draws: boards, cards, stacks, counters and seats in a circle.

Each function draws below `y`, at most `most` pixels wide from `x` on, and returns where it ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as ET

from training.views import Board, Circle, Counters, Hand, Stacks, Zone
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
DRAWN = (Board, Hand, Stacks, Counters, Circle)


def drawn(zones: Sequence[Zone]) -> list[Zone]:
    """Return the zones that a picture draws; the lines of what happened say the rest."""
    return [zone for zone in zones if isinstance(zone, DRAWN)]


def draw(parent: ET.Element, zone: Zone, names: Sequence[str], x: float, y: float, most: float) -> float:
    """Draw a zone."""
    match zone:
        case Board():
            return _board(parent, zone, x, y, most)
        case Hand():
            return _hand(parent, zone, x, y, most)
        case Stacks():
            return _stacks(parent, zone, x, y)
        case Counters():
            return _counters(parent, zone, x, y)
        case Circle():
            return _circle(parent, zone, names, x, y, most)
    return y


def described(zones: Sequence[Zone], names: Sequence[str]) -> str:
    """Return what the drawn zones show, in words."""
    parts = []
    for zone in zones:
        match zone:
            case Board():
                pieces = [square.label for row in zone.rows for square in row if square.seat is not None]
                parts.append("; ".join(pieces) or "an empty board")
            case Hand() if zone.cards:
                parts.append(f"{zone.title}: {', '.join(card.label for card in zone.cards)}")
            case Stacks():
                parts += [f"{stack.suit}: {stack.height} of {stack.most}" for stack in zone.stacks]
            case Counters():
                parts += [f"{pile.name}: {pile.value}" for pile in zone.piles]
            case Circle():
                parts += [f"{names[place.seat]} is out" for place in zone.places if place.out]
    return "; ".join(parts)


def _board(parent: ET.Element, zone: Board, x: float, y: float, most: float) -> float:
    columns = len(zone.rows[0])
    side = min(most / columns, 300 / len(zone.rows))
    group = add(parent, "g", transform=f"translate({number(x)} {number(y)})")
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
    return y + side * len(zone.rows) + 14


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


def _titled(parent: ET.Element, text: str, x: float, y: float) -> float:
    write(parent, text, x, y + 11, font_size=12, fill=MUTED)
    return y + 17


def _card(parent: ET.Element, face: str, suit: str, x: float, y: float) -> None:
    ink = SUITS.get(suit, INK)
    add(parent, "rect", x=x, y=y, width=CARD, height=CARD_HEIGHT, rx=5, fill=PAPER if face else SHADE, stroke=ink)
    if face:
        write(parent, face, x + CARD / 2, y + 26, font_size=18, font_weight="700", fill=ink, text_anchor="middle")
    if suit:
        write(parent, suit, x + CARD / 2, y + 41, font_size=9, fill=ink, text_anchor="middle")


def _hand(parent: ET.Element, zone: Hand, x: float, y: float, most: float) -> float:
    top = _titled(parent, zone.title, x, y)
    a_row = max(1, int((most + GAP) // (CARD + GAP)))
    for at, card in enumerate(zone.cards[:a_row]):
        _card(parent, card.face, card.suit, x + at * (CARD + GAP), top)
    if not zone.cards:
        return top
    return top + CARD_HEIGHT + 10


def _stacks(parent: ET.Element, zone: Stacks, x: float, y: float) -> float:
    top = _titled(parent, zone.title, x, y)
    for at, stack in enumerate(zone.stacks):
        _card(parent, str(stack.height or ""), stack.suit, x + at * (CARD + GAP), top)
    return top + CARD_HEIGHT + 10


def _counters(parent: ET.Element, zone: Counters, x: float, y: float) -> float:
    top = _titled(parent, zone.title, x, y)
    for pile in zone.piles:
        most = "" if pile.most is None else f" of {pile.most}"
        write(parent, f"{pile.name}: {pile.value}{most}", x, top + 12)
        top += 17
    return top + 6


def _circle(parent: ET.Element, zone: Circle, names: Sequence[str], x: float, y: float, most: float) -> float:
    top = _titled(parent, zone.title, x, y)
    for place in zone.places:
        avatar(parent, place.seat, x, top, 16)
        facts = [place.role, f"out: {place.left}" if place.out else ""]
        facts.append("" if place.voted is None else f"votes for {names[place.voted]}")
        beside = ", ".join(fact for fact in facts if fact)
        text = f"{names[place.seat]}{f' ({beside})' if beside else ''}"
        for line in wrapped(text, most - 22, 13)[:1]:
            weight = "700" if place.speaks else "400"
            write(parent, line, x + 22, top + 13, fill=MUTED if place.out else INK, font_weight=weight)
        top += 22
    return top + 6
