"""Datasets over the API: list, import, export."""

from __future__ import annotations

import tempfile
from pathlib import Path

from django.http import HttpRequest, StreamingHttpResponse
from ninja import File, Form, Router, Status
from ninja.errors import HttpError
from ninja.files import UploadedFile
from ninja.pagination import LimitOffsetPagination, paginate

from training.errors import BadInput
from training.store import from_json
from webapp.accounts.permissions import get_or_404
from webapp.api.access import Key, caller
from webapp.api.shapes import DatasetOut, ImportOut, Problem
from webapp.core import streaming
from webapp.scenarios import importers, imports, services
from webapp.scenarios.models import Dataset, DatasetQuerySet, DatasetVersion

router = Router(tags=["datasets"], auth=Key(researchers=True))


@router.get("", response=list[DatasetOut])
@paginate(LimitOffsetPagination)
def list_datasets(request: HttpRequest, q: str = "", game: str = "") -> DatasetQuerySet:
    """Datasets, newest first."""
    return Dataset.objects.visible_to(caller(request)).listed(q, game).prefetch_related("versions__dataset")


@router.get("/{name}", response=DatasetOut)
def get_dataset(request: HttpRequest, name: str) -> Dataset:
    """One dataset."""
    return get_or_404(Dataset.objects.visible_to(caller(request)).select_related("owner"), name=name)


@router.post("", response={201: ImportOut, 422: ImportOut | Problem})
def import_dataset(
    request: HttpRequest,
    format: Form[str],
    name: Form[str],
    files: File[list[UploadedFile]],
    options: Form[str] = "{}",
) -> Status[dict[str, object]]:
    """Import one upload. If it has an error, nothing is stored and the status is 422.

    `options` are those of the format, as a JSON object.
    """
    user = caller(request)
    chosen = from_json(options, "options")
    if not isinstance(chosen, dict):
        raise BadInput("expected a JSON object", "options")
    importers.check_upload(format, [(file.name or "", file.size or 0) for file in files])
    with tempfile.TemporaryDirectory(prefix="parley-api-") as folder:
        for file in files:
            with (Path(folder) / Path(file.name or "file").name).open("wb") as target:
                target.writelines(file.chunks())
        single = Path(folder) / Path(files[0].name or "file").name
        path = Path(folder) if importers.FORMATS[format].reads_folder(len(files)) else single
        reading, version = imports.import_sent(format=format, path=path, name=name, owner=user, options=chosen)
    report = {**reading.report(), "version": version.number if version else None}
    return Status(201 if version else 422, report)


@router.get("/{name}/versions/{number}/export", response=str)
def export_version(request: HttpRequest, name: str, number: int) -> StreamingHttpResponse:
    """One version as JSONL, one scenario per line.

    409 for a closed version, and while the caller has yet to judge what others judged in it.
    """
    user = caller(request)
    version = get_or_404(DatasetVersion.objects.visible_to(user), dataset__name=name, number=number)
    try:
        services.check_exportable(version, user)
    except BadInput as error:
        raise HttpError(409, error.why) from error
    lines = streaming.lines(line.dumps() for line in services.lines_of(version))
    return streaming.stream(request, lines, "application/jsonl; charset=utf-8")


def version_named(name: str, number: int | None) -> DatasetVersion:
    """Return a version by dataset name, the newest unless a number is given; raise `BadInput` if there is none."""
    dataset = Dataset.objects.filter(name=name).first()
    if dataset is None:
        raise BadInput(f"no dataset is named {name!r}", "dataset")
    version = dataset.newest() if number is None else dataset.versions.filter(number=number).first()
    if version is None:
        raise BadInput(f"{name} has no version {number}", "version")
    return version
