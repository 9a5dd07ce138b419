"""What people see of a game, as data for a page: the table from one viewer's place, and the lines of what happened.

A model reads text and a person sees a table. A game makes both from the same facts, and neither from the other, so what
is here says no more and no less than the viewer's observation. A zone is one area of the table; each kind of zone has a
template of its own on the site. Nothing here is stored in run directories; lines are stored with a match's log.

A `choice` is what pressing a part of a zone does: a value of the only choice argument of an offered action, or a whole
command as `training.games.actions.canonical` writes it; empty where nothing can be chosen.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field

from training.reading import Record

Seat = int


class Line(Record):
    """One line of what happened, for people.

    `speech` are the words of `seat`; `deed` is what it did ("accepts the proposal"), read after its name, or without a
    seat a whole sentence ("You offer to buy for 150"); `news` is a sentence of the game. Plain text: what looks like a
    tag is text.
    """

    kind: Literal["speech", "deed", "news"]
    text: str
    seat: Seat | None = None


def news(text: str) -> tuple[Line, ...]:
    """Return the lines of a message that people read as models do: one sentence of the game."""
    return (Line(kind="news", text=text),)


class Option(Record):
    """A button: its label, and what pressing it does; an empty choice keeps the place of a button that comes again."""

    label: str
    choice: str


# --- zones -----------------------------------------------------------------------------------------------------------


class Cell(Record):
    """One cell of a plain grid or list: its content, and its label for screen readers."""

    text: str
    label: str = ""
    choice: str = ""


class Cells(Record):
    """Rows of plain cells, for games without a zone of their own; one row is shown as a list."""

    kind: Literal["cells"] = "cells"
    title: str
    rows: tuple[tuple[Cell, ...], ...]


class Square(Record):
    """One square of a board: whose piece stands on it (None: empty), and its label for screen readers.

    `last`: its piece is the newest one; `won`: its piece is part of a line that won.
    """

    seat: Seat | None = None
    label: str
    last: bool = False
    won: bool = False
    choice: str = ""


class Board(Record):
    """A board with the pieces of two seats: crosses and noughts, or discs that fall into columns.

    `rows` go from the top. `columns` are the buttons above the columns of a board with discs: one for each, with an
    empty choice where none is legal. `lines` are the ends of each line that won, as (row, column) from the top left.
    """

    kind: Literal["board"] = "board"
    title: str
    rows: tuple[tuple[Square, ...], ...]
    pieces: Literal["marks", "discs"] = "marks"
    columns: tuple[Option, ...] = ()
    lines: tuple[tuple[tuple[int, int], tuple[int, int]], ...] = ()


Suit = Literal["red", "yellow", "green", "white", "blue"]
"""A colour of cards."""


class Card(Record):
    """A playing card. `face` is its rank, empty for a card that lies face down; `suit` is its colour where it is known.

    `known` is what its holder knows of it from hints, in short words: `red`, `not red`, `1`. `options` are its buttons.
    """

    face: str = ""
    suit: Suit | Literal[""] = ""
    label: str
    known: tuple[str, ...] = ()
    options: tuple[Option, ...] = ()


class Hand(Record):
    """Cards in a row: a hand, which `seat` holds, or cards on the table (None). `options` are about the whole hand."""

    kind: Literal["hand"] = "hand"
    title: str
    seat: Seat | None = None
    cards: tuple[Card, ...] = ()
    options: tuple[Option, ...] = ()
    small: bool = False


class Stack(Record):
    """Cards of one suit that grow from 1 to `most`; `height` 0 is empty."""

    suit: Suit
    height: int
    most: int


class Stacks(Record):
    """Stacks side by side, such as Hanabi's fireworks."""

    kind: Literal["stacks"] = "stacks"
    title: str
    stacks: tuple[Stack, ...]


class Pile(Record):
    """A number of things, drawn as that many pieces where `most` is known or small. `seat` owns them, if anybody."""

    name: str
    value: int
    most: int | None = None
    icon: Literal["chip", "life", "hint", "card", "task", "turn", "point"] = "point"
    seat: Seat | None = None


