"""Process rewards: 1 for a turn that brought its seat nearer to its goal, else 0, by the game's own rule or by a judge.

Source: EPO, eq. 5, where a model lists the critical strategies of a seat, given the conversation and the seat's score.
Raises `JudgeError` where the judge has no usable answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

from training.games import advance, make
from training.records import Episode, Move, Seat
from training.reward_section import RewardSection
from training.rewards.base import Reward, Score
from training.rewards.judge import Judge
from training.seeding import derive

PROCESS = "process"
"""What the component is called among the parts of a turn's reward."""
LEAST = 1e-9
"""A smaller rise is rounding."""


def reach(episode: Episode) -> list[Mapping[Seat, float]]:
    """Return what each seat had within reach before every move of an episode, and at its end (`Game.in_reach`)."""
    game = make(episode.scenario)
    pending: dict[Seat, Move] = {}
    values = [game.in_reach()]
    for entry in episode.moves:
        pending = advance(game, pending, entry)
        values.append(game.in_reach())
    return values


def gained(episode: Episode) -> list[int]:
    """Return the indices of the turns after which their seat had more within reach, at its next turn or at the end.

    Refused turns are not among them.
    """
    values = reach(episode)
    played: dict[Seat, list[tuple[int, int]]] = {}
    for index, turn in enumerate(episode.turns):
        if turn.move_index is not None:
            played.setdefault(turn.seat, []).append((index, turn.move_index))
    rose: list[int] = []
    for seat, turns in played.items():
        after = [move for _, move in turns[1:]] + [len(episode.moves)]
        for (index, before), later in zip(turns, after, strict=True):
            if values[later][seat] > values[before][seat] + LEAST:
                rose.append(index)
    return sorted(rose)


class Process:
    """Wraps a reward: turns also earn process rewards. With a judge it lists the turns, else the game's rule does.

    With `last_strategy = "result"` a seat's last turn, if it is not listed, earns the seat's return.
    """

    def __init__(self, inner: Reward, section: RewardSection, judge: Judge | None = None) -> None:
        self.inner, self.section, self.judge = inner, section, judge

    async def score(self, episode: Episode, seed: int) -> Score:
        """Score by the inner reward, then add the process rewards."""
        score = await self.inner.score(episode, seed)
        listed = {*(gained(episode) if self.judge is None else await self._judged(self.judge, episode, score, seed))}
        earned = [float(index in listed) for index in range(len(episode.turns))]
        if self.section.last_strategy == "result":
            for seat in {turn.seat for turn in episode.turns}:
                last = max(index for index, turn in enumerate(episode.turns) if turn.seat == seat)
                earned[last] = earned[last] or score.returns[seat]
        return replace(score, parts={**score.parts, PROCESS: tuple(earned)})

    async def _judged(self, judge: Judge, episode: Episode, score: Score, seed: int) -> Sequence[int]:
        """Return the turns that the judge lists, asking it about each seat with a strategist."""
        seats = sorted({turn.seat for turn in episode.turns if turn.strategy})
        listed = await asyncio.gather(
            *(judge.critical(episode, seat, score.returns[seat], seed=derive(seed, PROCESS, seat)) for seat in seats)
        )
        return [index for of_seat in listed for index in of_seat]
