"""Imports: a worker reads an upload and stores it as a dataset once it is confirmed; a command does both at once."""

from __future__ import annotations

import logging
import secrets
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from django.core.files.storage import default_storage
from django.core.files.uploadedfile import UploadedFile
from django.db import DataError, Error, transaction
from django.db.models.functions import Now

from training.errors import BadInput
from training.games.log import Settings
from training.games.shop import catalogues
from webapp.accounts.models import User
from webapp.core import queue, quotas
from webapp.scenarios import importers
from webapp.scenarios.importers.reading import Reading
from webapp.scenarios.models import DatasetVersion, Import, ImportQuerySet
from webapp.scenarios.services import check_name, create_dataset
from webapp.scenarios.titles import seats_of, title_of

logger = logging.getLogger(__name__)
LEASE = timedelta(seconds=60)
PROGRESS_EVERY = 50  # records
PREVIEWED = 12
REQUEST_BYTES = importers.MAX_BYTES
"""Bytes of a catalogue that a request reads at most."""
OVER = (Import.State.REFUSED, Import.State.STORED, Import.State.DROPPED)
UNFINISHED = timedelta(hours=1)
"""No request takes this long to upload its files."""


def upload(
    *,
    owner: User,
    format: str,
    name: str,
    files: Iterable[UploadedFile],
    source: str = "",
    licence: str = "",
    options: Mapping[str, Any] | None = None,
) -> Import:
    """Store the uploaded files and queue their reading; raise `BadInput` if they or the options do not fit the format.

    The row is created before the first file is saved, so that no failure leaves a file without a row.
    """
    uploaded = list(files)
    importers.check_upload(format, [(file.name or "", file.size or 0) for file in uploaded])
    chosen = importers.options_of(format, options or {})
    check_name(name)
    with transaction.atomic():
        open_imports = Import.objects.filter(owner=owner).exclude(state__in=OVER)
        quotas.check(user=owner, quota="open_imports", used=open_imports)
        quotas.check(user=owner, quota="imports_per_hour", used=quotas.within_hour(owner.imports.all()))
        record = _begin_upload(owner, format, name, source, licence, chosen)
    try:
        _keep(record, uploaded)
    finally:
        if record.state == Import.State.UPLOADING:
            _forget_upload(record)
    return record


def _begin_upload(owner: User, format: str, name: str, source: str, licence: str, options: Settings | None) -> Import:
    return Import.objects.create(
        owner=owner,
        format=format,
        dataset_name=name,
        source=source or importers.FORMATS[format].source,
        licence=licence or importers.FORMATS[format].licence,
        options=options.model_dump(mode="json") if options else {},
        folder=f"imports/{secrets.token_hex(12)}",
        state=Import.State.UPLOADING,
    )


def _keep(record: Import, uploaded: list[UploadedFile]) -> None:
    """Save the files in the import's folder, then queue the import."""
    names = [default_storage.save(f"{record.folder}/{Path(file.name or 'file').name}", file) for file in uploaded]
    record.files = [Path(name).name for name in names]
    with transaction.atomic():
        Import.objects.filter(pk=record.pk).update(state=Import.State.QUEUED, files=record.files)
        queue.send(queue.READ_IMPORT, record.pk)
    record.state = Import.State.QUEUED


def _forget_upload(record: Import) -> None:
    _delete_files(record.folder)
    Import.objects.filter(pk=record.pk, state=Import.State.UPLOADING).delete()


def forget_unfinished() -> int:
    """Clock step: delete uploads whose request failed before all files were stored; return their number."""
    unfinished = list(Import.objects.filter(state=Import.State.UPLOADING, created_at__lt=Now() - UNFINISHED))
    for record in unfinished:
        _forget_upload(record)
    return len(unfinished)


def _claim(waiting: ImportQuerySet, pk: int, state: str) -> Import | None:
    """Claim an import that no worker holds; None if there is nothing to do."""
    with transaction.atomic():
        claimed = waiting.select_for_update(skip_locked=True).filter(pk=pk).first()
        if claimed:
            claimed.state, claimed.claimed_until = state, Now() + LEASE
            claimed.save(update_fields=["state", "claimed_until"])
    return claimed