class Counters(Record):
    """Chips, tokens and the like."""

    kind: Literal["counters"] = "counters"
    title: str
    piles: tuple[Pile, ...]


class Item(Record):
    """One kind of item to divide: `count` units, each worth `worth` to the viewer (None: a viewer without a side).

    `offered` are the units of seat 0 and of seat 1 under the standing proposal, or the deal; empty without one.
    `suggested` is how many units a proposal of the viewer keeps at first.
    """

    name: str
    count: int
    worth: float | None = None
    reason: str = ""
    offered: tuple[int, ...] = ()
    suggested: int = 0

    @property
    def left(self) -> int:
        """The units that the other gets under what is suggested."""
        return self.count - self.suggested


class Editor(Record):
    """A zone in which the viewer sets the arguments of the offered action `action`; empty while it is not offered."""

    action: str = ""


class Tray(Editor):
    """Items to divide between two seats.

    The arguments of `action`, named as the items, say how many units the viewer keeps. `most` is what everything
    together is worth to the viewer and `alone` what no deal is. `by` made the standing proposal, which is worth `worth`
    to the viewer; `agreed` once it is a deal.
    """

    kind: Literal["tray"] = "tray"
    title: str
    items: tuple[Item, ...]
    most: float | None = None
    alone: float | None = None
    by: Seat | None = None
    agreed: bool = False
    worth: float | None = None


class PriceScale(Editor):
    """A price to agree on, between `low` and `high`, of something listed at `listing`.

    `target` is the price that the viewer hopes for (None: a viewer without a side); seat 0 buys, seat 1 sells. The
    argument of `action` is `price`, at first `suggested`. `offer` is the standing proposal, made by `by`, or the deal
    once `agreed`; `worth` is what it is worth to the viewer, in a few words. `rejected` are the earlier proposals, each
    with its seat.
    """

    kind: Literal["price"] = "price"
    title: str
    about: str = ""
    listing: int
    low: int
    high: int
    target: float | None = None
    suggested: int | None = None
    rejected: tuple[tuple[Seat, int], ...] = ()
    offer: int | None = None
    worth: str = ""
    by: Seat | None = None
    agreed: bool = False


class Place(Record):
    """One seat of a circle, as far as the viewer may know it.

    `out` once the seat has left the game, with `left` saying when and how in a few words; `role` is empty while it is
    unknown, and `emblem` names its drawing. `speaks` while it has the floor. `voted` is the seat it voted for in the
    newest ballot.
    """

    seat: Seat
    out: bool = False
    left: str = ""
    role: str = ""
    emblem: str = ""
    note: str = ""
    speaks: bool = False
    voted: Seat | None = None
    choice: str = ""


class Circle(Record):
    """All seats around a table, with arrows from voters to whom they voted for; as a row it is a list without arrows.

    `centre` is written in its middle, and `options` are buttons there. `ballot` says which ballot the arrows show.
    """

    kind: Literal["circle"] = "circle"
    title: str
    places: tuple[Place, ...]
    centre: str = ""
    options: tuple[Option, ...] = ()
    ballot: str = ""
    mood: Literal["", "night", "day", "vote", "over"] = ""
    shape: Literal["circle", "row"] = "circle"


class Target(Record):
    """Somebody whom the viewer may press, and what that does."""

    seat: Seat
    label: str
    choice: str


class Room(Record):
    """One room of a map, as far as the viewer may know it: who is in it, who lies dead in it, the viewer's tasks there.
    `targets` are those of `seats` who can be pressed.

    `seen` is False for a room that the viewer cannot look into now; then `seats` and `bodies` are empty.
    """

    name: str
    row: int
    column: int
    seats: tuple[Seat, ...] = ()
    bodies: tuple[Seat, ...] = ()
    targets: tuple[Target, ...] = ()
    tasks: int = 0
    here: bool = False
    seen: bool = True
    choice: str = ""


