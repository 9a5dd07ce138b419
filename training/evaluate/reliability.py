"""Intervals of annotators' reliability, as `training.labels.truth` estimates it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

import numpy as np

from training.evaluate.intervals import student
from training.labels.truth import Label, Truth

FEWEST_GAMES = 3
"""Of an interval."""
LEAST_ERROR = 1e-6
"""A smaller standard error is that of an annotator who is always estimated alike."""


def reliability_intervals(
    method: Callable[[Iterable[Label]], Truth],
    labels: Iterable[Label],
    clusters: Mapping[Hashable, Hashable],
    *,
    resamples: int = 30,
    most: int = 300,
    seed: int = 0,
) -> dict[Hashable, tuple[float, float] | None]:
    """Return the 95 % interval of each annotator's reliability by a method; None where there is none.

    `clusters[u]` is the game of unit u. The standard error is that of `resamples` draws of games with replacement, as
    many as there are but at most `most`; with fewer it is scaled by the root of the ratio (m out of n bootstrap). The
    interval is Student's t, cut to 0 to 1. There is none for fewer than three games, and for an annotator of whom a
    tenth of the draws says nothing or who is always estimated alike.
    """
    games: dict[Hashable, list[Label]] = defaultdict(list)
    entries = list(labels)
    for label in entries:
        games[clusters[label.unit]].append(label)
    values = method(entries).reliability
    if len(games) < FEWEST_GAMES:
        return dict.fromkeys(values)
    rng, rows = np.random.default_rng(seed), list(games.values())
    size = min(len(rows), most)
    drawn: dict[Hashable, list[float]] = defaultdict(list)
    for _ in range(resamples):
        sample = [
            label._replace(unit=(place, label.unit))  # a game that is drawn twice is two games
            for place, game in enumerate(rng.integers(len(rows), size=size).tolist())
            for label in rows[game]
        ]
        for who, value in method(sample).reliability.items():
            if value is not None:
                drawn[who].append(value)
    scale = math.sqrt(size / len(rows)) * math.sqrt(size / (size - 1))
    return {who: _bounds(value, drawn[who], scale, resamples, len(rows)) for who, value in values.items()}


def _bounds(
    value: float | None, drawn: Sequence[float], scale: float, resamples: int, games: int
) -> tuple[float, float] | None:
    if value is None or len(drawn) < 0.9 * resamples:
        return None
    error = float(np.std(drawn, ddof=1)) * scale
    if error < LEAST_ERROR:
        return None
    low, high = student(value, error, games)
    return max(0.0, low), min(1.0, high)
