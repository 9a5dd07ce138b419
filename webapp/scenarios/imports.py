"""Imports: an upload is kept, read by a worker, and stored as a dataset only on a yes; or read at once by a command."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.core.files.storage import default_storage
from django.core.files.uploadedfile import UploadedFile
from django.db import transaction
from django.db.models.functions import Now

from training.errors import BadInput
from webapp.accounts.models import User
from webapp.core import queue
from webapp.scenarios import importers
from webapp.scenarios.importers.reading import Reading
from webapp.scenarios.models import DatasetVersion, Import
from webapp.scenarios.services import check_name, create_dataset
from webapp.scenarios.titles import title_of

LEASE = timedelta(seconds=60)


def upload(
    *, owner: User, format: str, name: str, files: Iterable[UploadedFile], source: str = "", licence: str = ""
) -> Import:
    """Keep the uploaded files and queue their reading; raise `BadInput` if they do not fit the format."""
    chosen = list(files)
    importers.check_upload(format, [(file.name or "", file.size or 0) for file in chosen])
    check_name(name)
    folder = f"imports/{secrets.token_hex(12)}"
    names = [default_storage.save(f"{folder}/{Path(file.name or 'file').name}", file) for file in chosen]
    with transaction.atomic():
        made = Import.objects.create(
            owner=owner,
            format=format,
            dataset_name=name,
            source=source or importers.FORMATS[format].source,
            licence=licence or importers.FORMATS[format].licence,
            folder=folder,
            files=[Path(stored).name for stored in names],
        )
        queue.send(queue.READ_IMPORT, made.pk)
    return made


def claim_import(*, pk: int) -> Import | None:
    """Take an import that nobody reads now; None if there is nothing to do."""
    with transaction.atomic():
        claimed = Import.objects.unread().select_for_update(skip_locked=True).filter(pk=pk).first()
        if claimed:
            claimed.state = Import.State.READING
            claimed.claimed_until = Now() + LEASE
            claimed.save(update_fields=["state", "claimed_until"])
    return claimed


def read_import(*, pk: int) -> None:
    """Read an uploaded import and leave its report: waiting for a yes, or refused. Safe to call twice."""
    claimed = claim_import(pk=pk)
    if claimed is None:
        return
    mine = Import.objects.filter(pk=pk, state=Import.State.READING)

    def progress(done: int, total: int) -> None:
        if done % 50 == 0 or done == total:
            mine.update(progress=done / max(total, 1), claimed_until=Now() + LEASE)

    reading = _read_stored(claimed, progress)
    report: dict[str, Any] = reading.report()
    report["preview"] = [
        {"id": line.scenario.id, "title": title_of(line.scenario), "conversations": len(line.conversations)}
        for line in reading.lines[:12]
    ]
    state = Import.State.REFUSED if reading.errors else Import.State.WAITING
    mine.update(state=state, report=report, progress=1)


def _read_stored(stored: Import, progress: importers.Progress) -> Reading:
    with tempfile.TemporaryDirectory(prefix="parley-import-") as folder:
        for name in stored.files:
            with default_storage.open(f"{stored.folder}/{name}") as source, (Path(folder) / name).open("wb") as target:
                while chunk := source.read(1 << 20):
                    target.write(chunk)
        fmt = importers.FORMATS[stored.format]
        return importers.read(stored.format, Path(folder) if fmt.folder else Path(folder) / stored.files[0], progress)


@transaction.atomic
def store_import(*, pk: int) -> DatasetVersion:
    """The yes: store what was read as a dataset; raise `BadInput` if it is not waiting, or the name is taken now."""
    waiting = Import.objects.select_for_update().get(pk=pk)
    if waiting.state == Import.State.STORED and waiting.version:
        return waiting.version
    if waiting.state != Import.State.WAITING:
        raise BadInput(f"this import is {waiting.get_state_display().lower()}, so it cannot be stored", "import")
    reading = _read_stored(waiting, lambda _done, _total: None)
    if reading.errors:
        raise BadInput(reading.errors[0]["why"], reading.errors[0]["where"])
    version = create_dataset(
        name=waiting.dataset_name,
        owner=waiting.owner,
        lines=reading.lines,
        source=waiting.source,
        licence=waiting.licence,
        note=f"imported from {', '.join(waiting.files)}"[:400],
    )
    waiting.state, waiting.version = Import.State.STORED, version
    waiting.save(update_fields=["state", "version"])
    _forget_files(waiting)
    return version


@transaction.atomic
def drop_import(*, pk: int) -> None:
    """The no: forget what was uploaded. Dropping twice, or after it was stored, changes nothing."""
    waiting = Import.objects.select_for_update().get(pk=pk)
    if not waiting.is_over or waiting.state == Import.State.REFUSED:
        waiting.state = Import.State.DROPPED
        waiting.save(update_fields=["state"])
        _forget_files(waiting)


def _forget_files(done: Import) -> None:
    def forget() -> None:
        for name in done.files:
            default_storage.delete(f"{done.folder}/{name}")

    transaction.on_commit(forget, robust=True)


def import_path(*, format: str, path: Path, name: str, owner: User) -> tuple[Reading, DatasetVersion | None]:
    """Read and store at once, for the command line; with any error nothing is stored.

    Raises `BadInput` for a name that cannot be given.
    """
    check_name(name)
    reading = importers.read(format, path, lambda _done, _total: None)
    if reading.errors:
        return reading, None
    fmt = importers.FORMATS[format]
    version = create_dataset(
        name=name, owner=owner, lines=reading.lines, source=fmt.source, licence=fmt.licence,
        note=f"imported from {path.name}",
    )  # fmt: skip
    return reading, version
