"""Credit of one episode, trace by trace, while a method writes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from training.records import EpisodeCredit, ScoredEpisode, TraceCredit

if TYPE_CHECKING:
    from training.records import Bools, Floats

Stream = Literal["ppo", "reinforce", "nll"]


class CreditBuilder:
    """Credit of one episode while it is being written.

    Every method takes the index of a trace and, as `where`, the positions of its tokens; `values` is one number for all
    of them or an array with one entry each. Writing to the same positions again replaces what they had. Positions of a
    trace that were not written stay 0; a stream that a trace has no entry in is off there, and a trace that nothing was
    written to has no credit.
    """

    def __init__(self, scored: ScoredEpisode) -> None:
        self._lengths = [len(trace.tokens) for trace in scored.episode.traces]
        self._streams: dict[int, dict[Stream, Floats]] = {}
        self._targets: dict[int, dict[str, Floats]] = {}
        self._masks: dict[int, dict[str, Bools]] = {}
        self._turns: dict[int, dict[int, float]] = {}

    def ppo(self, trace: int, where: slice, values: Floats | float) -> None:
        """Set advantages of the clipped objective; the loss reads them at sampled tokens."""
        self._write("ppo", trace, where, values)

    def reinforce(self, trace: int, where: slice, values: Floats | float) -> None:
        """Set advantages of −A log π; the loss reads them at sampled tokens."""
        self._write("reinforce", trace, where, values)

    def nll(self, trace: int, where: slice, values: Floats | float) -> None:
        """Set weights of −w log π on any tokens, sampled or not; 0 takes a token out of the term."""
        self._write("nll", trace, where, values)

    def value(self, head: str, trace: int, where: slice, targets: Floats | float) -> None:
        """Set what a value head should have predicted after the tokens at `where`."""
        length = self._lengths[trace]
        self._targets.setdefault(trace, {}).setdefault(head, np.zeros(length))[where] = targets
        self._masks.setdefault(trace, {}).setdefault(head, np.zeros(length, dtype=bool))[where] = True

    def turn(self, trace: int, index: int, advantage: float) -> None:
        """Set the advantage of a turn for display; `index` counts in `Episode.turns`."""
        self._turns.setdefault(trace, {})[index] = advantage

    def credit(self) -> EpisodeCredit:
        """Return the credit as it was written."""
        written = {*self._streams, *self._targets, *self._turns}
        return EpisodeCredit([self._trace(i) if i in written else None for i in range(len(self._lengths))])

    def _write(self, stream: Stream, trace: int, where: slice, values: Floats | float) -> None:
        self._streams.setdefault(trace, {}).setdefault(stream, np.zeros(self._lengths[trace]))[where] = values

    def _trace(self, i: int) -> TraceCredit:
        streams = self._streams.get(i, {})
        return TraceCredit(
            ppo=streams.get("ppo"),
            reinforce=streams.get("reinforce"),
            nll=streams.get("nll"),
            value_targets=self._targets.get(i, {}),
            value_mask=self._masks.get(i, {}),
            turn_advantages=self._turns.get(i, {}),
        )
