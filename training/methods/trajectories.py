"""Where an episode's tokens stand: a learning seat's turns, what it observed after them, and its answers to probes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from training.records import LEARNER, Episode, ScoredEpisode, Seat

if TYPE_CHECKING:
    from training.records import Floats


@dataclass(frozen=True, slots=True)
class TurnTokens:
    """One turn of a seat: its index into `Episode.turns`, its trace, and the range of its sampled tokens there."""

    index: int
    trace: int
    first: int
    stop: int

    @property
    def sampled(self) -> slice:
        """The positions of the turn's tokens."""
        return slice(self.first, self.stop)

    @property
    def prefixes(self) -> slice:
        """The positions of the hidden states from which the turn's tokens were sampled: one before each token."""
        return slice(self.first - 1, self.stop - 1)

    def before(self, arrays: Sequence[Floats]) -> Floats:
        """Return, for each token of the turn, the entry at the prefix before it."""
        return arrays[self.trace][self.prefixes]

    def after(self, arrays: Sequence[Floats]) -> float:
        """Return the entry at the turn's last token."""
        return float(arrays[self.trace][self.stop - 1])

    def on(self, arrays: Sequence[Floats]) -> Floats:
        """Return the entries at the turn's tokens."""
        return arrays[self.trace][self.sampled]

    def __len__(self) -> int:
        return self.stop - self.first


@dataclass(frozen=True, slots=True)
class ObservedTokens:
    """What a seat read after one of its turns: the turn's index, the trace, and the range of the tokens there."""

    index: int
    trace: int
    where: slice


@dataclass(frozen=True, slots=True)
class ProbeAnswer:
    """A seat's answer to a probe after `after` moves of the episode.

    `right` is the probability of the right choices together. `where` are the tokens of the right choice in `trace`.
    """

    seat: Seat
    after: int
    right: float
    trace: int
    where: slice


@dataclass(frozen=True, slots=True)
class SeatTrajectory:
    """One seat's turns in an episode in order, each with its reward; the last one includes the seat's result."""

    seat: Seat
    turns: tuple[TurnTokens, ...]
    rewards: Floats
    passed: tuple[bool, ...]


def turn_tokens(episode: Episode) -> dict[Seat, list[TurnTokens]]:
    """Return the learner's turns by seat, in chronological order.

    A branch repeats tokens of its parent, so a turn belongs to the first trace that contains it. Raises `ValueError`
    for sampled tokens without a prefix, and for a turn whose tokens are not contiguous.
    """
    seats: dict[Seat, dict[int, TurnTokens]] = {}
    for number, trace in enumerate(episode.traces):
        if trace.policy != LEARNER:
            continue
        turns = np.where(np.asarray(trace.mask, dtype=bool), np.asarray(trace.turn, dtype=np.int64), -1)
        by_index = seats.setdefault(trace.seat, {})
        for index in np.unique(turns[turns >= 0]).tolist():
            at = np.flatnonzero(turns == index)
            first, stop = int(at[0]), int(at[-1]) + 1
            if index in by_index:
                continue
            if first == 0 or stop - first != len(at):
                raise ValueError(f"trace {number}: the sampled tokens of turn {index} start or break off wrongly")
            by_index[index] = TurnTokens(index, number, first, stop)
    return {seat: [turns[index] for index in sorted(turns)] for seat, turns in seats.items() if turns}


def observed_tokens(episode: Episode) -> dict[Seat, list[ObservedTokens]]:
    """Return what each learning seat observed after its turns, in chronological order.

    They are the tokens from a turn's last one to the next sampled one or the trace's end, the template's own between
    the messages included. Nothing follows a turn after which the seat was asked no more, or after which its past was
    written anew: the branch that begins there shows what it observed among words of its own.
    """
    seats: dict[Seat, list[ObservedTokens]] = {}
    for seat, turns in turn_tokens(episode).items():
        seats[seat] = []
        for turn in turns:
            mask = episode.traces[turn.trace].mask
            stop = next((at for at in range(turn.stop, len(mask)) if mask[at]), len(mask))
            if stop > turn.stop:
                seats[seat].append(ObservedTokens(turn.index, turn.trace, slice(turn.stop, stop)))
    return seats


def probe_answers(episode: Episode) -> list[ProbeAnswer]:
    """Return the learner's answers to probes with a right choice, in the order in which they were asked."""
    return [
        ProbeAnswer(
            seat=belief.seat,
            after=belief.after,
            right=belief.right,
            trace=belief.trace,
            where=slice(*belief.span),
        )
        for belief in episode.beliefs
        if belief.trace is not None and belief.span is not None and episode.traces[belief.trace].policy == LEARNER
    ]


def seat_trajectories(scored: ScoredEpisode, results: Mapping[Seat, float]) -> list[SeatTrajectory]:
    """Return one trajectory per learning seat; `results` is what each receives at the end (`ScoredEpisode.returns`).

    A turn's reward is its entry in `turn_rewards` plus the rewards of its tokens; the last turn adds the result.
    """
    trajectories = []
    for seat, turns in turn_tokens(scored.episode).items():
        rewards = np.array([scored.turn_rewards[turn.index] for turn in turns], dtype=np.float64)
        if scored.token_rewards:
            rewards += np.array([float(turn.on(scored.token_rewards).sum()) for turn in turns])
        rewards[-1] += results[seat]
        passed = tuple(bool(scored.passed[turn.index]) for turn in turns)
        trajectories.append(SeatTrajectory(seat, tuple(turns), rewards, passed))
    return trajectories


def eliminated(episode: Episode, seat: Seat) -> bool:
    """Return whether the game eliminated the seat before its final round, according to `seat_metrics`."""
    return episode.seat_metrics.get(seat, {}).get("eliminated", 0.0) > 0
