"""Runs, their attempts, records read from their run directories, and checkpoints."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Exists, OuterRef
from django.db.models.fields.json import KT
from django.db.models.functions import Cast, Now

from webapp.runs import querysets
from webapp.runs.alerts.models import AlertRule  # noqa: F401 (a model of this app)
from webapp.runs.organising.models import Pin  # noqa: F401 (a model of this app)
from webapp.runs.preferences.models import Preference  # noqa: F401 (a model of this app)
from webapp.runs.registry.models import Alias  # noqa: F401 (a model of this app)
from webapp.runs.report_pages.models import Report  # noqa: F401 (a model of this app)
from webapp.runs.sweeps.models import Sweep  # noqa: F401 (a model of this app)


class Run(models.Model):
    """One job with a run directory: training, cold start, evaluation or a served model."""

    class Kind(models.TextChoices):
        TRAIN = "train", "self-play training"
        SFT = "sft", "cold start"
        EVAL = "eval", "evaluation"
        SUITE = "suite", "evaluation suite"
        SERVE = "serve", "served model"

    class State(models.TextChoices):
        QUEUED = "queued"
        STARTING = "starting"
        RUNNING = "running"
        STOPPING = "stopping"
        SUCCEEDED = "succeeded"
        STOPPED = "stopped"
        FAILED = "failed"

    kind = models.CharField(max_length=5, choices=Kind)
    name = models.CharField(max_length=120)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="runs")
    state = models.CharField(max_length=9, choices=State, default=State.QUEUED)
    queue = models.CharField(max_length=20)
    config = models.JSONField(help_text="The resolved RunConfig.")
    method = models.CharField(max_length=40, blank=True)
    game = models.CharField(max_length=40, blank=True)
    base = models.CharField(max_length=200, blank=True, help_text="Base model's name in the registry.")
    dataset_version = models.ForeignKey(
        "scenarios.DatasetVersion", null=True, blank=True, on_delete=models.PROTECT, related_name="runs"
    )
    start_checkpoint = models.ForeignKey(
        "Checkpoint", null=True, blank=True, on_delete=models.PROTECT, related_name="runs_started_here"
    )
    opponent_checkpoint = models.ForeignKey(
        "Checkpoint", null=True, blank=True, on_delete=models.PROTECT, related_name="runs_against_it"
    )
    aliases = models.JSONField(
        default=dict, help_text="The aliases by which checkpoints were chosen, by field: {'start_checkpoint': 'best'}."
    )
    corpora = models.ManyToManyField(
        "corpora.Corpus",
        through="RunCorpus",
        related_name="runs",
        help_text="Corpora of the site that its seats search.",
    )
    cloned_from = models.ForeignKey("self", null=True, blank=True, on_delete=models.SET_NULL, related_name="clones")
    step = models.PositiveIntegerField(default=0)
    steps = models.PositiveIntegerField(default=0, help_text="Planned number of training steps.")
    key_metric = models.FloatField(null=True, blank=True)
    sparkline = models.JSONField(default=list, help_text="Up to 60 values of the key metric.")
    result = models.JSONField(null=True, blank=True, help_text="An evaluation's result.")
    error = models.TextField(blank=True)
    code_version = models.CharField(max_length=80, blank=True)
    directory = models.CharField(max_length=400, blank=True)
    stop_asked_at = models.DateTimeField(null=True, blank=True)
    tags = models.JSONField(default=list, blank=True)
    note = models.TextField(blank=True, help_text="Plain text.")
    group = models.CharField(max_length=80, blank=True, db_index=True)
    archived_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    objects = querysets.RunQuerySet.as_manager()

    class Meta:
        indexes = [models.Index(fields=["state"]), models.Index(fields=["-created_at"])]

    def __str__(self) -> str:
        return self.name

    def evaluations(self, kind: str = "evaluation") -> list[dict[str, Any]]:
        """Return the head-to-heads during training by their step, or (`league`) the evaluations of its league.

        Those above the step from which a later attempt began are left out: the weights that played them are gone.
        """
        began = self.attempts.filter(pid__isnull=False, number__gt=OuterRef("attempt__number"))
        played = self.events.filter(kind=kind).annotate(after=Cast(KT("data__step"), models.IntegerField()))
        lasting = played.exclude(Exists(began.filter(start_step__lt=OuterRef("after"))))
        return list(lasting.order_by("after", "pk").values_list("data", flat=True))


class RunCorpus(models.Model):
    """A corpus that a run searches, by name and content. It may be deleted once the run is over; this record stays."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="searched")
    corpus = models.ForeignKey("corpora.Corpus", null=True, on_delete=models.SET_NULL, help_text="None once deleted.")
    name = models.CharField(max_length=80)
    sha256 = models.CharField(max_length=64, help_text="Hash of its file.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "corpus"], name="run_corpus_once")]

    def __str__(self) -> str:
        return self.name


class WithdrawnData(models.Model):
    """Consent to a conversation of a dataset version that a run has used was withdrawn, at `at`.

    The run's checkpoints may have learned from it, and so may runs that start from them: those have a row with `start`,
    the run whose checkpoint they started from.
    """

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="withdrawn_data")
    version = models.ForeignKey("scenarios.DatasetVersion", on_delete=models.PROTECT, related_name="+")
    start = models.ForeignKey(Run, null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    at = models.DateTimeField()

    objects = querysets.WithdrawnDataQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "version"], name="withdrawn_data_once")]
        ordering = ["at", "pk"]

    def __str__(self) -> str:
        return f"{self.version}, of which a conversation was withdrawn"


