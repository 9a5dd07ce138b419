"""How often a 95 % interval covers the mean: Student's t beside two forms of the bootstrap, and for proportions.

`sparse` is a rare event with a skewed value: nine of ten scenarios are 0.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from training.records import Floats

LEVEL = 0.95
SIZES = (3, 5, 10, 30, 100)
RESAMPLES = 1999
BATCH = 250
Draw = Callable[[np.random.Generator, tuple[int, int]], "Floats"]
DATA: dict[str, tuple[Draw, float]] = {
    "normal": (lambda rng, size: rng.normal(0, 1, size), 0.0),
    "gamma, shape 2": (lambda rng, size: rng.gamma(2, 1, size), 2.0),
    "exponential": (lambda rng, size: rng.exponential(1, size), 1.0),
    "lognormal": (lambda rng, size: rng.lognormal(0, 1, size), float(np.exp(0.5))),
    "sparse": (lambda rng, size: rng.binomial(1, 0.1, size) * rng.gamma(4, 1, size), 0.4),
}
"""The distribution of each kind of data, and its true mean."""
SHARES = (0.02, 0.1, 0.5)


def main(arguments: Namespace) -> dict[str, Any]:
    """Return the share of intervals that cover the truth, by data, size and method. Proportions need no samples."""
    samples, seed = arguments.samples, arguments.seed
    means = {
        name: {str(n): _means(draw(np.random.default_rng(seed), (samples, n)), truth, seed) for n in SIZES}
        for name, (draw, truth) in DATA.items()
    }
    proportions = {str(share): {str(n): _proportions(share, n) for n in SIZES} for share in SHARES}
    conditions = {"level": LEVEL, "samples": samples, "resamples": RESAMPLES, "seed": seed}
    return {**conditions, "means": means, "proportions": proportions}


def _means(data: Floats, truth: float, seed: int) -> dict[str, float]:
    return {
        "t": _student(data, truth),
        "bca": _bootstrap(data, truth, "BCa", seed),
        "percentile": _bootstrap(data, truth, "percentile", seed),
    }


def _student(data: Floats, truth: float) -> float:
    from scipy import stats

    n = data.shape[1]
    half = stats.t.ppf((1 + LEVEL) / 2, n - 1) * data.std(axis=1, ddof=1) / np.sqrt(n)
    return float(np.mean(np.abs(data.mean(axis=1) - truth) <= half))


def _bootstrap(data: Floats, truth: float, method: str, seed: int) -> float:
    """Return the coverage of scipy's bootstrap; BCa's missing interval for a sample without spread is a miss."""
    import warnings

    from scipy import stats

    rng, covered = np.random.default_rng(seed), 0
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", stats.DegenerateDataWarning)
        for start in range(0, len(data), BATCH):
            bounds = stats.bootstrap(
                (data[start : start + BATCH],),
                np.mean,
                axis=1,
                confidence_level=LEVEL,
                n_resamples=RESAMPLES,
                batch=50,
                method=method,
                rng=rng,
            ).confidence_interval
            covered += int(np.sum((bounds.low <= truth) & (truth <= bounds.high)))
    return covered / len(data)


def _proportions(share: float, n: int) -> dict[str, float]:
    """Return the coverage of a proportion's exact interval and of Wilson's, summed over the binomial distribution."""
    from scipy import stats

    chances = stats.binom.pmf(range(n + 1), n, share)
    coverage = {}
    for method in ("exact", "wilson"):
        bounds = [stats.binomtest(k, n).proportion_ci(LEVEL, method) for k in range(n + 1)]
        coverage[method] = float(sum(c for c, b in zip(chances, bounds, strict=True) if b.low <= share <= b.high))
    return coverage


def show(result: dict[str, Any]) -> str:
    """Return one line per kind of data and size: the coverage of each method in per cent."""
    lines = [f"coverage of {result['level']:.0%} intervals over {result['samples']} samples"]
    for kind in ("means", "proportions"):
        for name, sizes in result[kind].items():
            for n, methods in sizes.items():
                rates = "  ".join(f"{method} {100 * rate:.1f} %" for method, rate in methods.items())
                lines.append(f"{name:<16} n = {n:>3}  {rates}")
    return "\n".join(lines)