class Map(Record):
    """Rooms on a grid, row by row; rooms side by side are joined by a door.

    `note` says what the viewer is doing there. `done` of `tasks` tasks of the viewer are done; 0 tasks for a viewer
    without any.
    """

    kind: Literal["map"] = "map"
    title: str
    rooms: tuple[Room, ...]
    note: str = ""
    done: int = 0
    tasks: int = 0


class Portrait(Record):
    """One participant: what the viewer may know about it, as short paragraphs."""

    seat: Seat
    about: tuple[str, ...] = ()
    mood: str = ""


class Portraits(Record):
    """The participants of a scene, side by side, and where it takes place."""

    kind: Literal["portraits"] = "portraits"
    title: str
    setting: str = ""
    portraits: tuple[Portrait, ...]


class Passage(Record):
    """A piece of text with a title, read after the name of `by`, whose text it is, if it is anybody's.

    Title or text may be empty. `aligned`: its columns line up, as in a drawn board.
    """

    title: str
    text: str
    by: Seat | None = None
    aligned: bool = False


class Passages(Record):
    """Texts to read, such as what a search found."""

    kind: Literal["passages"] = "passages"
    title: str
    passages: tuple[Passage, ...]


class Entry(Record):
    """One thing of a list: a product, a place, an object. `detail` are short facts; `picked` marks a choice.

    `choice` makes the whole entry a button; `options` are buttons about it.
    """

    name: str
    detail: tuple[str, ...] = ()
    picked: bool = False
    choice: str = ""
    options: tuple[Option, ...] = ()


class Entries(Record):
    """Things to look at and to choose from: products, rooms, objects.

    As cards, as a list, as small buttons, or as an item: one thing that the page is about.
    """

    kind: Literal["entries"] = "entries"
    title: str
    entries: tuple[Entry, ...]
    shape: Literal["cards", "list", "chips", "item"] = "list"


class SearchField(Editor):
    """A field of at most `longest` characters to search with; `query` is what was searched for last.

    The only argument of `action`, named `argument`, is what is searched for.
    """

    kind: Literal["search"] = "search"
    title: str
    query: str = ""
    argument: str = ""
    longest: int


Zone = (
    Cells
    | Board
    | Hand
    | Stacks
    | Counters
    | Tray
    | PriceScale
    | Circle
    | Map
    | Portraits
    | Passages
    | Entries
    | SearchField
)
"""An area of the table."""


# --- the table -------------------------------------------------------------------------------------------------------


class Brief(Record):
    """What only this viewer knows, as a card: a title ("You are the seer"), and short paragraphs below it.

    `emblem` names the drawing on the card; empty for a card without one.
    """

    title: str
    text: tuple[str, ...] = ()
    emblem: str = ""


class TableView(Record):
    """The table as one viewer sees it now.

    `phase` is the phase in a few words, `mood` how the page is coloured for it. `ask` is one sentence that says what
    the viewer is to do now, empty unless it must move. `story` is the situation that everybody knows and `rules` are
    the rules, as short paragraphs. `brief` is the viewer's private card. Once the game is over, `headline` says how it
    ended for this viewer ("You win with the village.") and `moment` names the move or the event that decided it; both
    are empty before.
    """

    zones: tuple[Annotated[Zone, Field(discriminator="kind")], ...] = ()
    phase: str = ""
    mood: Literal["", "night", "day", "vote", "over"] = ""
    ask: str = ""
    story: str = ""
    rules: tuple[str, ...] = ()
    brief: Brief | None = None
    headline: str = ""
    moment: str = ""

    def edited(self) -> frozenset[str]:
        """Return the actions whose arguments are set in a zone."""
        return frozenset(zone.action for zone in self.zones if isinstance(zone, Editor) and zone.action)

    def choices(self) -> Iterator[str]:
        """Return every choice of every zone, in order, without the empty ones."""
        for zone in self.zones:
            yield from _choices(zone)


def _choices(part: Any) -> Iterator[str]:
    """Return the choices of a record and of all records inside it."""
    if isinstance(part, tuple):
        for item in part:
            yield from _choices(item)
    elif isinstance(part, Record):
        if choice := getattr(part, "choice", ""):
            yield choice
        for name in type(part).model_fields:
            yield from _choices(getattr(part, name))
