"""Datasets, their immutable versions, the scenarios and conversations in them, and imports waiting for a yes."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class Dataset(models.Model):
    """A named line of versions. `forked_from` names the version it was copied from."""

    name = models.SlugField(max_length=80, unique=True)
    title = models.CharField(max_length=200, blank=True)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="datasets")
    source = models.CharField(max_length=400, blank=True, help_text="Where the data comes from.")
    licence = models.CharField(max_length=120, blank=True)
    forked_from = models.ForeignKey(
        "DatasetVersion", null=True, blank=True, on_delete=models.SET_NULL, related_name="forks"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.name


class DatasetVersion(models.Model):
    """One immutable state of a dataset; an edit makes the next one. `sha256` is that of its exported JSONL."""

    dataset = models.ForeignKey(Dataset, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    note = models.CharField(max_length=400, blank=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    sha256 = models.CharField(max_length=64)
    scenario_count = models.PositiveIntegerField(default=0)
    conversation_count = models.PositiveIntegerField(default=0)
    games = models.JSONField(default=list, help_text="Names of the games its scenarios play.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["dataset", "number"], name="version_number_once")]

    def __str__(self) -> str:
        return f"{self.dataset} v{self.number}"


class StoredScenario(models.Model):
    """One `training.records.Scenario` of a version, as JSON."""

    version = models.ForeignKey(DatasetVersion, on_delete=models.CASCADE, related_name="scenarios")
    position = models.PositiveIntegerField()
    key = models.CharField(max_length=200, help_text="The scenario's own id.")
    game = models.CharField(max_length=40)
    title = models.CharField(max_length=200)
    data = models.JSONField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["version", "position"], name="scenario_position_once"),
            models.UniqueConstraint(fields=["version", "key"], name="scenario_key_once"),
        ]

    def __str__(self) -> str:
        return self.key


class StoredConversation(models.Model):
    """One `training.records.Episode` without traces, of a scenario of the same version. `judgments` travel with it."""

    scenario = models.ForeignKey(StoredScenario, on_delete=models.CASCADE, related_name="conversations")
    position = models.PositiveIntegerField()
    source = models.CharField(max_length=200, help_text="Record or match it came from.")
    data = models.JSONField()
    judgments = models.JSONField(default=list)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["scenario", "position"], name="conversation_position_once")]


class Import(models.Model):
    """An uploaded file on its way in: read and checked first, stored as a version only on a yes."""

    class State(models.TextChoices):
        QUEUED = "queued"
        READING = "reading"
        WAITING = "waiting", "waiting for a yes"
        REFUSED = "refused"
        STORED = "stored"
        DROPPED = "dropped"

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="imports")
    format = models.CharField(max_length=40)
    dataset_name = models.SlugField(max_length=80)
    file = models.FileField(upload_to="imports/")
    state = models.CharField(max_length=10, choices=State, default=State.QUEUED)
    progress = models.FloatField(default=0, help_text="0 to 1.")
    report = models.JSONField(default=dict, help_text='{"scenarios", "conversations", "errors", "notices", "preview"}')
    version = models.ForeignKey(
        DatasetVersion, null=True, blank=True, on_delete=models.SET_NULL, related_name="imports"
    )
    claimed_until = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
