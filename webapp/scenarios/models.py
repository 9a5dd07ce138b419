"""Datasets, their immutable versions, scenarios and conversations, and imports that wait for confirmation."""

from __future__ import annotations

from typing import Any, Self

from django.conf import settings
from django.db import models
from django.db.models import Count, Max, OuterRef, Q, Subquery
from django.db.models.functions import Cast, Coalesce, Now

from webapp.accounts.models import User
from webapp.accounts.ownership import OwnedQuerySet
from webapp.scenarios.signals import WaitingQueue, awaited


class DatasetQuerySet(OwnedQuerySet["Dataset"]):
    """Reads of datasets."""

    def listed(self, words: str = "", game: str = "", order: str = "-latest") -> DatasetQuerySet:
        """Return datasets with `latest` (time of the newest version) and `used` (of the newest run), filtered and
        ordered.
        """
        rows = self.select_related("owner").annotate(
            latest=Max("versions__created_at"), used=Max("versions__runs__created_at")
        )
        if words:
            rows = rows.filter(Q(name__icontains=words) | Q(title__icontains=words) | Q(source__icontains=words))
        if game:
            rows = rows.filter(versions__games__contains=[game])
        return rows.order_by(order, "name")


class DatasetVersionQuerySet(models.QuerySet["DatasetVersion"]):
    """Reads of versions."""

    def visible_to(self, user: User) -> DatasetVersionQuerySet:
        """Researchers see every version; nobody else sees any."""
        return self if user.is_researcher else self.none()

    def readable(self) -> DatasetVersionQuerySet:
        """Versions that were not closed."""
        return self.filter(closed_at=None)

    def newest_first(self) -> DatasetVersionQuerySet:
        """By what they contain, the newest first: a version in the place of a closed one comes where that one was."""
        return self.order_by(Coalesce("stands_for", "number").desc(), "-number")

    def playable(self, game: str = "") -> DatasetVersionQuerySet:
        """Versions with at least one scenario, of `game` if named: what a run or a table can start from."""
        versions = self.readable().filter(scenario_count__gt=0).select_related("dataset").newest_first()
        versions = versions.order_by("dataset__name", *versions.query.order_by)
        return versions.filter(games__contains=[game]) if game else versions

    def named(self, text: str) -> DatasetVersion | None:
        """The version that a text such as `popqa v2` names; of a dataset's name alone its newest one."""
        name, _, number = text.strip().partition(" v")
        versions = self.filter(dataset__name=name).select_related("dataset").newest_first()
        if not number:
            return versions.first()
        return versions.filter(number=int(number)).first() if number.isascii() and number.isdigit() else None


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

    objects = DatasetQuerySet.as_manager()

    def __str__(self) -> str:
        return self.name

    def newest(self) -> DatasetVersion:
        """Return the version with the newest content; every dataset has one. Uses prefetched versions."""
        return max(self.versions.all(), key=lambda version: (version.stands_for or version.number, version.number))


class DatasetVersion(models.Model):
    """One immutable state of a dataset; an edit makes the next one. `sha256` is that of its exported JSONL.

    A version is closed once consent to one of its conversations is withdrawn. Nobody reads its content from then on;
    its row stays, so that what was made of it can be traced. A later version without the conversation takes its place.
    """

    dataset = models.ForeignKey(Dataset, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    note = models.CharField(max_length=400, blank=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    sha256 = models.CharField(max_length=64)
    scenario_count = models.PositiveIntegerField(default=0)
    conversation_count = models.PositiveIntegerField(default=0)
    games = models.JSONField(default=list, help_text="Names of the games its scenarios play.")
    stands_for = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text="The number of the closed version whose content this is, without what was withdrawn.",
    )
    closed_at = models.DateTimeField(null=True, blank=True)
    closed_why = models.CharField(max_length=400, blank=True)

    objects = DatasetVersionQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["dataset", "number"], name="version_number_once")]
        ordering = ["number"]

    def __str__(self) -> str:
        return f"{self.dataset} v{self.number}"

    @property
    def replacement(self) -> DatasetVersion | None:
        """The version to use in the place of a closed one; None while it is being made, and for a version in use."""
        place = self.stands_for or self.number
        later = self.dataset.versions.readable().filter(stands_for=place, number__gt=self.number)
        return later.order_by("-number").first() if self.closed_at else None


