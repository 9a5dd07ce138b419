"""Reads of runs, attempts, metrics, episodes and checkpoints: visibility, filters and curve data."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models import Count, Exists, F, OuterRef, Q
from django.db.models.functions import Now

from webapp.accounts.ownership import OwnedQuerySet

if TYPE_CHECKING:
    from webapp.accounts.models import User
    from webapp.runs.models import Attempt, Checkpoint, Metric, PlayedEpisode, Run, WithdrawnData  # noqa: F401 (in quoted types)

ALIVE = ("queued", "starting", "running", "stopping")
OVER = ("succeeded", "stopped", "failed")
SORTS = {
    "age": "-created_at",
    "name": "name",
    "state": "state",
    "method": "method",
    "game": "game",
    "base": "base",
    "progress": "step",
    "metric": "key_metric",
}
CHECKPOINT_SORTS = {
    "name": "name",
    "kind": "kind",
    "base": "base",
    "run": "run__name",
    "step": "step",
    "reward": "metrics__reward",
    "age": "-created_at",
}


class RunQuerySet(OwnedQuerySet["Run"]):
    """Reads of runs."""

    def without_servers(self) -> RunQuerySet:
        """Runs that people start; model servers are shown with their deployments."""
        return self.exclude(kind="serve")

    def alive(self) -> RunQuerySet:
        """Runs that are waiting or have a process."""
        return self.filter(state__in=ALIVE)

    def over(self) -> RunQuerySet:
        """Runs that have ended."""
        return self.filter(state__in=OVER)

    def matching(self, *, text: str = "", **fields: str) -> RunQuerySet:
        """Runs whose name contains the text and whose fields have these values; empty values filter nothing."""
        rows = self.filter(**{name: value for name, value in fields.items() if value})
        return rows.filter(Q(name__icontains=text) | Q(owner__username__iexact=text)) if text else rows

    def tagged(self, tag: str) -> RunQuerySet:
        """Runs with this tag; an empty one filters nothing."""
        return self.filter(tags__contains=[tag]) if tag else self

    def in_archive(self, which: str) -> RunQuerySet:
        """Without archived runs; with `only`, archived runs alone; with `all`, both."""
        return self if which == "all" else self.filter(archived_at__isnull=which != "only")

    def with_pins(self, user: User) -> RunQuerySet:
        """With `pinned`: whether this person keeps the run at the top."""
        return self.annotate(pinned=Exists(user.pinned_runs.filter(run=OuterRef("pk"))))

    def with_withdrawn(self) -> RunQuerySet:
        """With `has_withdrawn`: whether it may have learned from a conversation that was withdrawn since."""
        from webapp.runs.models import WithdrawnData

        return self.annotate(has_withdrawn=Exists(WithdrawnData.objects.trained().filter(run=OuterRef("pk"))))

    def pinned_first(self, user: User) -> RunQuerySet:
        """In the same order, but for this person's pinned runs, which come first."""
        order = self.query.order_by
        return self.with_pins(user).order_by(models.F("pinned").desc(), *order)

    def listed(self) -> RunQuerySet:
        """With the columns that a table row needs, without large fields."""
        return self.select_related("owner").defer("config", "result", "error")

    def with_progress(self) -> RunQuerySet:
        """With `progressed_at`: the time of its last progress."""
        return self.annotate(progressed_at=models.Max("attempts__progressed_at"))


class WithdrawnDataQuerySet(models.QuerySet["WithdrawnData"]):
    """Reads of what was withdrawn from runs' datasets."""

    def trained(self) -> WithdrawnDataQuerySet:
        """Of runs that learned, whose checkpoints may still hold it: others only played the scenarios."""
        rows = self.filter(run__kind__in=("train", "sft"))
        return rows.select_related("version__dataset", "start").order_by("at", "pk")


class AttemptQuerySet(models.QuerySet["Attempt"]):
    """Reads of attempts."""

    def live(self) -> AttemptQuerySet:
        """Attempts that a worker holds, or should hold."""
        return self.filter(state__in=("claimed", "running"))

    def overdue(self) -> AttemptQuerySet:
        """Live attempts whose lease is over by the database's clock."""
        return self.live().filter(lease_until__lt=Now())

    def valid_steps(self, *, before: int) -> dict[int, float]:
        """The step up to which each attempt of one run below number `before` counts, by its number, newest first.

        That is where the first later attempt with a process began; the newest attempts count without limit.
        """
        limits, limit = {}, math.inf
        rows = self.filter(number__lt=before).order_by("-number").values_list("number", "pid", "start_step")
        for number, pid, start_step in rows:
            limits[number] = limit
            limit = limit if pid is None else min(limit, start_step)
        return limits


