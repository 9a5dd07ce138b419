"""How far people agree who judged the same seats: Krippendorff's alpha for interval data, per dimension.

Alpha is 1 - observed / expected disagreement (Krippendorff, Content Analysis, ch. 12). With squared differences both
are variances: a seat's own, weighted by how many judged it, over that of all values together. 1 is full agreement,
0 is what chance gives.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, variance

from webapp.accounts.models import User
from webapp.judgments.models import Judgment, Queue


@dataclass(frozen=True)
class Agreement:
    """Alpha of one dimension over the `seats` that two or more people scored; None where it is not defined."""

    title: str
    alpha: float | None
    seats: int


def alpha(units: Iterable[Sequence[float]]) -> float | None:
    """Return Krippendorff's alpha of the values that each unit was given; a unit with a single value does not count.

    None if fewer than two units count, or if all values are the same.
    """
    shared = [values for values in units if len(values) > 1]
    pooled = [value for values in shared for value in values]
    if len(shared) < 2 or len(set(pooled)) < 2:
        return None
    within = sum(len(values) * variance(values) for values in shared) / len(pooled)
    return 1 - within / variance(pooled)


def of_queue(queue: Queue, judged_by: User | None = None) -> list[Agreement]:
    """Return the agreement of a queue's people by dimension; `judged_by`: over the seats that this person judged."""
    given: dict[int, list[Mapping[str, float]]] = defaultdict(list)
    found = Judgment.objects.scored().filter(target__queue=queue, author__isnull=False)
    if judged_by is not None:
        found = found.filter(target__judgments__author=judged_by)
    for target_id, values in found.values_list("target_id", "values"):
        given[target_id or 0].append(values or {})
    shared = [judged for judged in given.values() if len(judged) > 1]
    agreed = []
    for one in queue.rubric_version.record().dimensions:
        units = [[values[one.name] for values in judged] for judged in shared if one.name in judged[0]]
        agreed.append(Agreement(one.title, alpha(units), len(units)))
    return agreed


def overall(found: Iterable[Agreement]) -> float | None:
    """Return the mean alpha of the dimensions that have one, or None."""
    known = [one.alpha for one in found if one.alpha is not None]
    return mean(known) if known else None