class StoredScenarioQuerySet(models.QuerySet["StoredScenario"]):
    """Reads of scenarios."""

    def matching(self, words: str) -> StoredScenarioQuerySet:
        """Scenarios whose id, title or text contains the words."""
        if not words:
            return self
        return self.annotate(text=Cast("data", models.TextField())).filter(
            Q(key__icontains=words) | Q(title__icontains=words) | Q(text__icontains=words)
        )

    def with_counts(self) -> StoredScenarioQuerySet:
        """With `conversation_count`, counted for the rows of a page only (a join would count the whole version)."""
        conversations = StoredConversation.objects.filter(scenario=OuterRef("pk")).order_by().values("scenario")
        count = Subquery(conversations.annotate(number=Count("pk")).values("number"))
        return self.annotate(conversation_count=Coalesce(count, 0))

    def around(self, position: int) -> dict[str, StoredScenario | None]:
        """Return the neighbours of a position, to step through a version."""
        return {
            "before": self.filter(position__lt=position).order_by("-position").first(),
            "after": self.filter(position__gt=position).order_by("position").first(),
        }


class StoredScenario(models.Model):
    """One `training.records.Scenario` of a version, as JSON."""

    version = models.ForeignKey(DatasetVersion, on_delete=models.CASCADE, related_name="scenarios")
    position = models.PositiveIntegerField()
    key = models.CharField(max_length=200, help_text="The scenario's own id.")
    game = models.CharField(max_length=40)
    title = models.CharField(max_length=200)
    data = models.JSONField()

    objects = StoredScenarioQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["version", "position"], name="scenario_position_once"),
            models.UniqueConstraint(fields=["version", "key"], name="scenario_key_once"),
        ]

    def __str__(self) -> str:
        return self.key


class StoredConversationQuerySet(models.QuerySet["StoredConversation"]):
    """Reads of conversations."""

    def withdrawn(self) -> Self:
        """Conversations to whose use consent was withdrawn."""
        return self.filter(withdrawn_at__isnull=False)

    def awaited_by(self, user: User) -> dict[int, WaitingQueue]:
        """Return those of which this person has yet to judge a seat, each with a queue that asks them to.

        They may have to judge it as another copy, or as the match or the episode of which it is a copy.
        """
        answers: list[tuple[Any, Any]] = awaited.send(type(self), conversations=self, user=user)
        return {key: queue for _, queues in answers for key, queue in queues.items()}


class StoredConversation(models.Model):
    """One `training.records.Episode` without traces, of a scenario of the same version. `judgments` travel with it.

    Another version and a fork have a copy of the row, with the same `episode_sha256`. Of a withdrawn conversation,
    `data` and `judgments` are erased.
    """

    scenario = models.ForeignKey(StoredScenario, on_delete=models.CASCADE, related_name="conversations")
    position = models.PositiveIntegerField()
    source = models.CharField(max_length=200, help_text="Record or match it came from.")
    data = models.JSONField()
    episode_sha256 = models.CharField(max_length=64, help_text="Of its scenario and moves: the same in every copy.")
    judgments = models.JSONField(default=list)
    withdrawn_at = models.DateTimeField(null=True, blank=True)

    objects = StoredConversationQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["scenario", "position"], name="conversation_position_once")]
        indexes = [
            models.Index(fields=["episode_sha256"], name="conversation_episode"),
            models.Index(fields=["source"], name="conversation_source"),
            models.Index(  # nearly every read of judgments leaves out the few that were withdrawn
                fields=["id"], condition=Q(withdrawn_at__isnull=False), name="conversation_withdrawn"
            ),
        ]


