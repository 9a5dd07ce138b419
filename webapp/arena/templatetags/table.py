"""Filters for the table's pages: speech with its tags as labels, the game's lines without tags, seat marks, results."""

import re

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from training.games import REGISTRY
from training.records import Viewer
from training.text.messages import kept
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

WAY = re.compile(
    r"^- (?P<label>[^\n<]+?): (?:(?P<bare>just write it, without a tag)"
    r"|`(?P<command>[^\n`<]+)`(?: \([^\n]*\))?"
    r"|<(?P<name>[\w ]+)(?:/>|>[^\n]*?</(?P=name)>)(?P<bounds> \([^\n]*\))?)\.(?P<beside>[^\n]*)$",
    re.MULTILINE,
)
"""One line of `training.games.actions.how_to`."""
ENDING = re.compile(r"Think if you like, then end with exactly one of them: [^\n]*")
"""How a reply in a board or card game ends."""
CLICKABLE = re.compile(r"\s*\bYou can click: [^\n]*")
"""What a page of the shop offers, which people have as buttons."""
_KEPT = "|".join(sorted(map(re.escape, kept()), key=len, reverse=True))
BLANK = re.compile(rf":?\s*<(?P<name>{_KEPT})>name</(?P=name)>")
"""A tag that shows where a name goes; the names follow it."""
_KINDS = "|".join(sorted({re.escape(re.split(r"[ (]", mark)[0]) for spec in REGISTRY.values() for mark in spec.marks}))
TAGGED = re.compile(rf"<(?P<name>{_KEPT})>([^\n]*?)</(?P=name)>|<(?P<alone>{_KEPT}|(?:{_KINDS})[ (][^<>\n]*?)/?>")
"""An action with its argument, an action without one, or a marked choice, also with a letter for its number as in
`<Play card i>`; other text in angle brackets is text."""


register.filter("rules", in_words)


@register.filter
def announced(text: str) -> str:
    """A line of the game as a person reads it, who has buttons and fields: without the tags that a model writes.

    `- Propose a price: <propose>300</propose> (price 0 to 600).` becomes “- Propose a price (price 0 to 600).”
    """
    text = CLICKABLE.sub("", text)
    if "- " in text:
        text = WAY.sub(_way, text)
    if "<" not in text:
        return text
    text = BLANK.sub("", ENDING.sub("Choose one of them.", text))
    return TAGGED.sub(_as_text, text)


def _as_text(tag: re.Match[str]) -> str:
    return tag["alone"].replace("_", " ") if tag["alone"] else TAGGED.sub(_as_text, tag[2])


def _way(line: re.Match[str]) -> str:
    if line["bare"]:
        return f"- {line['label']}: in the text field."
    if line["command"]:
        return f"- {line['label']}."
    needs_text = "sentence" in line["beside"]
    return f"- {line['label']}{line['bounds'] or ''}.{' Write a sentence with it.' if needs_text else ''}"


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
def paragraph(text: str) -> str:
    """The first paragraph; of a game's opening, what everybody knows."""
    return text.strip().partition("\n\n")[0]


@register.filter
def first_line(text: str) -> str:
    """The first line of a text, without a colon at its end."""
    return text.partition("\n")[0].removesuffix(":")


@register.filter
def rest(text: str) -> str:
    """What follows the first line of a text."""
    return text.partition("\n")[2]


@register.filter
def linecount(text: str) -> int:
    """The number of lines of a text."""
    return text.count("\n") + 1


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
