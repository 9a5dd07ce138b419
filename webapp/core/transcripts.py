"""A game as a text to read: who did and said what, and what everybody knew before; for those who judge it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from training.games import Game
from training.records import ALL, SPECTATOR, Message
from training.views import Brief, Line, TableView


@dataclass(frozen=True)
class TranscriptLine:
    """One line with the name of the seat that speaks or acts; empty for a sentence of the game."""

    who: str
    line: Line


def lines_of(messages: Iterable[Message], names: Sequence[str]) -> list[TranscriptLine]:
    """The lines that people read of these messages."""
    return [
        TranscriptLine(names[line.seat] if line.seat is not None and line.seat < len(names) else "", line)
        for message in messages
        for line in message.lines
    ]


@dataclass(frozen=True)
class Transcript:
    """A game from the all-seeing view: the situation, the rules, each seat's private card, and what happened."""

    story: str
    rules: Sequence[str]
    briefs: Sequence[tuple[str, Brief]]
    lines: Sequence[TranscriptLine]


@dataclass(frozen=True)
class Start:
    """What a seat sees of a game that begins: a person its view, a model its messages."""

    name: str
    view: TableView
    messages: Sequence[Message]


def starts(game: Game) -> list[Start]:
    """What each seat of a game sees now."""
    return [Start(n, game.show(seat), game.observe(seat).messages) for seat, n in enumerate(game.scenario.seats)]


def transcript(game: Game) -> Transcript:
    """The transcript of a game in progress, or at its end."""
    names = game.scenario.seats
    cards = [(name, game.show(seat).brief) for seat, name in enumerate(names)]
    public = game.show(SPECTATOR)
    return Transcript(
        story=public.story,
        rules=public.rules,
        briefs=[(name, brief) for name, brief in cards if brief is not None],
        lines=lines_of(game.observe(ALL).messages, names),
    )
