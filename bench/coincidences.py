"""Krippendorff's alpha of nominal values from a coincidence matrix, as his paper computes it, and nothing of Parley's.

Source: Krippendorff, Computing Krippendorff's Alpha-Reliability (2011), part C.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable
from fractions import Fraction
from itertools import permutations

from bench.label_copies import Row


def alpha(units: Iterable[Iterable[Hashable]]) -> float | None:
    """Return alpha of the values that each unit got; None where nothing can be paired or nothing varies.

    Every ordered pair of values of a unit with m values counts 1 / (m - 1).
    """
    coincidences: dict[tuple[Hashable, Hashable], Fraction] = defaultdict(Fraction)
    for unit in units:
        values = list(unit)
        for pair in permutations(values, 2):
            coincidences[pair] += Fraction(1, len(values) - 1)
    totals: dict[Hashable, Fraction] = defaultdict(Fraction)
    for (first, _), count in coincidences.items():
        totals[first] += count
    n = sum(totals.values(), Fraction())
    expected = n * n - sum(total * total for total in totals.values())
    if not expected:
        return None
    observed = sum(count for (first, second), count in coincidences.items() if first != second)
    return float(1 - (n - 1) * observed / expected)


def by_label(rows: Iterable[Row]) -> dict[str, float | None]:
    """Return alpha by label type of labels about seats and games, without decisions."""
    units: dict[str, dict[tuple[str, int | None], list[Hashable]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if not row["decides"]:
            for name, value, seat, *_ in row["labels"]:
                units[name][row["episode"], seat].append(value)
    return {name: alpha(each.values()) for name, each in sorted(units.items())}


def pairs(rows: Iterable[Row]) -> dict[str, int]:
    """Return the number of units with two values or more by label type, without decisions."""
    counts: Counter[tuple[str, str, int | None]] = Counter()
    for row in rows:
        if not row["decides"]:
            counts.update((name, row["episode"], seat) for name, _, seat, *_ in row["labels"])
    return dict(Counter(name for (name, *_), count in counts.items() if count > 1))
