"""Filters for what is said at a table: speech with its tags as labels, seat marks, results."""

import re

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from webapp.arena.models import MatchSeat

register = template.Library()

DEED = re.compile(r"<\s*([A-Za-z][\w -]{0,40})\s*>([^<>]*)<\s*/\s*\1\s*>|<\s*([A-Za-z][\w -]{0,40})\s*/\s*>")


@register.filter
def speech(text: str) -> SafeString:
    """Text with each action's tag as a label: `<propose>food 2</propose>` reads “propose: food 2”."""
    pieces: list[tuple[SafeString]] = []
    at = 0
    for found in DEED.finditer(text):
        name = (found[1] or found[3]).strip().replace("_", " ")
        said = (found[2] or "").strip()
        pieces.append((format_html("{}", text[at : found.start()]),))
        pieces.append((format_html('<span class="deed">{}</span>', f"{name}: {said}" if said else name),))
        at = found.end()
    pieces.append((format_html("{}", text[at:]),))
    return format_html_join("", "{}", pieces)


@register.filter
def mark(seat: MatchSeat) -> SafeString:
    """A seat as a small round mark with a letter; the word is read out and shown on hover."""
    sign, word = {
        MatchSeat.Kind.PERSON: ("P", "person"),
        MatchSeat.Kind.MODEL: ("M", "model"),
        MatchSeat.Kind.SCRIPTED: ("S", "scripted player"),
        MatchSeat.Kind.OPEN: ("", "empty seat"),
    }[MatchSeat.Kind(seat.kind)]
    return format_html(
        '<span class="mark mark-{kind}" title="{name}: {word}">'
        '<span aria-hidden="true">{sign}</span><span class="unseen">{name}: {word}</span></span>',
        kind=seat.kind,
        name=seat.name,
        word=word,
        sign=sign,
    )


@register.filter
def taken(seat: MatchSeat) -> SafeString:
    """A taken seat of which it is not told yet who or what sits there."""
    return format_html(
        '<span class="mark mark-taken" title="{name}: taken"><span aria-hidden="true">?</span>'
        '<span class="unseen">{name}: taken</span></span>',
        name=seat.name,
    )


@register.filter
def words(name: str) -> str:
    """A name of the code as words: `joint_points` reads “joint points”."""
    return name.replace("_", " ")


@register.filter
def at_number(mapping: dict[int, str], number: int) -> str:
    """`mapping[number]`; empty if it is not there."""
    return mapping.get(number, "")


@register.filter
def at_index(items: list[str], number: int) -> str:
    """`items[number]`; “the table” for a seat that nobody sits at (a tool's)."""
    return items[number] if number < len(items) else "the table"
