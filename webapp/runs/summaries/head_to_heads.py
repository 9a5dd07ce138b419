"""The results of the head-to-heads that a checkpoint took part in, as either of the two models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Q

from webapp.runs.models import Checkpoint, Run

LATEST = 10
Interval = Mapping[str, float]


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
