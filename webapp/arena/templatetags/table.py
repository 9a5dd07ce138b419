"""Filters for the pages of tables: a model's words with tags as labels, seat marks, channels."""

import re
from collections.abc import Sequence

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from training.records import Viewer
from webapp.arena.models import MatchSeat
from webapp.arena.setup.rules import in_words
from webapp.runs.episodes.viewer import LogRow

register = template.Library()

MARK = re.compile(r"<(?!\s*/)([^<>]{1,80})>")
DEED = re.compile(
    rf"<\s*([A-Za-z][\w -]{{0,40}})\s*>([^<>]*(?:{MARK.pattern}[^<>]*){{0,4}})<\s*/\s*\1\s*>"
    r"|<\s*(?P<alone>[A-Za-z][\w -]{0,40})\s*/\s*>"
)
"""A tag with its content, which may contain a few marked choices; or an empty tag."""


register.filter("rules", in_words)


@register.filter
def speech(text: str) -> SafeString:
    """Text with each action's tag as a label: `<propose>food 2</propose>` becomes “propose: food 2”.

    A marked choice replaces the whole tag: `<answer><BET></answer>` becomes “BET”.
    """
    pieces: list[tuple[SafeString]] = []
    at = 0
    for match in DEED.finditer(text):
        pieces.append((format_html("{}", text[at : match.start()]),))
        pieces.append((format_html('<span class="deed">{}</span>', _label(match)),))
        at = match.end()
    pieces.append((format_html("{}", text[at:]),))
    return format_html_join("", "{}", pieces)


def _label(deed: re.Match[str]) -> str:
    name = (deed[1] or deed["alone"]).strip().replace("_", " ")
    argument = (deed[2] or "").strip()
    if marked := MARK.fullmatch(argument):
        return marked[1].strip()
    argument = MARK.sub(r"\1", argument)
    return f"{name}: {argument}" if argument else name


@register.filter
def mark(seat: MatchSeat) -> SafeString:
    """A seat as a small round mark with a letter; the word is for screen readers and shown on hover."""
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
    """A taken seat whose player is not revealed yet."""
    return format_html(
        '<span class="mark mark-taken" title="{name}: taken"><span aria-hidden="true">?</span>'
        '<span class="unseen">{name}: taken</span></span>',
        name=seat.name,
    )


@register.simple_tag
def answerable(row: LogRow, viewer: Viewer) -> bool:
    """Whether a row has words of another seat that the viewer, a player, could answer."""
    author = row.message["author"]
    return viewer >= 0 and author not in {None, viewer} and any(line.kind == "speech" for line in row.lines)


@register.simple_tag
def mentions(row: LogRow, names: Sequence[str], viewer: Viewer) -> bool:
    """Whether words of another seat name the viewer, a player."""
    if not answerable(row, viewer):
        return False
    named = re.compile(rf"(?<!\w){re.escape(names[viewer])}(?!\w)", re.IGNORECASE)
    return any(line.kind == "speech" and named.search(line.text) for line in row.lines)


@register.filter
def restricted(row: LogRow, viewer: Viewer) -> str:
    """Who else reads a line that is not public, in words; empty for public lines."""
    channel = row.message["channel"].replace("_", " ")
    if channel == "public":
        return ""
    if channel == "private":
        return "only you" if viewer >= 0 else "private"
    return f"{channel} only"


@register.filter
def words(name: str) -> str:
    """An identifier as words: `joint_points` becomes “joint points”."""
    return name.replace("_", " ")


@register.filter
def at_number(mapping: dict[int, str], number: int) -> str:
    """`mapping[number]`; empty if it is not there."""
    return mapping.get(number, "")


@register.filter
def at_index(items: list[str], number: int) -> str:
    """`items[number]`; “the table” for a tool seat."""
    return items[number] if number < len(items) else "the table"
