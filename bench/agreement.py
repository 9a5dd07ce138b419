"""Agreement and aggregated truth against what is known of synthetic annotators, and the time of agreement.

The true value of an item is drawn from the frequencies of the values. An annotator with error rate e states another
value in a share e of items, each of the others as often. Then two annotators with rates e and f agree on an item with
probability (1 - e)(1 - f) + e f / (k - 1), whatever its true value of k is, and an annotator states a value of
frequency p in a share p (1 - e) + (1 - p) e / (k - 1) of items. Alpha of many items is 1 - (1 - the mean agreement of
pairs) / (1 - the sum of squares of the mean shares). Intervals are measured by how often they contain that alpha.
"""

from __future__ import annotations

import os
import time
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import combinations
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.rows import over_seeds
from training.evaluate.agreement import Agreement, Coefficient, Level, cluster_sums, estimate, krippendorff
from training.evaluate.intervals import student
from training.labels.truth import METHODS, Label, Truth

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from training.records import Floats

Table = list[list[int | None]]
RATES = (0.05, 0.15, 0.25, 0.35, 0.45)
"""The error rates of the annotators."""
FREQUENCIES = {"even": (0.25, 0.25, 0.25, 0.25), "skewed": (0.7, 0.15, 0.1, 0.05)}
"""The frequencies of the true values."""
LAYOUTS = {"all": 5, "three": 3}
"""How many of the five annotators label an item, drawn for each."""
CLUSTERS = (5, 10, 20, 50)
PER_CLUSTER = 4
TIMED: tuple[tuple[Coefficient, Level], ...] = (
    *(("krippendorff", level) for level in ("nominal", "ordinal", "interval")),
    *(("gwet", level) for level in ("nominal", "ordinal", "interval")),
    *((name, "nominal") for name in ("cohen", "fleiss", "percent")),
)
UNITS, RATERS, VALUES, RESAMPLES, ROUNDS = 10_000, 3, 8, 1000, 3
"""Of the measurement of time."""


def main(arguments: Namespace) -> dict[str, Any]:
    """Return deviations of alpha, accuracies by seed and method, coverage of intervals, and seconds."""
    seeds = range(arguments.seeds)
    tables = {
        (shares, layout, seed): _table(arguments.items, FREQUENCIES[shares], LAYOUTS[layout], seed)
        for shares in FREQUENCIES
        for layout in LAYOUTS
        for seed in seeds
    }
    known = {name: _alpha(RATES, shares) for name, shares in FREQUENCIES.items()}
    estimates = {
        f"{shares}, {layout}": [krippendorff(tables[shares, layout, seed][1]) for seed in seeds]
        for shares in FREQUENCIES
        for layout in LAYOUTS
    }
    deviations = [
        abs(value - known[name.split(",")[0]]) for name, row in estimates.items() for value in row if value is not None
    ]
    return {
        "items": arguments.items,
        "seeds": arguments.seeds,
        "rates": RATES,
        "frequencies": FREQUENCIES,
        "alpha": {"known": known, "estimated": estimates, "largest_deviation": max(deviations)},
        "truth": {layout: _truth([tables["even", layout, seed] for seed in seeds]) for layout in LAYOUTS},
        "coverage": {str(count): _coverage(count, arguments.samples) for count in CLUSTERS},
        "samples": arguments.samples,
        "seconds": _seconds(),
        "load": os.getloadavg()[0],
    }


def _table(items: int, shares: Sequence[float], labelled: int, seed: int) -> tuple[NDArray[np.int64], Table]:
    """Return the true values, and what every annotator of `RATES` says of them; `labelled` of them say something."""
    rng = np.random.default_rng(seed)
    values = len(shares)
    truth = rng.choice(values, items, p=shares)
    wrong = rng.random((len(RATES), items)) < np.array(RATES)[:, None]
    stated = np.where(wrong, (truth + rng.integers(1, values, wrong.shape)) % values, truth)
    asked = np.argsort(rng.random(wrong.shape), axis=0) < labelled
    return truth, [
        [int(value) if said else None for value, said in zip(*row, strict=True)]
        for row in zip(stated, asked, strict=True)
    ]


def _alpha(rates: Sequence[float], shares: Sequence[float]) -> float:
    others = len(shares) - 1
    agreement = fmean((1 - e) * (1 - f) + e * f / others for e, f in combinations(rates, 2))
    error = fmean(rates)
    stated = [share * (1 - error) + (1 - share) * error / others for share in shares]
    return 1 - (1 - agreement) / (1 - sum(share**2 for share in stated))


def _truth(tables: Sequence[tuple[NDArray[np.int64], Table]]) -> dict[str, Any]:
    """Return each method's accuracy by seed, and its difference from majority voting over seeds."""
    accuracy: dict[str, list[float]] = {name: [] for name in METHODS}
    for truth, table in tables:
        labels = [
            Label(item, annotator, value)
            for annotator, row in enumerate(table)
            for item, value in enumerate(row)
            if value is not None
        ]
        for name, method in METHODS.items():
            accuracy[name].append(_accuracy(method.infer(labels), truth.tolist()))
    return {
        "accuracy": accuracy,
        "minus_majority": {
            name: over_seeds("mean", [a - b for a, b in zip(row, accuracy["majority"], strict=True)])
            for name, row in accuracy.items()
            if name != "majority"
        },
    }