class WithdrawalQuerySet(models.QuerySet["Withdrawal"]):
    """Reads of withdrawals."""

    def unfinished(self) -> WithdrawalQuerySet:
        """Those with work left that no worker does."""
        return self.filter(Q(claimed_until=None) | Q(claimed_until__lt=Now()), done_at=None)


class Withdrawal(models.Model):
    """Consent to the use of one game was withdrawn. The row is the work that follows: `webapp.scenarios.withdrawing`.

    `source` names a game of this site, or a conversation of the dataset with this name. `report` says what was closed
    and how many copies were erased.
    """

    source = models.CharField(max_length=200)
    dataset_name = models.CharField(max_length=80, blank=True, help_text="Empty for a game of this site.")
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
        help_text="Who withdrew a dataset's conversation; empty for a player's own game.",
    )
    report = models.JSONField(default=dict)
    claimed_until = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    done_at = models.DateTimeField(null=True, blank=True)

    objects = WithdrawalQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["source", "dataset_name"], name="withdrawn_once"),
        ]

    def __str__(self) -> str:
        return self.source


class WithdrawnEpisode(models.Model):
    """The `episode_sha256` that all copies of a withdrawn game share: none of them is stored again."""

    withdrawal = models.ForeignKey(Withdrawal, on_delete=models.CASCADE, related_name="episodes")
    episode_sha256 = models.CharField(max_length=64, db_index=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["withdrawal", "episode_sha256"], name="withdrawn_episode_once"),
        ]


class ImportQuerySet(models.QuerySet["Import"]):
    """Reads of imports."""

    def changeable_by(self, user: User) -> ImportQuerySet:
        """Users see and confirm their own imports, admins all."""
        return self if user.is_admin else self.filter(owner=user)

    def unread(self) -> ImportQuerySet:
        """Imports that no worker is reading."""
        waiting = Q(state=Import.State.QUEUED) | Q(state=Import.State.READING, claimed_until__lt=Now())
        return self.filter(waiting)

    def unstored(self) -> ImportQuerySet:
        """Confirmed imports that no worker is storing."""
        return self.filter(Q(claimed_until=None) | Q(claimed_until__lt=Now()), state=Import.State.STORING)

    def under_way(self) -> ImportQuerySet:
        """Imports that wait for a worker or for confirmation."""
        return self.filter(state__in=["queued", "reading", "waiting", "storing"])


class Import(models.Model):
    """An upload: read and checked first, and stored as a version once it is confirmed."""

    class State(models.TextChoices):
        UPLOADING = "uploading"
        QUEUED = "queued"
        READING = "reading"
        WAITING = "waiting", "waiting for confirmation"
        STORING = "storing"
        REFUSED = "refused"
        STORED = "stored"
        DROPPED = "dropped"

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="imports")
    format = models.CharField(max_length=40)
    dataset_name = models.SlugField(max_length=80)
    source = models.CharField(max_length=400, blank=True)
    licence = models.CharField(max_length=120, blank=True)
    folder = models.CharField(max_length=200, help_text="Folder of its files in the default storage.")
    files = models.JSONField(default=list, help_text="Names of the uploaded files.")
    options = models.JSONField(default=dict, help_text="Options of its format, by name.")
    state = models.CharField(max_length=10, choices=State, default=State.QUEUED)
    progress = models.FloatField(default=0, help_text="0 to 1.")
    report = models.JSONField(
        default=dict, help_text='{"scenarios", "conversations", "errors", "notices", "preview", "problem"}'
    )
    version = models.ForeignKey(
        DatasetVersion, null=True, blank=True, on_delete=models.SET_NULL, related_name="imports"
    )
    claimed_until = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = ImportQuerySet.as_manager()

    @property
    def is_worked_at(self) -> bool:
        """Whether a worker is processing it, or will."""
        return self.state in {self.State.QUEUED, self.State.READING, self.State.STORING}

    @property
    def is_over(self) -> bool:
        """Whether the state is final."""
        return self.state in {self.State.REFUSED, self.State.STORED, self.State.DROPPED}
