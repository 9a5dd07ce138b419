"""The results of head-to-heads: those that a checkpoint took part in, as either model, and a run's main difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Q

from webapp.runs.models import Checkpoint, Run
from webapp.runs.summaries import evaluation

LATEST = 10
MAIN = ("points", "won", "return")
"""The first of these that a head-to-head has is its main number."""
Interval = Mapping[str, float]


@dataclass(frozen=True)
class Difference:
    """The first model's main number minus the second's, with its 95 % interval; `title` says which number it is.

    The first model of a training run's head-to-head is its learner after the last step.
    """

    title: str
    mean: float
    low: float
    high: float


def main_difference(differences: Mapping[str, Any] | None) -> Difference | None:
    """The main one of the differences of a head-to-head's summary; None without any."""
    for name in MAIN:
        if interval := (differences or {}).get(name):
            return Difference(evaluation.title_of(name), interval["mean"], interval["low"], interval["high"])
    return None


def of_runs(runs: Sequence[Run]) -> dict[int, Difference]:
    """The main difference of each run with a head-to-head, in one query that reads no other part of its result."""
    rows = Run.objects.filter(pk__in=[run.pk for run in runs]).values_list("pk", "result__summary__difference")
    return {pk: difference for pk, differences in rows if (difference := main_difference(differences))}


def after_training(checkpoint: Checkpoint) -> Difference | None:
    """The main difference of its run's head-to-head if this is the run's last checkpoint.

    `checkpoint` is of `listed`, with its run.
    """
    run = checkpoint.run
    if run is None or run.kind != Run.Kind.TRAIN or not checkpoint.is_last:  # type: ignore[attr-defined]
        return None
    return main_difference((run.result or {}).get("summary", {}).get("difference"))


@dataclass(frozen=True)
class HeadToHead:
    """One head-to-head as one checkpoint sees it: `lead` is its points minus the other's, both with 95 % intervals."""

    run: Run
    against: Checkpoint | None
    used: int | None
    points: Interval | None
    lead: Interval | None


def of_checkpoint(checkpoint: Checkpoint) -> list[HeadToHead]:
    """Return the latest head-to-heads of a checkpoint, newest first; against itself it is the measured one."""
    either = Q(start_checkpoint=checkpoint) | Q(opponent_checkpoint=checkpoint)
    runs = Run.objects.filter(either, kind=Run.Kind.EVAL).select_related("start_checkpoint", "opponent_checkpoint")
    return [_head_to_head(run, checkpoint) for run in runs.order_by("-pk")[:LATEST]]


def _head_to_head(run: Run, checkpoint: Checkpoint) -> HeadToHead:
    summary: Mapping[str, Any] = (run.result or {}).get("summary", {})
    lead = summary.get("difference", {}).get("points")
    if run.start_checkpoint_id == checkpoint.pk:
        points = summary.get("a", {}).get("points")
        return HeadToHead(run, run.opponent_checkpoint, summary.get("used"), points, lead)
    points = summary.get("b", {}).get("points")
    return HeadToHead(run, run.start_checkpoint, summary.get("used"), points, _reversed(lead))


def _reversed(lead: Interval | None) -> Interval | None:
    """Return the same lead as the other model sees it."""
    return None if lead is None else {"mean": -lead["mean"], "low": -lead["high"], "high": -lead["low"]}
