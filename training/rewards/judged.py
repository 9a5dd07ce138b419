"""Rewards that use a judge: the mean over a codebook's dimensions, and the quality filter over turns.

They raise `JudgeError` if the judge could not score: such an episode is an error record, never a zero.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from training.labels.codebooks import Codebook
from training.records import Episode
from training.rewards.base import Reward, Score
from training.rewards.judge import Judge, transcript_of
from training.seeding import derive


class Judged:
    """A seat's return is the mean of the judge's values; with SOTOPIA's seven dimensions that of OMAR, §4.1.

    A seat that forfeited gets the lowest mean, whatever a judge would give it.
    """

    def __init__(self, judge: Judge, codebook: Codebook) -> None:
        self.judge = judge
        self.codebook = codebook

    async def score(self, episode: Episode, seed: int) -> Score:
        """Judge every seat that did not forfeit; all of them must be scored."""
        transcript = transcript_of(episode.scenario, episode.moves)
        lost = {entry.seat: self.codebook.mean_range()[0] for entry in episode.moves if entry.move.origin == "forfeit"}
        seats = [seat for seat in range(len(episode.scenario.seats)) if seat not in lost]
        verdicts = await asyncio.gather(
            *(self.judge.score(transcript, self.codebook, seat, seed=derive(seed, "seat", seat)) for seat in seats)
        )
        judgments = tuple(verdict.judgment(self.judge.name, transcript.target) for verdict in verdicts)
        return Score(
            lost | {verdict.seat: verdict.mean for verdict in verdicts},
            tuple(turn.passed for turn in episode.turns),
            judgments=judgments,
        )


class QualityFiltered:
    """Wraps a reward: turns must also pass the judge's quality filter."""

    def __init__(self, inner: Reward, judge: Judge) -> None:
        self.inner = inner
        self.judge = judge

    async def score(self, episode: Episode, seed: int) -> Score:
        """Score by the inner reward, and clear `passed` of the turns that the judge rejects."""
        score, fit = await asyncio.gather(
            self.inner.score(episode, seed), self.judge.quality(episode, seed=derive(seed, "quality"))
        )
        return replace(score, passed=tuple(a and b for a, b in zip(score.passed, fit, strict=True)))
