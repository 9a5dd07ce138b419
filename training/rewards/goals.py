"""Who has reached their goal, asked of a judge during a game: what the tool seat of a dialogue reports.

Raises `JudgeError` where the judge could not say; the episode is then an error record.
"""

from __future__ import annotations

from training.games import Game
from training.records import ALL, Move
from training.rewards.judge import Judge, transcript_from


class GoalCheck:
    """A tool for the rollout: called with the game whenever its tool seat is to act."""

    def __init__(self, judge: Judge) -> None:
        self.judge = judge

    async def __call__(self, game: Game) -> Move:
        """Return the report; nobody's goal counts as reached unless the judge says so of that seat."""
        transcript = transcript_from(game.scenario, game.observe(ALL).messages)
        reached = await self.judge.goals(transcript, seed=game.scenario.seed)
        answer = {(): "nobody", (0,): "0", (1,): "1", (0, 1): "both"}[tuple(sorted(reached))]
        return Move(action="goal", args={"reached": answer}, origin="tool")