def _accuracy(result: Truth, truth: Sequence[int]) -> float:
    """Return the mean share of items that are right; of a tie, the chance that one of its values at random is."""
    units = (result.units[item] for item in range(len(truth)))
    return fmean((value in unit.values) / len(unit.values) for unit, value in zip(units, truth, strict=True))


def _coverage(clusters: int, samples: int) -> dict[str, dict[str, float]]:
    """Return for even and clustered errors the shares of 95 % intervals that contain alpha, by method.

    In `clustered`, annotators state the truth with probability 0.95 in half of the clusters and otherwise 0.5, and toss
    a coin else: pairs agree in (1 + (0.95^2 + 0.5^2) / 2) / 2 of the items, and alpha is (0.95^2 + 0.5^2) / 2. In
    `even` the probability is 0.8 everywhere, and alpha 0.8^2.
    """
    rows = {}
    for name, trust, alpha in (("even", (0.8, 0.8), 0.64), ("clustered", (0.95, 0.5), (0.95**2 + 0.5**2) / 2)):
        rng = np.random.default_rng(clusters)
        hits: dict[str, list[bool]] = {"t": [], "percentiles": [], "jackknife": []}
        for _ in range(samples):
            easy = np.repeat(rng.random(clusters) < 0.5, PER_CLUSTER)
            size = (RATERS, clusters * PER_CLUSTER)
            truth = rng.integers(0, 2, size[1])
            sees = rng.random(size) < np.where(easy, *trust)
            ratings = np.where(sees, truth, rng.integers(0, 2, size)).tolist()
            for method, (low, high) in _intervals(ratings, clusters, rng).items():
                hits[method].append(low <= alpha <= high)
        rows[name] = {method: fmean(each) for method, each in hits.items()}
    return rows


def _intervals(ratings: Table, clusters: int, rng: np.random.Generator) -> Mapping[str, tuple[float, float]]:
    """Return the interval of `estimate`, and two others; without width where it is not defined."""
    groups = np.repeat(range(clusters), PER_CLUSTER).tolist()
    result: Agreement = estimate("krippendorff", ratings, groups)
    value = 0.0 if result.value is None else result.value
    sums = cluster_sums("krippendorff", ratings, groups)
    times = rng.multinomial(clusters, np.full(clusters, 1 / clusters), RESAMPLES)
    with np.errstate(divide="ignore", invalid="ignore"):
        drawn: Floats = sums.coefficient(times @ sums.rows)
        without: Floats = sums.coefficient(sums.rows.sum(axis=0) - sums.rows)
    low, high = np.nanquantile(drawn, (0.025, 0.975))
    error = float(np.sqrt((clusters - 1) / clusters * ((without - without.mean()) ** 2).sum()))
    bounds = (value, value) if result.low is None or result.high is None else (result.low, result.high)
    return {"t": bounds, "percentiles": (low, high), "jackknife": student(value, error, clusters)}


def _seconds() -> dict[str, dict[str, dict[str, float]]]:
    """Return the median seconds, elapsed and of the processor, of every coefficient with its interval.

    They are by number of clusters. On an idle machine a thread's processor time is the time that elapses.
    """
    rng = np.random.default_rng(0)
    truth = rng.integers(0, VALUES, UNITS)
    noise = rng.integers(0, VALUES, (RATERS, UNITS))
    ratings = np.where(rng.random((RATERS, UNITS)) < 0.7, truth, noise).tolist()
    student(0.0, 1.0, 2)  # imports scipy, which every process does once
    rows = {}
    for clusters in (UNITS // 20, UNITS):
        groups = (np.arange(UNITS) % clusters).tolist()
        rows[str(clusters)] = {
            f"{coefficient}, {level}": _timed(partial(_estimated, coefficient, level, ratings, groups))
            for coefficient, level in TIMED
        }
    return rows


def _estimated(coefficient: Coefficient, level: Level, ratings: Table, groups: Sequence[int]) -> Agreement:
    chosen = ratings[:2] if coefficient == "cohen" else ratings
    return estimate(coefficient, chosen, groups, level=level, resamples=RESAMPLES)


def _timed(call: Callable[[], object]) -> dict[str, float]:
    clocks: dict[str, Callable[[], float]] = {"elapsed": time.perf_counter, "processor": time.process_time}
    rounds: dict[str, list[float]] = {name: [] for name in clocks}
    for _ in range(ROUNDS):
        begun = {name: clock() for name, clock in clocks.items()}
        call()
        for name, clock in clocks.items():
            rounds[name].append(clock() - begun[name])
    return {name: median(values) for name, values in rounds.items()}


def show(result: dict[str, Any]) -> str:
    """Return the lines of the page."""
    from bench.agreement_page import page

    return "\n".join(page(result))
