"""Deployments: models that can answer at a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Coalesce

from webapp.runs.models import WithdrawnData

if TYPE_CHECKING:
    from webapp.accounts.models import User


SORTS = {"name": "name", "state": "state", "used": "-used_at"}


class RemoteModel(models.Model):
    """A model behind an OpenAI-compatible address of the allow-list. Holds the *name* of a secret, never its value."""

    name = models.CharField(max_length=120, unique=True)
    address = models.URLField()
    model = models.CharField(max_length=200)
    secret_name = models.CharField(max_length=120, blank=True)
    open_to_players = models.BooleanField(default=False)
    added_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.name


class DeploymentQuerySet(models.QuerySet["Deployment"]):
    """Reads of deployments."""

    def visible_to(self, user: User) -> DeploymentQuerySet:
        """Return those that this person may play against: researchers all, others the open ones, guests none."""
        if user.is_researcher:
            return self
        return self.none() if user.is_guest else self.open_to_players()

    def open_to_players(self) -> DeploymentQuerySet:
        """Return those that are open to everybody who plays."""
        return self.filter(Q(checkpoint__open_to_players=True) | Q(remote__open_to_players=True))

    def with_withdrawn(self) -> DeploymentQuerySet:
        """Return them with `has_withdrawn`: whether they may have learned from a conversation that was withdrawn."""
        flags = WithdrawnData.objects.trained().filter(run=models.OuterRef("checkpoint__run"))
        return self.annotate(has_withdrawn=models.Exists(flags))

    def local(self) -> DeploymentQuerySet:
        """Return those that occupy a slot of a node while they run."""
        return self.filter(checkpoint__isnull=False)

    def up(self) -> DeploymentQuerySet:
        """Return those with a process, or about to have one."""
        return self.filter(state__in=[Deployment.State.STARTING, Deployment.State.READY, Deployment.State.STOPPING])

    def requested(self) -> DeploymentQuerySet:
        """Return those that are requested and not starting yet."""
        return self.local().filter(state=Deployment.State.COLD, requested_at__isnull=False)

    def named(self) -> DeploymentQuerySet:
        """Return them with the rows that their names need, most recently used first."""
        return self.select_related("checkpoint", "remote", "run").order_by(
            models.F("used_at").desc(nulls_last=True), "pk"
        )

    def matching(self, *, text: str = "", state: str = "") -> DeploymentQuerySet:
        """Return those whose name contains the text and that are in this state, with `name`; empty filters nothing."""
        deployments = self.annotate(name=Coalesce("checkpoint__name", "remote__name"))
        deployments = deployments.filter(state=state) if state else deployments
        return deployments.filter(name__icontains=text) if text else deployments


class Deployment(models.Model):
    """One model that can be asked: a served checkpoint (base models included), or a remote model."""

    class State(models.TextChoices):
        COLD = "cold"
        STARTING = "starting"
        READY = "ready"
        STOPPING = "stopping"
        FAILED = "failed"

    checkpoint = models.OneToOneField(
        "runs.Checkpoint", null=True, blank=True, on_delete=models.CASCADE, related_name="deployment"
    )
    remote = models.OneToOneField(
        RemoteModel, null=True, blank=True, on_delete=models.CASCADE, related_name="deployment"
    )
    state = models.CharField(max_length=8, choices=State, default=State.COLD)
    run = models.ForeignKey("runs.Run", null=True, blank=True, on_delete=models.SET_NULL, related_name="deployments")
    address = models.CharField(max_length=200, blank=True, help_text="http://host:port/v1 while it is ready.")
    key = models.CharField(
        max_length=64, blank=True, help_text="Random key of the local server; changes at every start."
    )
    error = models.TextField(blank=True)
    used_at = models.DateTimeField(null=True, blank=True)
    requested_at = models.DateTimeField(null=True, blank=True, help_text="Somebody is waiting for it since then.")
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
        help_text="Who asked for it on the page of deployments; empty where a table did.",
    )
    ready_at = models.DateTimeField(null=True, blank=True)

    objects = DeploymentQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(checkpoint__isnull=False, remote__isnull=True)
                | Q(checkpoint__isnull=True, remote__isnull=False),
                name="deployment_has_one_source",
            )
        ]

    def __str__(self) -> str:
        return str(self.checkpoint or self.remote)

    @property
    def model(self) -> str:
        """The name under which its server knows the model."""
        return self.remote.model if self.remote else "parley"
