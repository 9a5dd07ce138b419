"""Classifiers that were trained on labels of this site, and the work of filling a queue with suggestions."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from training.labels.info import ClassifierInfo
from webapp.accounts.models import User
from webapp.judgments.models.codebooks import CodebookVersion
from webapp.judgments.models.queues import Queue


class LeasedWork(models.Model):
    """Work in the background: `done` of `total`, and why it failed.

    Whoever claims it gets the next `fence`; a write under a lower one is refused. `tries` counts its claims.
    """

    class State(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        READY = "ready"
        FAILED = "failed"

    state = models.CharField(max_length=8, choices=State, default=State.QUEUED)
    why = models.TextField(blank=True, help_text="Why it failed.")
    done = models.PositiveIntegerField(default=0)
    total = models.PositiveIntegerField(default=0)
    tries = models.PositiveSmallIntegerField(default=0)
    fence = models.PositiveIntegerField(default=0)
    claimed_until = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        abstract = True

    @property
    def working(self) -> bool:
        """Whether a worker is active, or will be."""
        return self.state in {self.State.QUEUED, self.State.RUNNING}


def _waits() -> Q:
    """The condition that no worker is active: the work is queued, or its lease has expired."""
    return Q(state=LeasedWork.State.QUEUED) | Q(state=LeasedWork.State.RUNNING, claimed_until__lt=Now())


class ClassifierQuerySet(models.QuerySet["Classifier"]):
    """Reads of classifiers."""

    def waiting(self) -> ClassifierQuerySet:
        """Classifiers to be trained that no worker trains."""
        return self.filter(_waits())

    def visible_to(self, user: User) -> ClassifierQuerySet:
        """Researchers see all classifiers, others none."""
        return self if user.is_researcher else self.none()

    def changeable_by(self, user: User) -> ClassifierQuerySet:
        """Researchers change their own classifiers, admins all."""
        if user.is_admin:
            return self
        return self.filter(owner=user) if user.is_researcher else self.none()

    def ready(self) -> ClassifierQuerySet:
        """Classifiers that can label."""
        return self.filter(state=LeasedWork.State.READY)

    def listed(self) -> ClassifierQuerySet:
        """Load what a list shows, newest first."""
        return self.select_related("codebook_version__codebook", "owner").order_by("-created_at")


class Classifier(LeasedWork):
    """A head on a frozen model that labels turns under a codebook version: see `training.labels.classifier`.

    A worker trains it in a process of its own and stores it in `folder`, below the site's files. `trained_on` names the
    base model and the queues and dataset versions of its labels, with their hashes; `accuracy` is what the folder says
    of it, a `ClassifierInfo`.
    """

    name = models.SlugField(max_length=80, unique=True)
    codebook_version = models.ForeignKey(CodebookVersion, on_delete=models.PROTECT, related_name="classifiers")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="classifiers")
    folder = models.CharField(max_length=300, blank=True)
    trained_on = models.JSONField(default=dict)
    accuracy = models.JSONField(default=dict)

    objects = ClassifierQuerySet.as_manager()

    def __str__(self) -> str:
        return self.name

    @property
    def info(self) -> ClassifierInfo | None:
        """The stored information about the classifier; None before it is ready."""
        return ClassifierInfo.from_dict(self.accuracy) if self.accuracy else None


class SuggestionRunQuerySet(models.QuerySet["SuggestionRun"]):
    """Reads of suggestion runs."""

    def waiting(self) -> SuggestionRunQuerySet:
        """Suggestion runs to be done on which no worker is active."""
        return self.filter(_waits())


class SuggestionRun(LeasedWork):
    """The work of asking one source for suggestions on every target of a queue; there is one of each source and queue.

    `refused` has a line for each target of which the source's answer could not be used, or that could not be read.
    `answered` has the ids of all others with the turns that the source read, once it is done: where it suggested
    nothing, it saw nothing.
    """

    queue = models.ForeignKey(Queue, on_delete=models.CASCADE, related_name="suggestion_runs")
    source = models.CharField(max_length=120)
    refused = models.JSONField(default=list)
    answered = models.JSONField(default=dict)

    objects = SuggestionRunQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["queue", "source"], name="suggestion_run_once")]
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.source} in {self.queue_id}"