def claim_import(*, pk: int) -> Import | None:
    """Claim an import that no worker is reading; None if there is nothing to do."""
    return _claim(Import.objects.unread(), pk, Import.State.READING)


def read_import(*, pk: int) -> None:
    """Read an uploaded import and store its report: waiting for confirmation, or refused. Safe to call twice."""
    claimed = claim_import(pk=pk)
    if claimed is None:
        return
    reading = _read_stored(claimed)
    report: dict[str, Any] = reading.report()
    report["preview"] = [
        {
            "id": line.scenario.id,
            "title": title_of(line.scenario),
            "seats": seats_of(line.scenario),
            "conversations": len(line.conversations),
        }
        for line in reading.lines[:PREVIEWED]
    ]
    _end(claimed, Import.State.REFUSED if reading.errors else Import.State.WAITING, report)


def _read_stored(claimed: Import) -> Reading:
    """Read the stored files; every progress report renews the lease."""
    rows = Import.objects.filter(pk=claimed.pk, state=claimed.state)

    def progress(done: int, total: int) -> None:
        if done % PROGRESS_EVERY == 0 or done == total:
            rows.update(progress=done / max(total, 1), claimed_until=Now() + LEASE)

    with tempfile.TemporaryDirectory(prefix="parley-import-") as folder:
        try:
            for name in claimed.files:
                with (
                    default_storage.open(f"{claimed.folder}/{name}") as source,
                    (Path(folder) / name).open("wb") as copy,
                ):
                    shutil.copyfileobj(source, copy, 1 << 20)
        except FileNotFoundError:
            failed = Reading()
            failed.error(BadInput("the uploaded file is gone; upload it again", name))
            return failed
        fmt = importers.FORMATS[claimed.format]
        whole = fmt.reads_folder(len(claimed.files))
        path = Path(folder) if whole else Path(folder) / claimed.files[0]
        try:
            return importers.read(claimed.format, path, progress, claimed.options)
        except Error:  # the database is away: the import is read again
            raise
        except Exception as error:  # the root of the import's task, which would be tried again without end
            logger.exception("import %s failed", claimed.pk)
            failed = Reading()
            failed.error(BadInput(f"its importer failed: {type(error).__name__}: {error}", claimed.files[0]))
            return failed


@transaction.atomic
def accept_import(*, pk: int) -> None:
    """Confirm an import: queue it to be stored; raise `BadInput` if it is not waiting, or the name is taken.

    Confirming twice changes nothing.
    """
    waiting = Import.objects.select_for_update().get(pk=pk)
    if waiting.state in {Import.State.STORING, Import.State.STORED}:
        return
    if waiting.state != Import.State.WAITING:
        raise BadInput(f"this import is {waiting.get_state_display().lower()}, so it cannot be stored", "import")
    check_name(waiting.dataset_name)
    waiting.state, waiting.progress, waiting.claimed_until = Import.State.STORING, 0, None
    waiting.save(update_fields=["state", "progress", "claimed_until"])
    queue.send(queue.STORE_IMPORT, waiting.pk)


def store_import(*, pk: int) -> DatasetVersion | None:
    """Store an accepted import as a dataset and forget its files; None if there is nothing to do. Safe to call twice.

    If it cannot be stored any more (another dataset took the name), nothing is, and its page says why. What the
    database cannot hold is refused for good.
    """
    claimed = _claim(Import.objects.unstored(), pk, Import.State.STORING)
    if claimed is None:
        return None
    reading = _read_stored(claimed)
    try:
        if reading.errors:
            raise BadInput(reading.errors[0]["why"], reading.errors[0]["where"])
        return _store(pk, reading)
    except BadInput as error:
        _end(claimed, Import.State.WAITING, {**claimed.report, "problem": str(error)})
    except DataError as error:
        refused = Reading()
        refused.error(_unstorable(error))
        _end(claimed, Import.State.REFUSED, {**claimed.report, "errors": refused.errors})
    return None


