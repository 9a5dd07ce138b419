"""Replaying of a recorded episode by its game: steps, phases, channels and beliefs.

A record whose game is unknown or has changed its rules cannot be replayed: `course` returns None, and the turns and
tokens can still be read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

from training import games
from training.errors import ParleyError
from training.games import Game, advance
from training.records import ALL, SPECTATOR, Belief, Message, Move, Scenario, Seat, SeatMove, Viewer
from webapp.runs.episodes.beliefs import BeliefPoint
from webapp.runs.episodes.discussions import SpokenMove


@dataclass(frozen=True)
class Course:
    """A replayed game. `ends[n]` is the number of moves in the first n steps; `phases` and `channels` are by move.

    A phase is the all-seeing view's phase at the time of the move. Only restricted messages have a channel. `closing`
    is what the game says at its end, empty unless it has ended. `believed` are the answers of probed seats.
    """

    scenario: Scenario
    moves: Sequence[SeatMove]
    ends: Sequence[int]
    phases: Mapping[int, str]
    channels: Mapping[int, str]
    closing: Sequence[str] = ()
    believed: Sequence[BeliefPoint] = ()

    @property
    def steps(self) -> int:
        """How many steps were completed."""
        return len(self.ends) - 1

    @property
    def viewers(self) -> list[Viewer]:
        """All viewpoints of the game."""
        return [ALL, SPECTATOR, *range(len(self.scenario.seats))]

    @property
    def spoken(self) -> list[SpokenMove]:
        """The moves that are the only ones of their game step."""
        alone = [step for step in range(1, len(self.ends)) if self.ends[step] - self.ends[step - 1] == 1]
        moves = [(step, self.moves[self.ends[step] - 1]) for step in alone]
        return [SpokenMove(step, entry.seat, entry.move.text) for step, entry in moves]

    def after(self, step: int) -> Game:
        """The game after `step` steps."""
        return games.replay(self.scenario, self.moves[: self.ends[step]])

    def step_of(self, moves: int) -> int:
        """The number of complete steps after this number of moves."""
        return sum(end <= moves for end in self.ends) - 1


def course(episode: Mapping[str, Any]) -> Course | None:
    """Replay a record; None if that fails."""
    try:
        scenario = Scenario.from_dict(episode["scenario"])
        moves = [SeatMove.from_dict(move) for move in episode["moves"]]
        answers = [Belief.from_dict(belief) for belief in episode.get("beliefs") or ()]
        folded = _fold(scenario, moves)
    except (ParleyError, KeyError):
        return None
    seated = [answer for answer in answers if 0 <= answer.seat < len(scenario.seats)]
    return replace(folded, believed=[_believed(answer, folded) for answer in seated])


def _believed(answer: Belief, course: Course) -> BeliefPoint:
    step = course.step_of(answer.after)
    return BeliefPoint(step, answer.seat, answer.question, answer.probabilities, answer.truth)


def _fold(scenario: Scenario, moves: Sequence[SeatMove]) -> Course:
    game = games.make(scenario)
    pending: dict[Seat, Move] = {}
    ends, phases, channels = [0], dict[int, str](), dict[int, str]()
    known_messages = len(game.observe(ALL).messages)
    last: Sequence[Message] = ()
    for place, entry in enumerate(moves):
        phases[place] = game.show(ALL).phase
        pending = advance(game, pending, entry)
        if not pending:
            messages = game.observe(ALL).messages
            last = messages[known_messages:]
            by_seat = _channels(last)
            step = range(ends[-1], place + 1)
            channels |= {number: by_seat[moves[number].seat] for number in step if moves[number].seat in by_seat}
            known_messages = len(messages)
            ends.append(place + 1)
    return Course(scenario, moves, ends, phases, channels, () if game.to_act() else _closing(last))


def _closing(last: Sequence[Message]) -> list[str]:
    """The messages of the game itself in its last step, after those of the seats."""
    said_last = takewhile(lambda message: message.author is None, reversed(last))
    return [message.text for message in said_last][::-1]


def _channels(new: Sequence[Message]) -> dict[Seat, str]:
    """The readable channel of each seat's restricted message in one step; without public messages."""
    spoken = {message.author: message.channel.replace("_", " ") for message in new if message.author is not None}
    limited = {seat: channel for seat, channel in spoken.items() if channel != "public"}
    return {seat: channel if channel == "private" else f"{channel} only" for seat, channel in limited.items()}
