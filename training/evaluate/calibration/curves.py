"""Calibration curves: how well a score ranks questions by what a search, or an answer without one, is worth.

The search curve has the mean F1 where the share x of questions with the highest scores is searched for, the answer
curve that of the share x with the highest scores. Questions with equal scores are in random order; a curve has the
expected value over these orders, so that the curve of a shuffled ranking is known exactly. Arrays may have leading
dimensions, as the bootstrap's resamples have; the last one is that of the n questions.
Source: “Don't lie to your friends: Learning what you know from collaborative self-play”, figures 4 and 5.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from training.errors import BadInput
from training.evaluate.intervals import Interval
from training.reading import Record

if TYPE_CHECKING:
    from training.records import Floats

TOP = (10, 20, 50)
"""The percentages of questions of which the F1 at the beginning of the answer curve is reported."""
POINTS = 50
"""Most steps between the stored points of a curve."""
RESAMPLES = 2000
LEVEL = 0.95
METHOD = f"95 %, percentile bootstrap of {RESAMPLES} resamples of questions"


class Curve(Record):
    """Points of a curve: shares of the questions from 0 to 1, ascending, and the mean F1 at each."""

    shares: tuple[float, ...]
    f1: tuple[float, ...]


class Calibration(Record):
    """A curve with that of a shuffled ranking, the areas under both, and the first minus the second.

    `top` has the mean F1 of the share of questions with the highest scores, by percentage; of the answer curve alone.
    """

    curve: Curve
    shuffled: Curve
    area: Interval
    shuffled_area: Interval
    gain: Interval
    top: dict[int, Interval] = Field(default_factory=dict)


def search_curve(scores: Floats, searched: Floats, unsearched: Floats) -> Floats:
    """Return the mean F1 for 0 to n searches, (…, n + 1), from the F1 of each question with and without a search."""
    gains = np.cumsum(_ranked(scores, searched - unsearched), axis=-1)
    without = unsearched.sum(axis=-1, keepdims=True)
    curve: Floats = np.concatenate([without, without + gains], axis=-1) / scores.shape[-1]
    return curve


def answer_curve(scores: Floats, f1: Floats) -> Floats:
    """Return the mean F1 of the 1 to n questions with the highest scores, (…, n)."""
    curve: Floats = np.cumsum(_ranked(scores, f1), axis=-1) / np.arange(1, scores.shape[-1] + 1)
    return curve


def search_calibration(
    scores: Sequence[float], searched: Sequence[float], unsearched: Sequence[float], seed: int = 0
) -> Calibration:
    """Return the calibration of P(search): areas by the trapezoidal rule over shares from 0 to 1.

    A shuffled ranking gives the straight line from no search at all to a search for every question. Raises `BadInput`
    without questions, for numbers that are not finite, or of different lengths.
    """
    rows = _checked(scores, searched, unsearched)
    n = rows.shape[-1]

    def areas(scores: Floats, searched: Floats, unsearched: Floats, axis: int = -1) -> Floats:
        area = np.trapezoid(search_curve(scores, searched, unsearched), dx=1 / n, axis=-1)
        shuffled = (searched.mean(axis=-1) + unsearched.mean(axis=-1)) / 2
        return np.stack([area, shuffled, area - shuffled])

    area, shuffled_area, gain = _bootstrap(rows, areas, seed)
    return Calibration(
        curve=_stored(search_curve(*rows), 0),
        shuffled=Curve(shares=(0.0, 1.0), f1=(float(rows[2].mean()), float(rows[1].mean()))),
        area=area,
        shuffled_area=shuffled_area,
        gain=gain,
    )


def answer_calibration(scores: Sequence[float], f1: Sequence[float], seed: int = 0) -> Calibration:
    """Return the calibration of the confidence in an answer without a search.

    The area is the mean of the curve over 1 to n questions, as that under a risk-coverage curve is; a shuffled ranking
    has the mean F1 at every share. Of `top`, the number of questions is rounded up. Raises `BadInput` as
    `search_calibration` does.
    """
    rows = _checked(scores, f1)
    n = rows.shape[-1]
    places = [-(-n * percent // 100) - 1 for percent in TOP]

    def numbers(scores: Floats, f1: Floats, axis: int = -1) -> Floats:
        curve = answer_curve(scores, f1)
        area, shuffled = curve.mean(axis=-1), f1.mean(axis=-1)
        return np.stack([area, shuffled, area - shuffled, *(curve[..., place] for place in places)])

    area, shuffled_area, gain, *top = _bootstrap(rows, numbers, seed)
    mean = float(rows[1].mean())
    return Calibration(
        curve=_stored(answer_curve(*rows), 1),
        shuffled=Curve(shares=(1 / n, 1.0), f1=(mean, mean)),
        area=area,
        shuffled_area=shuffled_area,
        gain=gain,
        top=dict(zip(TOP, top, strict=True)),
    )


def _ranked(scores: Floats, values: Floats) -> Floats:
    """Return the values by descending score, (…, n), each replaced by the mean over all with the same score.

    The expected sum of the first k of them, over random orders of equal scores, is then the sum of the first k.
    """
    order = np.argsort(-scores, axis=-1, kind="stable")
    ranked = np.take_along_axis(scores, order, axis=-1).reshape(-1, scores.shape[-1])
    sorted_values = np.take_along_axis(values, order, axis=-1).reshape(ranked.shape)
    begins = np.ones(ranked.shape, dtype=bool)
    begins[:, 1:] = ranked[:, 1:] != ranked[:, :-1]
    group = np.cumsum(begins.ravel()) - 1
    means = np.bincount(group, weights=sorted_values.ravel()) / np.bincount(group)
    result: Floats = means[group].reshape(scores.shape)
    return result


def _checked(*columns: Sequence[float]) -> Floats:
    """Return the columns as one array, (columns, n); raise `BadInput` for what is no such table."""
    if len({len(column) for column in columns}) > 1 or not len(columns[0]):
        raise BadInput("a calibration needs one number of each kind for every question, and a question", "questions")
    rows = np.asarray(columns, dtype=np.float64)
    if not np.isfinite(rows).all():
        raise BadInput("a calibration needs finite numbers, and one of these is NaN or infinite", "questions")
    return rows


def _bootstrap(rows: Floats, statistic: Callable[..., Floats], seed: int) -> list[Interval]:
    """Return each of the statistic's numbers with its interval over questions; of one question it has no width."""
    from scipy import stats

    n = rows.shape[-1]
    estimates = statistic(*rows)
    low = high = estimates
    if n > 1:
        options: dict[str, Any] = {"n_resamples": RESAMPLES, "confidence_level": LEVEL, "method": "percentile"}
        rng = np.random.default_rng(seed)
        bounds = stats.bootstrap(tuple(rows), statistic, paired=True, vectorized=True, batch=200, rng=rng, **options)
        low, high = bounds.confidence_interval
    return [
        Interval(mean=float(mean), low=float(lower), high=float(upper), n=n, level=LEVEL)
        for mean, lower, upper in zip(estimates, low, high, strict=True)
    ]


def _stored(curve: Floats, first: int) -> Curve:
    """Return at most `POINTS` + 1 points of a curve over `first` to n questions, both ends among them."""
    n = len(curve) - 1 + first
    counts = np.unique(np.linspace(first, n, min(POINTS, len(curve) - 1) + 1).round().astype(int))
    return Curve(
        shares=tuple(float(count / n) for count in counts), f1=tuple(float(curve[count - first]) for count in counts)
    )
