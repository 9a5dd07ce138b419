"""The outcome reward: the game's own returns. An episode without returns is an error."""

from __future__ import annotations

from training.errors import JudgeError
from training.records import Episode
from training.rewards.base import EARNED, Score


class Outcome:
    """Takes the game's return for each seat, and for each turn what the game paid before its end."""

    async def score(self, episode: Episode, seed: int) -> Score:
        """Return the game's returns; raise `JudgeError` for a seat without one."""
        returns = {seat: value for seat, value in episode.returns.items() if value is not None}
        if missing := set(range(len(episode.scenario.seats))) - returns.keys():
            raise JudgeError(f"the game gave seat {min(missing)} no return: it needs a judge, or did not end")
        earned = tuple(episode.earned.get(turn, 0.0) for turn in range(len(episode.turns)))
        parts = {EARNED: earned} if episode.earned else {}
        return Score(returns, tuple(turn.passed for turn in episode.turns), parts)
