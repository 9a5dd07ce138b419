"""A game's turns for annotators: what people read of each, and the offsets of these words in the text of the move.

Annotators read what everybody at the table saw, without the outcome and without traces of the author: white space,
typography and marks of formatting look alike in all texts. `hidden` adds what only some saw, and the ending.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from training.games import advance, make
from training.records import ALL, SPECTATOR, Message, Move, Scenario, Seat, SeatMove
from training.views import Line

Said = tuple[Message, int | None]
"""A message with the index of its move; None for a message of the game."""
Shown = tuple[Message, int | None, bool]
"""The same, with whether it is hidden from some."""
FORMATTING = re.compile(r"(?m)\*\*|__|`+|(?<!\w)\*(?=\S)|(?<=\S)\*(?!\w)|^[ \t]*(?:#{1,6}|[-*•]|>)[ \t]+")
"""Marks of Markdown: models write them more often than people."""
SPELLED = str.maketrans({
    "“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "‘": "'", "’": "'", "‚": "'", "…": "...", "–": "-", "—": "-",
    "‑": "-",
})  # fmt: skip
"""Signs that a keyboard seldom writes, and what people write in their place."""


def plain(text: str) -> tuple[str, tuple[int, ...]]:
    """Return a text without traces of who wrote it, and for each of its characters where it stands in `text`."""
    dropped = {at for mark in FORMATTING.finditer(text) for at in range(*mark.span())}
    shown: list[tuple[str, int]] = []
    for at, written in enumerate(text):
        for character in "" if at in dropped else written.translate(SPELLED):
            if not character.isspace():
                shown.append((character, at))
            elif shown and shown[-1][0] != " ":
                shown.append((" ", at))
    if shown and shown[-1][0] == " ":
        shown.pop()
    return "".join(character for character, _ in shown), tuple(at for _, at in shown)


@dataclass(frozen=True)
class TurnLine:
    """One line of a conversation. `turn` is the index of its move, in the first line of a turn only.

    `number` counts the turns that are shown, from 0. `places` says for each character of `text` where it stands in the
    move's text; it is empty where the words are not the move's own, so that they cannot be labelled. `hidden`: not
    everybody at the table saw it.
    """

    who: str
    text: str
    kind: str = "speech"
    seat: Seat | None = None
    turn: int | None = None
    number: int | None = None
    places: tuple[int, ...] = ()
    hidden: bool = False

    @property
    def length(self) -> int:
        """The characters that can be labelled; -1 where none can."""
        return len(self.places) or -1


def turn_lines(scenario: Scenario, moves: Sequence[SeatMove], *, hidden: bool = False) -> list[TurnLine]:
    """Return what annotators read of a game, each turn with its move; raise `IllegalMove` like `replay`."""
    everything, public = _messages(scenario, moves)
    lines: list[TurnLine] = []
    count = 0
    for message, turn, secret in _with_deeds(_merged(everything, public, hidden=hidden)):
        for place, line in enumerate(message.lines):
            read = _line(scenario, moves, message, line, turn if place == 0 else None)
            if read.turn is not None:
                read, count = replace(read, number=count), count + 1
            lines.append(replace(read, hidden=secret))
    return lines


def _line(scenario: Scenario, moves: Sequence[SeatMove], message: Message, line: Line, turn: int | None) -> TurnLine:
    who = "" if line.seat is None or line.seat >= len(scenario.seats) else scenario.seats[line.seat]
    if line.kind != "speech":
        return TurnLine(who, line.text, line.kind, line.seat, turn)
    text, places = plain(line.text)
    start = -1 if turn is None else moves[turn].move.text.find(line.text)
    offsets = tuple(start + place for place in places) if start >= 0 else ()
    return TurnLine(who, text, line.kind, message.author, turn, places=offsets)


def _messages(scenario: Scenario, moves: Sequence[SeatMove]) -> tuple[list[Said], list[Message]]:
    """All messages of a game with their moves, and the messages that everybody saw before it ended."""
    game, pending, waiting = make(scenario), dict[Seat, Move](), dict[Seat, int]()
    everything: list[Said] = []
    for index in range(len(moves) + 1):
        if not pending:
            fresh = game.observe(ALL).messages[len(everything) :]
            everything += [(said, None if said.author is None else waiting.pop(said.author, None)) for said in fresh]
            waiting = {}
        if index < len(moves):
            waiting[moves[index].seat] = index
            pending = advance(game, pending, moves[index])
    public = list(game.observe(SPECTATOR).messages)
    while public and public[-1].author is None:  # the ending
        public.pop()
    return everything, public


def _merged(everything: list[Said], public: list[Message], *, hidden: bool) -> Iterator[Shown]:
    """The public messages with their moves; with `hidden` also the others, each with whether it is one of those."""
    at = 0
    for message, turn in everything:
        same = next((place for place in range(at, len(public)) if public[place] == message), None)
        if same is not None:
            yield from ((other, None, False) for other in public[at:same])
            yield message, turn, False
            at = same + 1
        elif hidden:
            yield message, turn, True
    yield from ((other, None, False) for other in public[at:])


def _with_deeds(messages: Iterable[Shown]) -> Iterator[Shown]:
    """The same; where people read of a move only what the game says of its seat next, that line is the move's."""
    waiting: tuple[Seat | None, int | None, bool] = (None, None, False)
    for message, message_turn, secret in messages:
        turn = message_turn
        event = message.lines[0] if message.author is None and message.lines else None
        if turn is not None and not message.lines:
            waiting = (message.author, turn, secret)
        elif event is not None and event.kind == "deed" and (event.seat, secret) == (waiting[0], waiting[2]):
            turn, waiting = waiting[1], (None, None, False)
        yield message, turn, secret
