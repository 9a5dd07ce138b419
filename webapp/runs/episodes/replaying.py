"""A recorded episode folded again by its own game: steps, phases, channels and beliefs.

A record whose game has other rules by now, or is not known here, cannot be folded: then `course` is None, and its turns
and tokens can still be read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from training import games
from training.errors import ParleyError
from training.games import Game, advance
from training.records import ALL, SPECTATOR, Belief, Message, Move, Scenario, Seat, SeatMove, Viewer
from webapp.runs.episodes.beliefs import Believed


@dataclass(frozen=True)
class Course:
    """How a game went. `ends[n]` is how many moves the first n steps took; `phases` and `channels` are by move.

    A phase is the one in which the move was made, as who sees all knows it. A channel is there only where what was said
    was not for everybody. `believed` is what probed seats answered.
    """

    scenario: Scenario
    moves: Sequence[SeatMove]
    ends: Sequence[int]
    phases: Mapping[int, str]
    channels: Mapping[int, str]
    believed: Sequence[Believed] = ()

    @property
    def steps(self) -> int:
        """How many steps were completed."""
        return len(self.ends) - 1

    @property
    def viewers(self) -> list[Viewer]:
        """All places from which the game can be looked at."""
        return [ALL, SPECTATOR, *range(len(self.scenario.seats))]

    def after(self, step: int) -> Game:
        """The game after so many steps."""
        return games.replay(self.scenario, self.moves[: self.ends[step]])

    def step_of(self, moves: int) -> int:
        """How many steps were complete after so many moves."""
        return sum(end <= moves for end in self.ends) - 1


def course(episode: Mapping[str, Any]) -> Course | None:
    """Fold a record; None if it cannot be."""
    try:
        scenario = Scenario.from_dict(episode["scenario"])
        moves = [SeatMove.from_dict(move) for move in episode["moves"]]
        answers = [Belief.from_dict(belief) for belief in episode.get("beliefs") or ()]
        folded = _fold(scenario, moves)
    except (ParleyError, KeyError):
        return None
    seated = [answer for answer in answers if 0 <= answer.seat < len(scenario.seats)]
    return replace(folded, believed=[_believed(answer, folded) for answer in seated])


def _believed(answer: Belief, course: Course) -> Believed:
    step = course.step_of(answer.after)
    return Believed(step, answer.seat, answer.question, answer.probabilities, answer.truth)


def _fold(scenario: Scenario, moves: Sequence[SeatMove]) -> Course:
    game = games.make(scenario)
    pending: dict[Seat, Move] = {}
    ends, phases, channels = [0], dict[int, str](), dict[int, str]()
    heard = len(game.observe(ALL).messages)
    for place, entry in enumerate(moves):
        phases[place] = game.phase(ALL)
        pending = advance(game, pending, entry)
        if not pending:
            messages = game.observe(ALL).messages
            by_seat = _channels(messages[heard:])
            step = range(ends[-1], place + 1)
            channels |= {number: by_seat[moves[number].seat] for number in step if moves[number].seat in by_seat}
            heard = len(messages)
            ends.append(place + 1)
    return Course(scenario, moves, ends, phases, channels)


def _channels(new: Sequence[Message]) -> dict[Seat, str]:
    """Who alone heard what each seat said in one step, in words; without those who spoke to everybody."""
    spoken = {message.author: message.channel.replace("_", " ") for message in new if message.author is not None}
    limited = {seat: channel for seat, channel in spoken.items() if channel != "public"}
    return {seat: channel if channel == "private" else f"{channel} only" for seat, channel in limited.items()}
