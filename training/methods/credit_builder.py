"""Credit of one episode, trace by trace, while a method writes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from training.records import EpisodeCredit, ScoredEpisode, TraceCredit

if TYPE_CHECKING:
    from training.records import Bools, Floats


class CreditBuilder:
    """Credit of one episode while it is being written; what is not written stays 0 and out of the loss."""

    def __init__(self, scored: ScoredEpisode) -> None:
        self.lengths = [len(trace.tokens) for trace in scored.episode.traces]
        self.advantages: dict[int, Floats] = {}
        self.targets: dict[int, dict[str, Floats]] = {}
        self.marks: dict[int, dict[str, Bools]] = {}
        self.turns: dict[int, dict[int, float]] = {}

    def ppo(self, trace: int, where: slice, values: Floats) -> None:
        """Put PPO advantages on the tokens at `where`."""
        self.advantages.setdefault(trace, np.zeros(self.lengths[trace]))[where] = values

    def value(self, head: str, trace: int, where: slice, target: Floats | float) -> None:
        """Set what a value head should have said after the tokens at `where`."""
        length = self.lengths[trace]
        self.targets.setdefault(trace, {}).setdefault(head, np.zeros(length))[where] = target
        self.marks.setdefault(trace, {}).setdefault(head, np.zeros(length, dtype=bool))[where] = True

    def turn(self, trace: int, index: int, advantage: float) -> None:
        """Note a turn's advantage, for display."""
        self.turns.setdefault(trace, {})[index] = advantage

    def credit(self) -> EpisodeCredit:
        """Return the credit; a trace that nothing was put on receives none."""
        return EpisodeCredit([self._trace(i) if i in self.advantages else None for i in range(len(self.lengths))])

    def _trace(self, i: int) -> TraceCredit:
        return TraceCredit(
            ppo=self.advantages[i],
            value_targets=self.targets.get(i, {}),
            value_mask=self.marks.get(i, {}),
            turn_advantages=self.turns.get(i, {}),
        )
