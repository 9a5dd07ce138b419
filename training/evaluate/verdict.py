"""The result of a head-to-head in a sentence: which model is better, in which number, by how much.

The numbers are those of a `Summary` as JSON data; results of earlier versions may lack `n` or `scenarios`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

Interval = Mapping[str, float]
KEYS: dict[str, str] = {
    "points": "points",
    "sotopia.mean": "social score",
    "won": "games won",
    "return": "return",
}
"""The first of these in a result decides the verdict; a role's wins come before all of them."""
SHARES = {"won", "agreement", "parse_rate", "legal_rate", "failing", "survived", "votes_on_wolves"}
"""Numbers between 0 and 1 whose differences are given in percentage points."""


def verdict(summary: Mapping[str, Any], models: tuple[str, str], side: Iterable[str] = ()) -> str:
    """Return a sentence on which of both models is better; empty without a difference.

    `side` are the roles that the models held in turn, if any.
    """
    name = decisive(summary, side)
    if not name:
        return ""
    first, second = models
    estimate: Interval = summary["difference"][name]
    count = int(estimate["n"]) if "n" in estimate else scenarios(summary)
    over = "" if count is None else f" over {count} scenario{'' if count == 1 else 's'}"
    if count == 1:
        return f"One scenario cannot tell {first} and {second} apart."
    if estimate["low"] == estimate["high"]:
        return f"The difference of {first} and {second} in {_metric(name)} is the same{over}: {estimate['mean']:g}."
    if estimate["low"] <= 0 <= estimate["high"]:
        return f"No difference of {first} and {second} in {_metric(name)} is shown: {_spread(estimate, name, 1)}{over}."
    sign = 1 if estimate["mean"] > 0 else -1
    better, other = (first, second) if sign > 0 else (second, first)
    return f"{better} is better than {other} in {_metric(name)}, by {_spread(estimate, name, sign)}{over}."


def decisive(summary: Mapping[str, Any], side: Iterable[str] = ()) -> str:
    """Return the number that the verdict is about; empty without a difference."""
    wanted = (*(f"won/{role}" for role in side), *KEYS)
    return next((name for name in wanted if name in summary.get("difference", {})), "")


def distinct(first: str, second: str) -> tuple[str, str]:
    """Return the names of both models, distinguished if they are the same."""
    return (first, second) if first != second else (f"{first} (measured)", f"{second} (opponent)")


def scenarios(summary: Mapping[str, Any]) -> int | None:
    """Return the number of scenarios of a result; None if unknown."""
    counts = [int(estimate["n"]) for estimate in summary.get("difference", {}).values() if "n" in estimate]
    count: int | None = summary.get("scenarios", max(counts, default=None))
    return count


def is_share(name: str) -> bool:
    """Return whether a number, with or without a role, is a share between 0 and 1."""
    return name.partition("/")[0] in SHARES


def _metric(name: str) -> str:
    stem, _, role = name.partition("/")
    return f"{KEYS[stem]} as {role}" if role else KEYS[stem]


def _spread(estimate: Interval, name: str, sign: int) -> str:
    """Return `6.0 ± 2.1 (95 %)`, or the interval's ends where it is not symmetric; shares in percentage points."""
    share = is_share(name)
    mean, low, high = (sign * (100 if share else 1) * estimate[key] for key in ("mean", "low", "high"))
    low, high = sorted((low, high))
    digits = _digits(high - low)
    unit = " percentage points" if share else " points" if name == "points" else ""
    if math.isclose(mean - low, high - mean, rel_tol=0.02, abs_tol=1e-9):
        return f"{mean:.{digits}f} ± {(high - low) / 2:.{digits}f}{unit} (95 %)"
    return f"{mean:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]{unit} (95 %)"


def _digits(width: float) -> int:
    """Return the number of decimals that show two digits of a width."""
    return max(0, min(4, 1 - math.floor(math.log10(width)))) if width else 2
