"""Parts of an SVG picture: shapes, wrapped text, colours, and the drawings of seats.

A picture has no script, font or address in it, and an animation one fixed style. `xml.etree` escapes all texts;
hidden characters become their codes, as on pages. Browsers measure text when they draw it, so widths here are
estimates on the safe side.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from pathlib import Path
from xml.etree import ElementTree as ET

from django.contrib.staticfiles import finders

from training.records import Seat
from webapp.core.visible import visible

SVG = "http://www.w3.org/2000/svg"
FONT = "system-ui, 'Helvetica Neue', Arial, sans-serif"
INK, MUTED, PAPER, SHADE, EDGE = "#1d232b", "#5b6573", "#ffffff", "#f0f2f5", "#c5ccd6"
SEATS = (
    *("#23625d", "#7a3e9d", "#8a5a00", "#1f5fa8", "#a3324a", "#4d6a12"),
    *("#0b6e3b", "#9a3b00", "#4a4fb5", "#97307f", "#5b5b5b", "#6b4a2b"),
)
"""Colours of seats on paper: those of the light style sheet."""
SUITS = {"red": "#b3261e", "yellow": "#8a6100", "green": "#22733f", "white": "#5b5b5b", "blue": "#1f5fa8"}
ILLEGAL = re.compile("[\ufffe\uffff]")
"""Characters that XML cannot hold, besides the controls that `visible` writes as codes."""
SYMBOL = re.compile(r'<symbol id="(seat-\d+)".*?</symbol>', re.DOTALL)
NARROW, BROAD = frozenset("fijltrI.,:;'|!()[] "), frozenset("mwMW@%")


def colour(seat: Seat | None) -> str:
    """Return the colour of a seat; that of muted text for nobody."""
    return MUTED if seat is None else SEATS[seat % len(SEATS)]


def number(value: float) -> str:
    """Return a coordinate."""
    return f"{round(value, 1):g}"


def add(parent: ET.Element, name: str, **attributes: str | float) -> ET.Element:
    """Add an element; underscores in the names of attributes stand for hyphens."""
    written = {
        key.rstrip("_").replace("_", "-"): value if isinstance(value, str) else number(value)
        for key, value in attributes.items()
    }
    return ET.SubElement(parent, name, written)


def readable(text: str) -> str:
    """Return text as a picture shows it: on one line, with codes for hidden characters."""
    return ILLEGAL.sub("", visible(" ".join(text.split())))


def write(parent: ET.Element, text: str, x: float, y: float, **attributes: str | float) -> None:
    """Add a line of text with its base line at `y`."""
    add(parent, "text", x=x, y=y, **{"font_size": 13.0, "fill": INK, **attributes}).text = readable(text)


def width(text: str, size: float) -> float:
    """Return about how many pixels wide a line of text is."""
    return size * sum(_share(character) for character in text)


def _share(character: str) -> float:
    if unicodedata.east_asian_width(character) in "WF":
        return 1.05
    return 0.34 if character in NARROW else 0.95 if character in BROAD else 0.72 if character.isupper() else 0.58


def wrapped(text: str, most: float, size: float) -> list[str]:
    """Return text in lines that are at most so many pixels wide; a longer word is broken."""
    lines, line = [], ""
    for word in readable(text).split(" "):
        longer = f"{line} {word}".lstrip()
        if width(longer, size) <= most:
            line = longer
            continue
        if line:
            lines.append(line)
        line, used = "", 0.0
        for character in word:
            wide = width(character, size)
            if used + wide > most:
                lines.append(line)
                line, used = "", 0.0
            line += character
            used += wide
    return [*lines, line] if line else lines


@lru_cache(maxsize=1)
def _symbols() -> dict[str, str]:
    """Return the drawing of each seat, as the site has it, by its name."""
    path = finders.find("avatars.svg")
    assert isinstance(path, str)
    return {match[1]: match[0] for match in SYMBOL.finditer(Path(path).read_text("utf-8"))}


def define_avatars(parent: ET.Element, seats: int) -> None:
    """Add the drawings of so many seats, which `avatar` uses."""
    symbols = _symbols()
    definitions = add(parent, "defs")
    for name in list(symbols)[: min(seats, len(symbols))]:
        definitions.append(ET.fromstring(symbols[name]))  # noqa: S314 (a file of the site)


def avatar(parent: ET.Element, seat: Seat, x: float, y: float, size: float) -> None:
    """Add the drawing of a seat, with its upper left corner at (x, y)."""
    reference = {"href": f"#seat-{seat % len(_symbols())}", "color": colour(seat)}
    add(parent, "use", x=x, y=y, width=size, height=size, **reference)