def _end(claimed: Import, state: str, report: dict[str, Any]) -> None:
    """Store the outcome of an import, unless it was dropped meanwhile."""
    Import.objects.filter(pk=claimed.pk, state=claimed.state).update(state=state, report=report, progress=1)


def _unstorable(error: DataError) -> BadInput:
    first, *_context = str(error).splitlines() or [""]
    return BadInput(f"the database cannot hold it: {first}")


@transaction.atomic
def _store(pk: int, reading: Reading) -> DatasetVersion | None:
    storing = Import.objects.select_for_update().filter(pk=pk, state=Import.State.STORING).first()
    if storing is None:  # dropped while it was read
        return None
    version = create_dataset(
        name=storing.dataset_name,
        owner=storing.owner,
        lines=reading.lines,
        source=storing.source,
        licence=storing.licence,
        note=_note(storing.files, storing.options),
    )
    storing.state, storing.version, storing.progress = Import.State.STORED, version, 1
    storing.save(update_fields=["state", "version", "progress"])
    transaction.on_commit(partial(_delete_files, storing.folder), robust=True)
    return version


def _note(files: Iterable[str], options: Mapping[str, Any]) -> str:
    """Return where a version comes from: its files and the options of the import, cut to the column's length."""
    chosen = ", ".join(f"{name}: {value}" for name, value in options.items() if value != "")
    return f"imported from {', '.join(files)}{f' with {chosen}' if chosen else ''}"[:400]


@transaction.atomic
def drop_import(*, pk: int) -> None:
    """Drop an import and delete its files. Dropping twice, or after it was stored, changes nothing."""
    waiting = Import.objects.select_for_update().get(pk=pk)
    if not waiting.is_over or waiting.state == Import.State.REFUSED:
        waiting.state = Import.State.DROPPED
        waiting.save(update_fields=["state"])
        transaction.on_commit(partial(_delete_files, waiting.folder), robust=True)


def _delete_files(folder: str) -> None:
    """Delete a folder of the storage, whatever files it holds by now."""
    try:
        _folders, names = default_storage.listdir(folder)
    except FileNotFoundError:
        return
    for name in names:
        default_storage.delete(f"{folder}/{name}")
    default_storage.delete(folder)  # a local folder stays behind otherwise


@transaction.atomic
def import_sent(
    *, format: str, path: Path, name: str, owner: User, options: Mapping[str, Any] | None = None
) -> tuple[Reading, DatasetVersion | None]:
    """Read and store at once, for the API: as `import_path`, within the owner's quota and one at a time.

    Raises `BadInput`, too, if the quota is used up or another import of the owner is being read. A larger catalogue of
    the shop than the largest upload is an error of the reading: the request would hold all of it in memory.
    """
    quotas.spend(user=owner, quota="imports_per_hour", wait=False)
    with catalogues.at_most(REQUEST_BYTES, "upload it on the page of datasets, where a worker reads it"):
        return import_path(format=format, path=path, name=name, owner=owner, options=options)


def import_path(
    *, format: str, path: Path, name: str, owner: User, options: Mapping[str, Any] | None = None
) -> tuple[Reading, DatasetVersion | None]:
    """Read and store at once, for the command line; with any error nothing is stored.

    Raises `BadInput` for a name that cannot be given, for options that do not fit, and for what the database cannot
    hold.
    """
    check_name(name)
    chosen = importers.options_of(format, options or {})
    used = chosen.model_dump(mode="json") if chosen else {}
    reading = importers.read(format, path, lambda _done, _total: None, used)
    if reading.errors:
        return reading, None
    fmt = importers.FORMATS[format]
    try:
        version = create_dataset(
            name=name, owner=owner, lines=reading.lines, source=fmt.source, licence=fmt.licence,
            note=_note([path.name], used),
        )  # fmt: skip
    except DataError as error:
        raise _unstorable(error) from error
    return reading, version
