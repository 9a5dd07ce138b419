"""Writes of whoever builds an index: a worker, or a command. Each checks the fence and that nobody stopped the work.

A queued index is claimed, which gives it the next fence and a lease by the database's clock. Once the work was stopped,
or the lease has lapsed and another has claimed it, every function here raises `Superseded` and writes nothing.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core.files.storage import default_storage
from django.db import connection, transaction
from django.db.models.functions import Now

from training.retrieval import index as indexes
from training.retrieval.bm25 import Bm25Settings
from training.retrieval.dense import DenseSettings
from training.store import looks_complete
from webapp.core import files, queue
from webapp.corpora.models import CorpusFile, Index
from webapp.corpora.services import STORED

TRIES = 3
"""How often a process may die, until the index fails."""
AT_ONCE = 1
"""Indexes of one kind that the workers of a machine build at once: a million passages take up to 2 GiB of memory, and
vectors take hours, for which no BM25 index waits."""


class Superseded(Exception):
    """The work was stopped or taken away: its process must be killed and nothing more written."""


def _lease() -> Any:
    return Now() + timedelta(seconds=settings.RUN_LEASE_SECONDS)


@transaction.atomic
def claim(*, pk: int, host: str, at_once: int | None = AT_ONCE) -> Index | None:
    """Claim an index that nobody builds; None if there is none, or the machine builds `at_once` others of its kind.

    One whose process died too often fails instead.
    """
    if at_once is not None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"indexes of {host}"])
    waiting = Index.objects.waiting().select_related("file")
    index = waiting.select_for_update(skip_locked=True, of=("self",)).filter(pk=pk).first()
    if index is None:
        return None
    if at_once is not None and Index.objects.claimed().filter(host=host, kind=index.kind).count() >= at_once:
        return None
    if index.tries >= TRIES:
        index.state, index.claimed_until = Index.State.FAILED, None
        index.error = index.error or f"the process that built it ended {TRIES} times before it was done"
        index.save(update_fields=["state", "claimed_until", "error"])
        return None
    index.state, index.host, index.claimed_until = Index.State.BUILDING, host, _lease()
    index.fence, index.tries = index.fence + 1, index.tries + 1
    index.save(update_fields=["state", "host", "claimed_until", "fence", "tries"])
    return index


def settings_of(kind: str) -> Bm25Settings | DenseSettings:
    """Return the settings of the site's indexes of a kind; raise `BadInput` where its packages are missing."""
    return DenseSettings.of() if kind == Index.Kind.DENSE else Bm25Settings()


def begun(*, index: Index) -> None:
    """Record the folder's name, and whether it is to be made here: one that a command made is never deleted.

    Raises `BadInput` if an index of this kind cannot be built here.
    """
    name = indexes.name_of(index.file.sha256, settings_of(index.kind))
    if name != index.name:
        index.name, index.built = name, not looks_complete(indexes.root() / name)
        _change(index, name=index.name, built=index.built)


def started(*, index: Index, pid: int, pid_started: float) -> None:
    """Record the process that builds it."""
    _change(index, pid=pid, pid_started=pid_started)


def beat(*, index: Index, phase: str, done: int, total: int) -> None:
    """Renew the lease and store the progress."""
    _change(index, claimed_until=_lease(), phase=phase[:20], done=done, total=total)


def _change(index: Index, **values: Any) -> None:
    if not Index.objects.filter(pk=index.pk, fence=index.fence, state=Index.State.BUILDING).update(**values):
        raise Superseded(f"the building of index {index.pk} was stopped or taken away")


def publish(*, index: Index) -> None:
    """Store the folder of a complete index for other machines, where the storage is a bucket."""
    name = f"{STORED}/{index.name}"
    if files.local(name) is None:
        files.publish_folder(indexes.root() / index.name, name)


@transaction.atomic
def finish(*, index: Index, passages: int, size: int, seconds: float) -> None:
    """Record a complete index."""
    over = {"phase": "", "done": 0, "total": 0, "error": "", "claimed_until": None, "pid": None}
    _change(index, state=Index.State.READY, bytes=size, seconds=seconds, **over)
    CorpusFile.objects.filter(pk=index.file_id).update(passages=passages)


def fail(*, index: Index, why: str) -> None:
    """Record that it cannot be built as things are; somebody may ask for it again."""
    _change(index, state=Index.State.FAILED, error=why[:2000], claimed_until=None, pid=None)


@transaction.atomic
def refuse(*, index: Index, where: str, why: str) -> None:
    """Record that nothing can be indexed of this content, and delete it from the storage; `where` is the place."""
    file = CorpusFile.objects.select_for_update().get(pk=index.file_id)
    _change(index, claimed_until=None)
    file.stored, file.problem = False, {"where": where[:400], "why": why[:2000]}
    file.save(update_fields=["stored", "problem"])
    file.indexes.all().delete()
    transaction.on_commit(lambda: default_storage.delete(file.storage_name), robust=True)


@transaction.atomic
def give_back(*, index: Index, why: str = "") -> None:
    """Queue it again: its process died (`why`), or its worker was shut down, which does not count as a try."""
    tries = {} if why else {"tries": index.tries - 1}
    _change(index, state=Index.State.QUEUED, error=why[:2000], claimed_until=None, pid=None, **tries)
    queue.send(queue.BUILD_INDEX, index.pk)


def release(*, index: Index) -> None:
    """Record that the process of a claim has ended, whoever stopped it; others may clear up."""
    Index.objects.filter(pk=index.pk, fence=index.fence).exclude(state=Index.State.BUILDING).update(
        claimed_until=None, pid=None
    )


def place_of(where: str) -> str:
    """Return the place within its file of an error of `training.retrieval`: ` line 7, id`; empty for the whole file."""
    _, separator, place = where.partition(".jsonl line ")
    return f" line {place}" if separator else ""
