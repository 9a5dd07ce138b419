"""Asks a judge during a game whose goal is reached; the tool seat of a dialogue reports the answer.

Raises `JudgeError` if the judge gives no usable answer; the episode is then an error record.
"""

from __future__ import annotations

from training.games import Game
from training.records import ALL, Move
from training.rewards.judge import Judge, transcript_from


class GoalCheck:
    """A tool of the rollout, called with the game whenever its tool seat must act."""

    def __init__(self, judge: Judge) -> None:
        self.judge = judge

    async def __call__(self, game: Game) -> Move:
        """Return the report; a seat's goal counts as reached only if the judge says so."""
        transcript = transcript_from(game.scenario, game.observe(ALL).messages)
        reached = await self.judge.goals(transcript, seed=game.scenario.seed)
        answer = {(): "nobody", (0,): "0", (1,): "1", (0, 1): "both"}[tuple(sorted(reached))]
        return Move(action="goal", args={"reached": answer}, origin="tool")
