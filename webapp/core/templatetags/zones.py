"""Tags that draw a table: its zones, seats and cards. The zones' templates stand in `templates/zones`, one a kind."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

from django import template
from django.template.loader import render_to_string
from django.templatetags.static import static
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from training.analysis import AnalysisZone, Frontier, Mark, OpinionChanges, Review
from training.records import Seat
from training.views import Circle, Item, Map, Pile, Place, PriceScale, Room, Target, Zone
from webapp.core.stage import Stage

register = template.Library()

AVATARS = 12
"""Drawings of seats."""


@register.simple_tag
def draw(zone: Zone | AnalysisZone, stage: Stage) -> SafeString:
    """One zone by the template of its kind."""
    return render_to_string(f"zones/{zone.kind}.html", {"zone": zone, "stage": stage})


@register.filter
def press(stage: Stage, choice: str) -> str:
    """The value of the button of a choice; empty if it cannot be pressed."""
    return stage.press(choice) if choice else ""


@register.filter
def named(stage: Stage, seat: Seat | None) -> str:
    """The name of a seat; empty for none."""
    return "" if seat is None else stage.name(seat)


@register.filter
def other_name(stage: Stage) -> str:
    """The name of the other seat at a table for two."""
    return stage.name(stage.other) if stage.viewer in (0, 1) else ""


PIECES = {
    "food": "food",
    "apple": "food",
    "water": "water",
    "firewood": "wood",
    "book": "book",
    "hat": "hat",
    "ball": "ball",
}
"""Drawings of items that are often divided, by the item's name without the ending of its plural."""


@register.filter
def target(room: Room, seat: Seat) -> Target | None:
    """What pressing somebody in a room does; None if nothing."""
    return next((target for target in room.targets if target.seat == seat), None)


MOST_DRAWN = 13
"""Pieces that are drawn singly; more are a number."""


@register.filter
def pieces(pile: Pile) -> list[bool]:
    """The pieces of a pile, with False for one that is spent; none where they would be too many."""
    drawn = pile.value if pile.most is None else pile.most
    return [at < pile.value for at in range(drawn)] if drawn <= MOST_DRAWN else []


@register.filter
def few(item: Item) -> bool:
    """Whether the units of an item are drawn singly."""
    return item.count <= MOST_DRAWN


@register.filter
def price_at(scale: PriceScale, price: float) -> float:
    """The place of a price on its scale, in per cent; beyond its ends, the end."""
    return round(100 * min(1.0, max(0.0, (price - scale.low) / max(1, scale.high - scale.low))), 1)


@register.simple_tag
def units(name: str, number: int, seat: Seat | None = None) -> SafeString:
    """So many units of an item, in the colour of who gets them; with its first letter where it has no drawing."""
    drawing = PIECES.get(name.lower().removesuffix("s"), "")
    letter = "" if drawing else format_html('<text x="12" y="17" text-anchor="middle">{}</text>', name[:1].upper())
    owner = "" if seat is None else f" seat-{seat}"
    sprite = static("icons.svg")
    return format_html_join(
        "",
        '<svg class="unit{}" viewBox="0 0 24 24"><use href="{}#{}"/>{}</svg>',
        [(owner, sprite, drawing or "piece", letter)] * number,
    )


@register.simple_tag
@cache
def avatar(seat: Seat) -> SafeString:
    """The drawing of a seat: a shape and a colour of its own. Its name stands beside it."""
    return format_html(
        '<svg class="avatar seat-{}" viewBox="0 0 24 24" aria-hidden="true"><use href="{}#seat-{}"/></svg>',
        seat,
        static("avatars.svg"),
        seat % AVATARS,
    )


@register.simple_tag
@cache
def icon(name: str) -> SafeString:
    """A small drawing of `static/icons.svg`, which says nothing that the text beside it does not say."""
    return format_html(
        '<svg class="icon icon-{0}" viewBox="0 0 24 24" aria-hidden="true"><use href="{1}#{0}"/></svg>',
        name,
        static("icons.svg"),
    )


RADIUS, GAP = 41.0, 10.5
"""Of a circle of seats: its radius, and how far from a seat an arrow ends; in per cent of the drawing's width."""


@dataclass(frozen=True)
class Seated:
    """A place of a circle with its number around it, from the bottom on, and its coordinates in per cent."""

    place: Place
    at: int
    x: float
    y: float