class DeletedRun(models.Model):
    """The number of a run that was deleted, by which each machine finds what it still has of it."""

    run_id = models.BigIntegerField(primary_key=True)
    at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return f"run {self.run_id}"


class Attempt(models.Model):
    """One attempt at a run. Only the highest fence may write; the lease is checked by the database's clock."""

    class State(models.TextChoices):
        CLAIMED = "claimed"
        RUNNING = "running"
        ENDED = "ended"
        LAPSED = "lapsed"

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="attempts")
    number = models.PositiveIntegerField()
    fence = models.PositiveBigIntegerField()
    state = models.CharField(max_length=8, choices=State, default=State.CLAIMED)
    start_step = models.PositiveIntegerField(default=0)
    worker = models.CharField(max_length=200, blank=True)
    host = models.CharField(max_length=200, blank=True)
    pid = models.PositiveIntegerField(null=True, blank=True)
    pid_started = models.FloatField(null=True, blank=True, help_text="The process's start time, against reused ids.")
    lease_until = models.DateTimeField()
    phase = models.CharField(max_length=40, blank=True)
    status = models.JSONField(default=dict)
    progressed_at = models.DateTimeField(null=True, blank=True, help_text="The process's own last sign of progress.")
    offsets = models.JSONField(default=dict, help_text="Bytes already read of each tailed file.")
    log = models.TextField(blank=True, help_text="The end of what the process printed.")
    exit_code = models.IntegerField(null=True, blank=True)
    started_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    objects = querysets.AttemptQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "number"], name="attempt_number_once"),
            models.UniqueConstraint(fields=["run", "fence"], name="attempt_fence_once"),
        ]
        indexes = [models.Index(fields=["state", "lease_until"])]


class Metric(models.Model):
    """All numbers of one training step; overwritten only by an equal or higher fence."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="metrics")
    step = models.PositiveIntegerField()
    fence = models.PositiveBigIntegerField()
    at = models.DateTimeField()
    values = models.JSONField()

    objects = querysets.MetricQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "step"], name="metric_step_once")]


class Event(models.Model):
    """One line of an attempt's events."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="events")
    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="events")
    at = models.DateTimeField()
    kind = models.CharField(max_length=40)
    data = models.JSONField(default=dict)


class PlayedEpisode(models.Model):
    """The location of a run's episode (file, offset, length), with its summary; tokens stay in the file."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="episodes")
    step = models.PositiveIntegerField()
    number = models.PositiveIntegerField()
    fence = models.PositiveBigIntegerField()
    file = models.CharField(max_length=400, help_text="Name in the default storage.")
    offset = models.PositiveBigIntegerField()
    length = models.PositiveIntegerField()
    outcome = models.CharField(max_length=40, blank=True)
    summary = models.JSONField(default=dict)

    objects = querysets.PlayedEpisodeQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "step", "number"], name="episode_number_once")]

    @property
    def league(self) -> dict[str, Any] | None:
        """The checkpoint's step, opponent and seats of a game of a league's evaluation; None for other games."""
        return self.summary.get("league")


class Checkpoint(models.Model):
    """A model folder: written by a run, or a base model from the registry or added by an admin."""

    class Kind(models.TextChoices):
        BASE = "base", "base model"
        FULL = "full", "full weights"
        ADAPTER = "adapter", "LoRA adapter"

    name = models.CharField(max_length=200, unique=True)
    kind = models.CharField(max_length=7, choices=Kind)
    run = models.ForeignKey(Run, null=True, blank=True, on_delete=models.PROTECT, related_name="checkpoints")
    step = models.PositiveIntegerField(default=0)
    parent = models.ForeignKey("self", null=True, blank=True, on_delete=models.PROTECT, related_name="children")
    base = models.CharField(max_length=200)
    path = models.CharField(max_length=400, help_text="Name in the default storage, or a base model's folder.")
    sha256 = models.CharField(max_length=64, blank=True, help_text="Of its manifest.")
    metrics = models.JSONField(default=dict)
    open_to_players = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    chosen_as = ""
    """The alias by which this instance was chosen, if it was; not a column."""

    objects = querysets.CheckpointQuerySet.as_manager()

    def __str__(self) -> str:
        return self.name
