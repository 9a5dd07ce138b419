"""What head-to-heads found out about a checkpoint, at whichever of the two sides it played."""

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
    """One head-to-head from one checkpoint's side: `lead` is its points less the other's, both with 95 % intervals."""

    run: Run
    against: Checkpoint | None
    used: int | None
    points: Interval | None
    lead: Interval | None


def held_with(checkpoint: Checkpoint) -> list[HeadToHead]:
    """The latest head-to-heads of a checkpoint, newest first; against itself it is side A."""
    own = Q(start_checkpoint=checkpoint) | Q(opponent_checkpoint=checkpoint)
    found = Run.objects.filter(own, kind=Run.Kind.EVAL).select_related("start_checkpoint", "opponent_checkpoint")
    return [_arena(run, checkpoint) for run in found.order_by("-pk")[:LATEST]]


def _arena(run: Run, checkpoint: Checkpoint) -> HeadToHead:
    summary: Mapping[str, Any] = (run.result or {}).get("summary", {})
    lead = summary.get("difference", {}).get("points")
    if run.start_checkpoint_id == checkpoint.pk:
        points = summary.get("a", {}).get("points")
        return HeadToHead(run, run.opponent_checkpoint, summary.get("used"), points, lead)
    points = summary.get("b", {}).get("points")
    return HeadToHead(run, run.start_checkpoint, summary.get("used"), points, _turned(lead))


def _turned(lead: Interval | None) -> Interval | None:
    """The same lead as the other side sees it."""
    return None if lead is None else {"mean": -lead["mean"], "low": -lead["high"], "high": -lead["low"]}