@register.simple_tag
def seated(zone: Circle, stage: Stage) -> list[Seated]:
    """The places of a circle clockwise, the viewer's own at the bottom; the style sheet has the same angles."""
    places = list(zone.places)
    start = next((at for at, place in enumerate(places) if place.seat == stage.viewer), 0)
    turned = [*places[start:], *places[:start]]
    angles = [math.radians(90 + 360 * at / len(turned)) for at in range(len(turned))]
    return [
        Seated(place, at, 50 + RADIUS * math.cos(angle), 50 + RADIUS * math.sin(angle))
        for at, (place, angle) in enumerate(zip(turned, angles, strict=True))
    ]


@register.filter
def arrows(seats: list[Seated]) -> list[dict[str, float | str]]:
    """An arrow for each vote, from the voter to whom it voted for, with the corners of its head."""
    by_seat = {item.place.seat: item for item in seats}
    votes = [(item, by_seat[item.place.voted]) for item in seats if item.place.voted in by_seat]
    return [_arrow(voter, target) for voter, target in votes if voter is not target]


def _arrow(voter: Seated, target: Seated) -> dict[str, float | str]:
    length = math.hypot(target.x - voter.x, target.y - voter.y)
    right, down = (target.x - voter.x) / length, (target.y - voter.y) / length
    gap = min(GAP, 0.3 * length)  # neighbours around a full table sit closer
    x2, y2 = target.x - gap * right, target.y - gap * down
    corners = [f"{x2 - 4 * right + 1.8 * side * down:.1f} {y2 - 4 * down - 1.8 * side * right:.1f}" for side in (1, -1)]
    return {
        "seat": voter.place.seat,
        "x1": round(voter.x + gap * right, 1),
        "y1": round(voter.y + gap * down, 1),
        "x2": round(x2, 1),
        "y2": round(y2, 1),
        "left": corners[0],
        "right": corners[1],
    }


@register.simple_tag
def map_rows(zone: Map) -> list[list[Room]]:
    """The rooms of a map, row by row."""
    rows = sorted({room.row for room in zone.rooms})
    return [sorted((room for room in zone.rooms if room.row == row), key=lambda room: room.column) for row in rows]


@register.simple_tag
def plotted(zone: Frontier) -> dict[str, Any]:
    """The coordinates of a frontier's drawing, 100 by 100 with the origin at the bottom left."""

    def at(points: tuple[float, float]) -> tuple[float, float]:
        x, y = (100 * value / most for value, most in zip(points, zone.most, strict=True))
        return round(x, 1), round(100 - y, 1)

    def joined(points: Iterable[tuple[float, float]]) -> str:
        return " ".join(f"{x},{y}" for x, y in map(at, points))

    marks = []
    for number, proposal in enumerate(zone.proposals, 1):
        x, y = at(proposal.points)
        deal = zone.agreed and number == len(zone.proposals)
        marks.append({"number": number, "by": proposal.by, "x": x, "y": y, "deal": deal})
    return {
        "outcomes": [at(points) for points in zone.outcomes],
        "front": joined(zone.efficient),
        "path": joined(proposal.points for proposal in zone.proposals),
        "marks": marks,
        "alone": at(zone.alone),
    }


GLYPHS: dict[Mark, str] = {"inaccuracy": "?!", "mistake": "?", "blunder": "??"}


@register.filter
def glyph(mark: Mark) -> str:
    """The sign of a mark, as books about chess have it."""
    return GLYPHS.get(mark, "")


WIDTH = 4
"""The width of one move in the drawing of a curve, which is 40 high."""


@register.simple_tag
def course(zone: Review) -> dict[str, Any]:
    """The coordinates of the curve of a review: seat 0 ahead is up."""
    valued = [move for move in zone.moves if move.value is not None]
    places = [(WIDTH * at, move) for at, move in enumerate(valued, 1)]
    return {
        "width": WIDTH * max(1, len(valued)),
        "points": " ".join(f"{x},{20 - 20 * (move.value or 0.0):.1f}" for x, move in places),
        "marks": [(x, move.mark) for x, move in places if move.mark in ("mistake", "blunder")],
    }


@register.simple_tag
def change_counts(zone: OpinionChanges, stage: Stage) -> list[dict[str, Any]]:
    """A row for each seat as the speaker, with how often each seat changed opinion after its words; None for itself."""
    count = Counter((change.speaker, change.voter) for change in zone.changes)
    seats = range(len(stage.names))
    return [{"seat": row, "cells": [None if row == at else count[row, at] for at in seats]} for row in seats]
