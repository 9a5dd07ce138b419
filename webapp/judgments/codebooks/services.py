"""Writes of codebooks and judge models: each function is one transaction; `BadInput` says what is wrong and changes
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import IntegrityError, transaction
from pydantic import ValidationError

from training.errors import BadInput
from training.labels.codebooks import CODEBOOKS
from training.labels.codebooks import Codebook as CodebookRecord
from training.reading import explain
from webapp.accounts.models import User
from webapp.core import quotas
from webapp.judgments.models import (
    Codebook,
    CodebookVersion,
    JudgeModel,
)
from webapp.serving.models import RemoteModel


@transaction.atomic
def load_codebooks() -> None:
    """Bring the codebooks that come with Parley into the database, each version once."""
    for record in CODEBOOKS.values():
        codebook, _ = Codebook.objects.get_or_create(name=record.name, defaults={"title": record.title})
        CodebookVersion.objects.get_or_create(codebook=codebook, number=record.version, defaults=content_of(record))


def content_of(record: CodebookRecord) -> dict[str, Any]:
    """Return the fields of the version that stores a codebook."""
    labels = [label_type.to_dict() for label_type in record.labels]
    return {"title": record.title, "guideline": record.guideline, "labels": labels}


@transaction.atomic
def save_codebook(
    *, name: str, title: str, labels: Sequence[Mapping[str, Any]], by: User, guideline: str = ""
) -> CodebookVersion:
    """Make the next version of a codebook, or a new codebook; what was judged under older versions stays as it is."""
    codebook = Codebook.objects.select_for_update().filter(name=name).first()
    if codebook is not None and not may_change_codebook(codebook, by):
        raise BadInput("this codebook is somebody else's; choose another name", "name")
    last = codebook.versions.order_by("-number").first() if codebook else None
    number = last.number + 1 if last else 1
    try:
        record = CodebookRecord(
            name=name,
            version=number,
            title=title,
            guideline=guideline,
            labels=tuple(labels),  # type: ignore[arg-type]
        )
    except ValidationError as error:
        where, why = explain(error)
        raise BadInput(why, where) from error
    if last is not None and last.record() == record.model_copy(update={"version": last.number}):
        return last
    saved = quotas.within_hour(CodebookVersion.objects.filter(created_by=by))
    quotas.check(user=by, quota="codebook_versions_per_hour", used=saved)
    codebook = codebook or _new_codebook(name, title, by)
    codebook.title = title
    codebook.save(update_fields=["title"])
    return CodebookVersion.objects.create(codebook=codebook, number=number, created_by=by, **content_of(record))


def _new_codebook(name: str, title: str, owner: User) -> Codebook:
    try:
        return Codebook.objects.create(name=name, title=title, owner=owner)
    except IntegrityError as error:
        raise BadInput("a codebook of this name has just been created: view it, or choose another title") from error


def may_change_codebook(codebook: Codebook, user: User) -> bool:
    """Say whether this person may add versions: the owner, and admins."""
    return user.may_change(codebook.owner_id)


@transaction.atomic
def add_judge(*, name: str, remote: RemoteModel, temperature: float) -> JudgeModel:
    """Let a remote model judge."""
    try:
        return JudgeModel.objects.create(name=name, remote=remote, temperature=temperature)
    except IntegrityError as error:
        raise BadInput(f"there is already a judge named {name!r}", "name") from error


@transaction.atomic
def remove_judge(*, judge: JudgeModel) -> None:
    """Remove a remote model as a judge; raise `BadInput` if it judges a queue."""
    if used := judge.queues.order_by("-created_at").values_list("name", flat=True).first():
        raise BadInput(f"queue “{used}” is judged by it", judge.name)
    judge.delete()
