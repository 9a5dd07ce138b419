"""A picture of one position of a replay, and one of many positions that follow each other by themselves.

An animation uses the timing of SVG (SMIL) alone: it plays once in a browser, also as an image, and stays at its end.
Software that does not support SMIL shows the first position; for readers who prefer reduced motion, a rule of CSS shows
the last one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from training.views import Line, Zone
from webapp.arena.pictures import zones
from webapp.arena.pictures.drawing import (
    EDGE,
    FONT,
    INK,
    MUTED,
    PAPER,
    SHADE,
    SVG,
    add,
    avatar,
    colour,
    define_avatars,
    number,
    readable,
    wrapped,
    write,
)

WIDTH, HEIGHT, EDGES = 640.0, 440.0, 16.0
TOP, BOTTOM = 50.0, HEIGHT - 34
BOARD, COLUMN = 320.0, 352.0
"""The width of the drawn zones, and where the lines beside them begin."""
SIZE, LEADING = 13.0, 17.0
MOST_LINES = 9
"""Lines of one message that are drawn; the last one ends in dots if there are more."""
MOST_TEXT = 1500
"""Characters of one message that are wrapped: more than its drawn lines can hold."""
SECONDS, PER_CHARACTER, MOST_SECONDS = 1.2, 0.03, 6.0
"""How long a position stays: longer with more to read."""
MOST_WORDS = 1500
"""Characters of the description of an animation."""
WITHOUT_MOTION = (
    "@media (prefers-reduced-motion: reduce) { .past { display: none } .last { display: inline; visibility: visible } }"
)
"""The style of an animation for readers who prefer reduced motion: its last position alone."""


@dataclass(frozen=True)
class Frame:
    """One position from one viewpoint: the drawn zones, the lines of what happened so far, and how the game ended.

    Lines have the seat that spoke or acted; the text of a deed begins with its name.
    """

    step: int
    steps: int
    zones: Sequence[Zone]
    lines: Sequence[Line]
    headline: str = ""


@dataclass(frozen=True)
class Picture:
    """What all positions of a picture share: a title, and the names of the seats."""

    title: str
    names: Sequence[str]

    def still(self, frame: Frame) -> str:
        """Return the picture of one position."""
        root = self._root(f"{self.title}, {_at(frame)}", self.words(frame))
        self._draw(root, frame)
        return _written(root)

    def animation(self, frames: Sequence[Frame]) -> str:
        """Return the picture of positions one after the other; those that look the same are one.

        Readers who prefer reduced motion see the last position alone.
        """
        shown = _different(frames)
        root = self._root(f"{self.title}, {_at(frames[0])} to {_at(frames[-1])}", self.all_words(frames))
        start, before = 0.0, len(shown[0].lines)
        add(root, "style").text = WITHOUT_MOTION
        for at, frame in enumerate(shown):
            name = "last" if at + 1 == len(shown) else "past"
            group = add(root, "g", class_=name, visibility="hidden" if at else "visible")
            self._draw(group, frame)
            text = sum(len(line.text) for line in frame.lines[before:])
            lasts, before = min(MOST_SECONDS, SECONDS + PER_CHARACTER * text), len(frame.lines)
            if at:
                add(group, "set", attributeName="visibility", to="visible", begin=f"{number(start)}s", fill="freeze")
            start += lasts
            if at + 1 < len(shown):
                add(group, "set", attributeName="visibility", to="hidden", begin=f"{number(start)}s", fill="freeze")
        return _written(root)

    def words(self, frame: Frame) -> str:
        """Return the picture of a position in words: what is drawn, otherwise the newest lines."""
        parts = [_ended(zones.described(frame.zones, self.names))] if frame.zones else []
        parts += [self._sentence(line) for line in frame.lines[-3:]]
        return readable(" ".join((*parts, frame.headline)))[:MOST_WORDS]

    def all_words(self, frames: Sequence[Frame]) -> str:
        """Return what happens in an animation, in words."""
        lines = [self._sentence(line) for line in frames[-1].lines[len(frames[0].lines) :]]
        text = readable(" ".join((*lines, frames[-1].headline)))
        return text if len(text) <= MOST_WORDS else f"{text[:MOST_WORDS]} …"

    def _sentence(self, line: Line) -> str:
        """Return a line as a sentence; deeds have their names."""
        return _ended(f"{self._named(line)}: {line.text}" if line.kind == "speech" else line.text)

    def _named(self, line: Line) -> str:
        return self.names[line.seat] if line.seat is not None and line.seat < len(self.names) else "the table"

    def _root(self, title: str, description: str) -> ET.Element:
        size = f"0 0 {number(WIDTH)} {number(HEIGHT)}"
        root = ET.Element("svg", {"xmlns": SVG, "viewBox": size, "width": number(WIDTH), "height": number(HEIGHT)})
        root.attrib |= {"role": "img", "aria-labelledby": "title description", "font-family": FONT}
        add(root, "title", id="title").text = readable(title)
        add(root, "desc", id="description").text = description
        define_avatars(root, len(self.names))
        return root

    def _draw(self, parent: ET.Element, frame: Frame) -> None:
        add(parent, "rect", width=WIDTH, height=HEIGHT, fill=PAPER)
        title = wrapped(self.title, WIDTH - 2 * EDGES - 130, 16)[:1]
        write(parent, title[0] if title else "", EDGES, 30, font_size=16, font_weight="700")
        write(parent, f"{_at(frame)} of {frame.steps}", WIDTH - EDGES, 30, fill=MUTED, text_anchor="end")
        add(parent, "path", d=f"M{number(EDGES)} 40H{number(WIDTH - EDGES)}", stroke=EDGE)
        left = EDGES
        if frame.zones:
            left, y = COLUMN, TOP
            for zone in frame.zones:
                y = zones.draw(zone, zones.Space(parent, self.names, EDGES, y, BOARD))
        self._talk(parent, frame.lines, left)
        for line in wrapped(frame.headline, WIDTH - 2 * EDGES, 14)[:1]:
            write(parent, line, EDGES, HEIGHT - 12, font_size=14, font_weight="700")

    def _talk(self, parent: ET.Element, lines: Sequence[Line], left: float) -> None:
        """Draw the newest lines that fit, from the bottom up, in their order."""
        most = WIDTH - EDGES - left
        blocks: list[tuple[Line, list[str], float]] = []
        room = BOTTOM - TOP
        for line in reversed(lines):
            texts = wrapped(line.text[:MOST_TEXT], most - 34, SIZE)
            if len(texts) > MOST_LINES:
                texts = [*texts[: MOST_LINES - 1], f"{texts[MOST_LINES - 1]} …"]
            height = LEADING * len(texts) + (30 if line.kind == "speech" else 6)
            if height > room:
                break
            room -= height
            blocks.append((line, texts, height))
        y = TOP
        for line, texts, height in reversed(blocks):
            self._block(parent, line, texts, left, y, most)
            y += height

    def _block(self, parent: ET.Element, line: Line, texts: Sequence[str], left: float, y: float, most: float) -> None:
        """Draw one line: words as a bubble below a name, a deed after a name, news alone."""
        if line.seat is not None:
            avatar(parent, line.seat, left, y, 14)
        first = y + 12
        if line.kind == "speech":
            write(parent, self._named(line), left + 20, first, font_size=12, font_weight="700", fill=colour(line.seat))
            box = {"x": left + 20, "y": y + 17, "width": most - 20, "height": LEADING * len(texts) + 6}
            add(parent, "rect", rx=8, fill=SHADE, **box)
            first = y + 32
        ink = INK if line.kind == "speech" else MUTED
        for at, text in enumerate(texts):
            x = left + (28 if line.kind == "speech" else 20)
            write(parent, text, x, first + LEADING * at, font_size=SIZE, fill=ink)


def _at(frame: Frame) -> str:
    return f"game step {frame.step}"


def _ended(text: str) -> str:
    """Return text with an end of its sentence."""
    return text if not text or text[-1] in ".!?…”" else f"{text}."


def _different(frames: Sequence[Frame]) -> list[Frame]:
    """Return the positions without those that look like the one before."""
    shown = [frames[0]]
    for frame in frames[1:]:
        last = shown[-1]
        if (frame.zones, frame.lines, frame.headline) != (last.zones, last.lines, last.headline):
            shown.append(frame)
    return shown


def _written(root: ET.Element) -> str:
    return ET.tostring(root, encoding="unicode", xml_declaration=False)
