"""The outcome reward: what the game itself says a seat earned. An episode that the game left open is an error."""

from __future__ import annotations

from training.errors import JudgeError
from training.records import Episode
from training.rewards.base import Score


class Outcome:
    """A seat's return is the game's own; turns keep the rewards that the rollout gave them."""

    async def score(self, episode: Episode, seed: int) -> Score:
        """Return the game's returns; raise `JudgeError` for a seat without one."""
        returns = {seat: value for seat, value in episode.returns.items() if value is not None}
        if missing := set(range(len(episode.scenario.seats))) - returns.keys():
            raise JudgeError(f"the game gave seat {min(missing)} no return: it needs a judge, or did not end")
        return Score(
            returns,
            (0.0,) * len(episode.turns),
            tuple(turn.passed for turn in episode.turns),
        )
