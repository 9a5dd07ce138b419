"""Codebooks with their versions, and models that may judge."""

from __future__ import annotations

import functools

from django.conf import settings
from django.db import models
from django.db.models import Prefetch, Q

from training.errors import BadInput
from training.labels.codebooks import Codebook as CodebookRecord
from training.store import dumps, loads
from webapp.accounts.models import User


class CodebookQuerySet(models.QuerySet["Codebook"]):
    """Reads of codebooks."""

    def visible_to(self, user: User) -> CodebookQuerySet:
        """Return what this person may read: researchers all, others none outside of their queues."""
        return self if user.is_researcher else self.none()

    def matching(self, text: str) -> CodebookQuerySet:
        """Return codebooks whose name or title contains the text, by name."""
        return self.filter(Q(name__icontains=text) | Q(title__icontains=text)).order_by("name")

    def with_newest(self) -> CodebookQuerySet:
        """Prefetch only the newest version of each, which `Codebook.newest` returns."""
        newest = CodebookVersion.objects.order_by("codebook", "-number").distinct("codebook").select_related("codebook")
        return self.prefetch_related(Prefetch("versions", newest))


class Codebook(models.Model):
    """A named line of codebook versions; those that come with Parley have no owner and are changed by admins."""

    name = models.SlugField(max_length=80, unique=True)
    title = models.CharField(max_length=200)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="codebooks"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects = CodebookQuerySet.as_manager()

    def __str__(self) -> str:
        return self.name

    def newest(self) -> CodebookVersion:
        """Return the version with the highest number; every codebook has one. Uses prefetched versions."""
        return max(self.versions.all(), key=lambda version: version.number)


class CodebookVersionQuerySet(models.QuerySet["CodebookVersion"]):
    """Reads of versions."""

    def named(self, name: str, number: int | None = None) -> CodebookVersion:
        """Return a version of a codebook, the newest without a number; raise `BadInput` if there is none."""
        versions = self.select_related("codebook").filter(codebook__name=name).order_by("-number")
        if not versions:
            known = ", ".join(Codebook.objects.order_by("name").values_list("name", flat=True)[:20])
            raise BadInput(f"no codebook is named {name[:80]!r}; there are {known}", "codebook")
        version = versions[0] if number is None else next((row for row in versions if row.number == number), None)
        if version is None:
            raise BadInput(f"{name} has no version {number}", "codebook")
        return version


class CodebookVersion(models.Model):
    """One immutable state of a codebook: its label types as `training.labels.codebooks` writes them."""

    codebook = models.ForeignKey(Codebook, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    title = models.CharField(max_length=200)
    guideline = models.TextField(blank=True, help_text="For annotators, in Markdown.")
    labels = models.JSONField(help_text="Label types; see `training.labels.codebooks.LabelType`.")
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects = CodebookVersionQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["codebook", "number"], name="codebook_number_once")]

    def __str__(self) -> str:
        return f"{self.codebook} v{self.number}"

    def record(self) -> CodebookRecord:
        """Return it as judges and exports read it."""
        return _validated(
            dumps(
                {
                    "name": self.codebook.name,
                    "version": self.number,
                    "title": self.title,
                    "guideline": self.guideline,
                    "labels": self.labels,
                }
            )
        )


@functools.lru_cache(maxsize=256)
def _validated(content: str) -> CodebookRecord:
    """Validate each content once: pages read a version for every target and label."""
    return CodebookRecord.from_dict(loads(content))


class JudgeModel(models.Model):
    """A remote model that may judge, with the temperature it is asked at."""

    name = models.CharField(max_length=120, unique=True)
    remote = models.ForeignKey("serving.RemoteModel", on_delete=models.PROTECT, related_name="judges")
    temperature = models.FloatField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.name
