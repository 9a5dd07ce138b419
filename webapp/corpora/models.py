"""Corpora, the files that they are made of, and the indexes of these files."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Now

from webapp.accounts.models import User


class CorpusFileQuerySet(models.QuerySet["CorpusFile"]):
    """Reads of files."""

    def unused(self) -> CorpusFileQuerySet:
        """Files of which there is no corpus any more."""
        return self.filter(~Exists(Corpus.objects.filter(file=OuterRef("pk"))))


class CorpusFile(models.Model):
    """The content of a corpus, by its hash: stored once and indexed once, however often and by whom it is uploaded.

    A file without corpora is forgotten, and its indexes with it.
    """

    sha256 = models.CharField(max_length=64, unique=True)
    bytes = models.PositiveBigIntegerField()
    passages = models.PositiveIntegerField(null=True, blank=True, help_text="Known once an index is built.")
    stored = models.BooleanField(default=False, help_text="Whether the storage has all of it.")
    problem = models.JSONField(
        default=dict, help_text='Why it cannot be indexed: {"where", "why"}, where the place in the file is.'
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects = CorpusFileQuerySet.as_manager()

    @property
    def storage_name(self) -> str:
        """Its name in the default storage."""
        return f"corpora/{self.sha256}.jsonl"


class CorpusQuerySet(models.QuerySet["Corpus"]):
    """Reads of corpora."""

    def visible_to(self, user: User) -> CorpusQuerySet:
        """Researchers see their own corpora and those that are not private, admins all; nobody else sees any."""
        if user.is_admin:
            return self
        return self.filter(Q(private=False) | Q(owner=user)) if user.is_researcher else self.none()

    def changeable_by(self, user: User) -> CorpusQuerySet:
        """Researchers change their own corpora, admins all."""
        return self if user.is_admin else self.visible_to(user).filter(owner=user)

    def listed(self, words: str = "", order: str = "-created_at") -> CorpusQuerySet:
        """Return corpora with their files and indexes, those whose name or source contains the words."""
        rows = self.select_related("owner", "file").prefetch_related("file__indexes")
        if words:
            rows = rows.filter(Q(name__icontains=words) | Q(source__icontains=words))
        return rows.order_by(order, "name")


class Corpus(models.Model):
    """A named collection of passages. Its content never changes."""

    name = models.SlugField(max_length=80, unique=True)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="corpora")
    file = models.ForeignKey(CorpusFile, on_delete=models.PROTECT, related_name="corpora")
    filename = models.CharField(max_length=150, help_text="What the uploaded file was called.")
    source = models.CharField(max_length=400, blank=True, help_text="Where the passages come from.")
    licence = models.CharField(max_length=120, blank=True)
    private = models.BooleanField(default=False, help_text="Whether only its owner and administrators see it.")
    created_at = models.DateTimeField(auto_now_add=True)

    objects = CorpusQuerySet.as_manager()

    def __str__(self) -> str:
        return self.name

    @property
    def problem(self) -> str:
        """Why it cannot be indexed, with file, line and field; empty if nothing is known against it."""
        problem = self.file.problem
        return f"{self.filename}{problem['where']}: {problem['why']}" if problem else ""

    def index(self, kind: str) -> Index | None:
        """Return its index of a kind; None if nobody has asked for it. Uses prefetched indexes."""
        return next((index for index in self.file.indexes.all() if index.kind == kind), None)


class IndexQuerySet(models.QuerySet["Index"]):
    """Reads of indexes."""

    def waiting(self) -> IndexQuerySet:
        """Those that no worker builds: queued ones, and ones whose worker has been silent for too long."""
        return self.filter(
            Q(state=Index.State.QUEUED) | Q(state=Index.State.BUILDING, claimed_until__lt=Now()), file__stored=True
        )

    def claimed(self) -> IndexQuerySet:
        """Those whose worker has not ended its process yet; it may have been asked to stop."""
        return self.filter(claimed_until__gte=Now())


class Index(models.Model):
    """The index of one kind of a file: a folder of `training.retrieval.index`, or the work to make it.

    Whoever claims the work gets the next fence. A write under a lower one is refused.
    """

    class Kind(models.TextChoices):
        BM25 = "bm25", "BM25"
        DENSE = "dense", "dense vectors"

    class State(models.TextChoices):
        QUEUED = "queued"
        BUILDING = "building"
        READY = "ready"
        STOPPED = "stopped"
        FAILED = "failed"

    file = models.ForeignKey(CorpusFile, on_delete=models.CASCADE, related_name="indexes")
    kind = models.CharField(max_length=5, choices=Kind)
    state = models.CharField(max_length=8, choices=State, default=State.QUEUED)
    name = models.CharField(max_length=40, blank=True, help_text="The folder's name, known once the work has begun.")
    built = models.BooleanField(default=False, help_text="Whether the folder was made here, and not by a command.")
    phase = models.CharField(max_length=20, blank=True)
    done = models.PositiveBigIntegerField(default=0)
    total = models.PositiveBigIntegerField(default=0)
    error = models.TextField(blank=True, help_text="Why the last try failed.")
    bytes = models.PositiveBigIntegerField(null=True, blank=True)
    seconds = models.FloatField(null=True, blank=True, help_text="How long the building took.")
    tries = models.PositiveIntegerField(default=0, help_text="How often the work was claimed since it was asked for.")
    fence = models.PositiveBigIntegerField(default=0)
    host = models.CharField(max_length=200, blank=True)
    pid = models.PositiveIntegerField(null=True, blank=True)
    pid_started = models.FloatField(null=True, blank=True, help_text="The process's start time, against reused ids.")
    claimed_until = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = IndexQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["file", "kind"], name="index_kind_once")]
        ordering = ["kind"]

    def __str__(self) -> str:
        return self.name or self.kind

    @property
    def is_worked_at(self) -> bool:
        """Whether a worker is building it, or will."""
        return self.state in {self.State.QUEUED, self.State.BUILDING}