class MetricQuerySet(models.QuerySet["Metric"]):
    """Reads of metrics."""

    def since(self, step: int, limit: int = 600) -> list[tuple[int, datetime, dict[str, Any]]]:
        """Rows above `step` in order, sampled evenly to about `limit`; the newest and all bad steps are kept."""
        rows = self.filter(step__gt=step)
        count = rows.count()
        every = -(-count // limit) or 1
        if every > 1:
            last = rows.aggregate(last=models.Max("step"))["last"]
            thinned = rows.annotate(rest=models.Func(F("step"), every, function="MOD"))
            sampled = thinned.filter(Q(rest=0) | Q(step=last) | Q(values__has_key="bad_steps"))
            return list(sampled.order_by("step").values_list("step", "at", "values"))
        return list(rows.order_by("step").values_list("step", "at", "values"))

    def every(self) -> Iterator[tuple[int, datetime, dict[str, Any]]]:
        """All rows in order, read from the database in chunks."""
        return self.order_by("step").values_list("step", "at", "values").iterator(chunk_size=2000)


OF_LEAGUE = Q(summary__has_key="league")
"""Which of a run's games are those of a league's evaluations."""


class PlayedEpisodeQuerySet(models.QuerySet["PlayedEpisode"]):
    """Reads of a run's episodes."""

    def of_training(self) -> PlayedEpisodeQuerySet:
        """Without the games of a league's evaluations, which nothing is learned from."""
        return self.exclude(OF_LEAGUE)

    def of_league(self, step: int, first: int, count: int) -> PlayedEpisodeQuerySet:
        """The games of a pair in the evaluation of the league after a step: `count` of them, from number `first` on."""
        return self.filter(OF_LEAGUE, step=step, number__range=(first, first + count - 1)).order_by("number")

    def steps(self) -> list[int]:
        """The training steps that have episodes, newest first."""
        return list(self.order_by("-step").values_list("step", flat=True).distinct())

    def judged_by_others(self, user: User) -> PlayedEpisodeQuerySet:
        """Episodes with a judgment by another person or by a model of another person's queue."""
        by_own_queue = Q(judgments__judge__isnull=False, judgments__queue__owner=user)
        by_user = Count("judgments", filter=Q(judgments__author=user) | by_own_queue)
        return self.annotate(judged=Count("judgments"), by_user=by_user).filter(judged__gt=F("by_user"))

    def outcomes(self) -> list[str]:
        """The outcomes that occur, in alphabetical order."""
        return list(self.exclude(outcome="").order_by("outcome").values_list("outcome", flat=True).distinct())


class CheckpointQuerySet(models.QuerySet["Checkpoint"]):
    """Reads of checkpoints."""

    def visible_to(self, user: User) -> CheckpointQuerySet:
        """Researchers see all, other members those marked open, guests none."""
        if user.is_researcher:
            return self
        return self.none() if user.is_guest else self.filter(open_to_players=True)

    def changeable_by(self, user: User) -> CheckpointQuerySet:
        """Researchers change what their own runs wrote, admins all."""
        if user.is_admin:
            return self
        return self.filter(run__owner=user) if user.is_researcher else self.none()

    def matching(self, *, text: str = "", **fields: str) -> CheckpointQuerySet:
        """Checkpoints whose or whose run's name contains the text, with these fields; empty values filter nothing."""
        rows = self.filter(**{name: value for name, value in fields.items() if value})
        return rows.filter(Q(name__icontains=text) | Q(run__name__icontains=text)) if text else rows

    def listed(self) -> CheckpointQuerySet:
        """With what a list needs, and `is_last`: whether its run has no later one."""
        later = self.model.objects.filter(run=OuterRef("run"), step__gt=OuterRef("step"))
        rows = self.select_related("run__owner", "run__dataset_version__dataset", "parent")
        return rows.with_withdrawn().annotate(is_last=~Exists(later))

    def with_withdrawn(self) -> CheckpointQuerySet:
        """With `has_withdrawn`: whether it may have learned from a conversation that was withdrawn since."""
        from webapp.runs.models import WithdrawnData

        return self.annotate(has_withdrawn=Exists(WithdrawnData.objects.trained().filter(run=OuterRef("run"))))
