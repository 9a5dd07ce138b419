"""Writes of datasets: each function is one transaction, and every change of content makes a new version."""

from __future__ import annotations

import hashlib
import re
import secrets
import tempfile
from collections.abc import Iterable, Iterator
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Any

from django.core.files.storage import default_storage
from django.core.files.uploadedfile import UploadedFile
from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from training.dataset import Conversation, DatasetLine
from training.errors import BadInput
from training.records import Scenario
from webapp.accounts.models import User
from webapp.core import queue
from webapp.core.deleting import refused_if_used
from webapp.scenarios import importers
from webapp.scenarios.importers.reading import Reading, check_line
from webapp.scenarios.models import Dataset, DatasetVersion, Import, StoredConversation, StoredScenario
from webapp.scenarios.titles import title_of

BATCH = 500
SLUG = re.compile(r"[-a-zA-Z0-9_]+")
LEASE = timedelta(seconds=60)


RESERVED = frozenset({"import", "imports"})
"""Names that are addresses of the site."""


def check_name(name: str) -> None:
    """Raise `BadInput` unless a new dataset may have this name."""
    if not SLUG.fullmatch(name) or len(name) > 80 or name in RESERVED:
        raise BadInput("letters, digits, hyphens and underscores only, at most 80, and not import or imports", "name")
    if Dataset.objects.filter(name=name).exists():
        raise BadInput(f"a dataset named {name!r} exists already; choose another name", "name")


@transaction.atomic
def create_dataset(
    *,
    name: str,
    owner: User,
    lines: Iterable[DatasetLine],
    title: str = "",
    source: str = "",
    licence: str = "",
    note: str = "",
    forked_from: DatasetVersion | None = None,
) -> DatasetVersion:
    """Create a dataset with its first version; raise `BadInput` if the name is taken."""
    check_name(name)
    try:
        with transaction.atomic():
            dataset = Dataset.objects.create(
                name=name, owner=owner, title=title, source=source, licence=licence, forked_from=forked_from
            )
    except IntegrityError as error:
        raise BadInput(f"a dataset named {name!r} exists already; choose another name", "name") from error
    return add_version(dataset=dataset, by=owner, lines=lines, note=note)


@transaction.atomic
def add_version(*, dataset: Dataset, by: User, lines: Iterable[DatasetLine], note: str = "") -> DatasetVersion:
    """Add the next version with these lines; its hash is that of its own export."""
    Dataset.objects.select_for_update().get(pk=dataset.pk)
    last = dataset.versions.order_by("-number").values_list("number", flat=True).first() or 0
    version = DatasetVersion.objects.create(dataset=dataset, number=last + 1, created_by=by, note=note, sha256="")
    digest, games = hashlib.sha256(), set()
    position = 0
    stream = iter(lines)
    while batch := list(islice(stream, BATCH)):
        _store(version, batch, position)
        position += len(batch)
        for line in batch:
            games.add(line.scenario.game)
            digest.update(line.dumps().encode() + b"\n")
            version.conversation_count += len(line.conversations)
    version.scenario_count, version.games, version.sha256 = position, sorted(games), digest.hexdigest()
    version.save()
    return version


def _store(version: DatasetVersion, lines: list[DatasetLine], start: int) -> None:
    scenarios = StoredScenario.objects.bulk_create(
        StoredScenario(
            version=version,
            position=start + offset,
            key=line.scenario.id,
            game=line.scenario.game,
            title=title_of(line.scenario),
            data=line.scenario.to_dict(),
        )
        for offset, line in enumerate(lines)
    )
    StoredConversation.objects.bulk_create(
        StoredConversation(
            scenario=stored,
            position=position,
            source=conversation.source,
            data=conversation.episode.to_dict(),
            judgments=[judgment.to_dict() for judgment in conversation.judgments],
        )
        for stored, line in zip(scenarios, lines, strict=True)
        for position, conversation in enumerate(line.conversations)
    )


def lines_of(version: DatasetVersion) -> Iterator[DatasetLine]:
    """Yield the version's lines in order: the export, and what a run is given."""
    scenarios = version.scenarios.order_by("position").prefetch_related("conversations")
    for stored in scenarios.iterator(chunk_size=BATCH):
        yield line_of(stored)


def line_of(stored: StoredScenario) -> DatasetLine:
    """Return one stored scenario with its conversations as a dataset line."""
    conversations = sorted(stored.conversations.all(), key=lambda row: row.position)
    return DatasetLine(
        scenario=Scenario.from_dict(stored.data),
        conversations=tuple(
            Conversation.from_dict({"source": row.source, "episode": row.data, "judgments": row.judgments})
            for row in conversations
        ),
    )


@transaction.atomic
def change_scenario(*, stored: StoredScenario, scenario: Scenario, by: User, note: str = "") -> DatasetVersion:
    """Return a new version in which one scenario is replaced; its conversations, played on the old one, are left out.

    Raises `BadInput` if the scenario is not playable or its id is another one's.
    """
    check_line(DatasetLine(scenario=scenario), stored.key)
    if scenario.id != stored.key and stored.version.scenarios.filter(key=scenario.id).exists():
        raise BadInput(f"another scenario has the id {scenario.id!r}", "id")

    def lines() -> Iterator[DatasetLine]:
        for line in lines_of(stored.version):
            yield DatasetLine(scenario=scenario) if line.scenario.id == stored.key else line

    return add_version(
        dataset=stored.version.dataset, by=by, lines=lines(), note=note or f"changed scenario {stored.key}"
    )


def fork(*, version: DatasetVersion, name: str, by: User) -> DatasetVersion:
    """Copy a version into a new dataset of one's own, with its origin noted."""
    return create_dataset(
        name=name,
        owner=by,
        lines=lines_of(version),
        title=version.dataset.title,
        source=version.dataset.source,
        licence=version.dataset.licence,
        note=f"forked from {version}",
        forked_from=version,
    )


@transaction.atomic
def delete_dataset(*, dataset: Dataset) -> None:
    """Delete a dataset with all versions; raise `BadInput` if a run still names one of them. Matches keep their own
    copy of what they play.
    """
    with refused_if_used(dataset.name):
        dataset.delete()


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
