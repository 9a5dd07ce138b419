"""Writes of corpora: upload, index, stop, share, delete. Workers' writes are in `indexing`."""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from django.conf import settings
from django.core.files import File
from django.core.files.storage import default_storage
from django.db import IntegrityError, transaction
from django.db.models import Sum

from training.errors import BadInput
from training.retrieval import dense
from training.retrieval import index as indexes
from training.store import MANIFEST, looks_complete, sweep
from webapp.accounts.models import User
from webapp.core import files, queue, quotas
from webapp.corpora.models import Corpus, CorpusFile, Index

MAX_BYTES = 2 * 2**30
"""Larger uploads are refused; `manage.py build_index` takes larger files."""
MEBIBYTE = 2**20
LONGEST_NAME = 150
SLUG = re.compile(r"[-a-zA-Z0-9_]+")
RESERVED = frozenset({"upload"})
"""Names that are addresses of the site."""
INDEX_NAME = re.compile(r"(bm25|dense)-[0-9a-f]{16}")
"""What a run would take for the name of an index."""
BLOCK = 2**20
UPLOAD_S = 86_400.0
"""No request takes this many seconds."""
STORED = "indexes"
"""The folder of indexes in the storage, where that is a bucket."""
_fetching = threading.Lock()


class Content(NamedTuple):
    """The content of a new corpus: an open file, its name, hash and size."""

    file: File[Any]
    filename: str
    sha256: str
    bytes: int


def content_of(file: File[Any], filename: str) -> Content:
    """Read an open file once, for its hash."""
    digest, size = hashlib.sha256(), 0
    file.seek(0)
    while block := file.read(BLOCK):
        digest.update(block)
        size += len(block)
    return Content(file, Path(filename or "corpus.jsonl").name[-LONGEST_NAME:], digest.hexdigest(), size)


def check_name(name: str, by: User) -> None:
    """Raise `BadInput` unless `by` may give a new corpus this name: that of a refused one of theirs is free again."""
    if not SLUG.fullmatch(name) or len(name) > 80 or name in RESERVED:
        raise BadInput("letters, digits, hyphens and underscores only, at most 80, and not upload", "name")
    if INDEX_NAME.fullmatch(name):
        raise BadInput("indexes are called like this; choose another name", "name")
    if Corpus.objects.filter(name=name).exclude(pk__in=_refused(name, by)).exists():
        raise BadInput(f"a corpus named {name!r} exists already; choose another name", "name")


def _refused(name: str, by: User) -> Any:
    return Corpus.objects.filter(name=name, owner=by).exclude(file__problem={}).values("pk")


def check_upload(size: int) -> None:
    """Raise `BadInput` for a file that is too large to be uploaded."""
    if size > MAX_BYTES:
        most = MAX_BYTES // MEBIBYTE
        raise BadInput(f"at most {most} MiB; `manage.py build_index FILE` takes larger files on the machine", "file")


def check_kind(kind: str, field: str = "kind") -> None:
    """Raise `BadInput` for an index that this installation cannot build; `field` is the one that names it."""
    if kind not in Index.Kind.values:
        raise BadInput(f"there is no index of kind {kind!r}: choose {' or '.join(Index.Kind.values)}", field)
    if kind == Index.Kind.DENSE and not dense.installed():
        raise BadInput(f"dense retrieval is not installed; {dense.INSTALL}", field)


def create(
    *,
    owner: User,
    name: str,
    content: Content,
    kinds: Sequence[str] = (Index.Kind.BM25,),
    source: str = "",
    licence: str = "",
    private: bool = False,
    limited: bool = True,
) -> Corpus:
    """Store a corpus and queue the building of its indexes; raise `BadInput` if that may not be.

    Content that is stored already is not stored again, and an index that exists is not built again. `limited`: whether
    the owner's quotas count.
    """
    check_name(name, owner)
    for kind in kinds:
        check_kind(kind, "kinds")
    fields = {"owner": owner, "filename": content.filename, "source": source, "licence": licence, "private": private}
    while True:
        # The row comes first, so that no failure leaves a file without a row.
        CorpusFile.objects.get_or_create(sha256=content.sha256, defaults={"bytes": content.bytes})
        try:
            return _create(name, content, kinds, fields, limited=limited)
        except CorpusFile.DoesNotExist:  # forgotten in between, with the last corpus of the same content
            continue


@transaction.atomic
def _create(name: str, content: Content, kinds: Sequence[str], fields: dict[str, Any], *, limited: bool) -> Corpus:
    owner: User = fields["owner"]
    if limited:
        _check_quotas(owner, content.bytes)
    file = CorpusFile.objects.select_for_update().get(sha256=content.sha256)
    for refused in Corpus.objects.filter(pk__in=_refused(name, owner)):
        _delete(refused)
    if not file.stored:
        default_storage.delete(file.storage_name)  # of a try that failed
        content.file.seek(0)
        default_storage.save(file.storage_name, content.file)
        file.stored, file.problem = True, {}
        file.save(update_fields=["stored", "problem"])
    try:
        with transaction.atomic():
            corpus = Corpus.objects.create(name=name, file=file, **fields)
    except IntegrityError as error:
        raise BadInput(f"a corpus named {name!r} exists already; choose another name", "name") from error
    for kind in kinds:
        _request(file, kind)
    return corpus


def _check_quotas(owner: User, size: int) -> None:
    owned = Corpus.objects.filter(owner=owner)
    quotas.check(user=owner, quota="corpora", used=owned)
    quotas.spend(user=owner, quota="corpora_per_hour")
    total = (owned.aggregate(total=Sum("file__bytes"))["total"] or 0) + size
    quotas.refuse_above(user=owner, quota="corpus_mebibytes", count=-(-total // MEBIBYTE))


@transaction.atomic
def request_index(*, corpus: Corpus, kind: str, again: bool = True) -> Index:
    """Queue the building of an index; raise `BadInput` if it cannot be built. One that is being built goes on.

    `again`: also if it is ready, for its folder may be gone; where it is not, there is nothing to do.
    """
    check_kind(kind)
    file = CorpusFile.objects.select_for_update().get(pk=corpus.file_id)
    if not file.stored:
        raise BadInput(corpus.problem or "its file is gone; upload it again", corpus.name)
    return _request(file, kind, again=again)


def _request(file: CorpusFile, kind: str, *, again: bool = False) -> Index:
    """The index, queued if it is new or ended badly, and `again`, too, if it is ready."""
    index, _ = Index.objects.select_for_update().get_or_create(file=file, kind=kind)
    if index.state in {Index.State.STOPPED, Index.State.FAILED} or (again and index.state == Index.State.READY):
        index.state, index.tries, index.error = Index.State.QUEUED, 0, ""
        index.phase, index.done, index.total = "", 0, 0
        index.save(update_fields=["state", "tries", "error", "phase", "done", "total"])
    if index.state == Index.State.QUEUED:
        queue.send(queue.BUILD_INDEX, index.pk)
    return index


@transaction.atomic
def stop_index(*, corpus: Corpus, kind: str) -> None:
    """Stop the building of an index; its worker ends the process and clears up. One that is over stays as it is."""
    worked_at = Index.objects.filter(file=corpus.file_id, kind=kind, state__in=["queued", "building"])
    worked_at.update(state=Index.State.STOPPED)


@transaction.atomic
def share(*, corpus: Corpus, private: bool) -> None:
    """Set whether only the owner and administrators see a corpus. Runs that name it go on."""
    Corpus.objects.filter(pk=corpus.pk).update(private=private)


@transaction.atomic
def delete_corpus(*, corpus: Corpus) -> None:
    """Delete a corpus, and its file and indexes with the last corpus of the same content.

    Raises `BadInput` while a run that searches it is not over. Runs that are over keep its name and hash.
    """
    _delete(corpus)


def _delete(corpus: Corpus) -> None:
    """Delete the row, and forget its file after the commit. Waits for a run that is being created with it."""
    Corpus.objects.select_for_update().filter(pk=corpus.pk).first()
    if run := corpus.runs.alive().order_by("pk").first():
        advice = "" if corpus.private else "; make it private, so that nobody else starts another"
        why = f"the run {run} searches it and is {run.state}: wait until it is over, or have it stopped{advice}"
        raise BadInput(why, corpus.name)
    corpus.delete()
    transaction.on_commit(partial(forget, pk=corpus.file_id), robust=True)


def forget_unused() -> int:
    """Clock step: forget the files without corpora that remain, because a worker was busy or an upload failed."""
    return sum(forget(pk=pk) for pk in list(CorpusFile.objects.unused().values_list("pk", flat=True)))


def forget_uploads() -> int:
    """Clock step: delete what the site wrote of requests that it never finished; return the number of files."""
    if not settings.UPLOADS_ROOT.is_dir():
        return 0
    old = [path for path in settings.UPLOADS_ROOT.iterdir() if path.stat().st_mtime < time.time() - UPLOAD_S]
    for path in old:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    return len(old)


@transaction.atomic
def forget(*, pk: int) -> bool:
    """Delete a file without corpora from the storage, with its indexes; return whether that was done.

    The row goes last. A worker that builds an index is asked to stop, and the clock tries again.
    """
    file = CorpusFile.objects.select_for_update(skip_locked=True).unused().filter(pk=pk).first()
    if file is None:
        return False
    if file.indexes.claimed().exists():
        file.indexes.filter(state=Index.State.BUILDING).update(state=Index.State.STOPPED)
        return False
    default_storage.delete(file.storage_name)
    for name in file.indexes.filter(built=True).values_list("name", flat=True):
        delete_folder(name)
    file.delete()
    return True


def delete_folder(name: str) -> None:
    """Delete the folder of an index here and in the storage, with what a killed process left of it."""
    folder = indexes.root() / name
    sweep(folder.parent, name)
    shutil.rmtree(folder, ignore_errors=True)
    files.delete_folder(f"{STORED}/{name}")


def local_folder(index: Index, *, wait: bool = False) -> Path:
    """Return the folder of a complete index on this machine, fetched from the storage if that is a bucket.

    Raises `BadInput` if it is gone, or another is being fetched, unless this may `wait` for that.
    """
    folder = indexes.root() / index.name
    if looks_complete(folder):
        return folder
    name = f"{STORED}/{index.name}"
    if files.local(name) is None and default_storage.exists(f"{name}/{MANIFEST}"):
        if not _fetching.acquire(blocking=wait):
            raise BadInput("an index is being copied to this machine: try again in a minute", index.name)
        try:
            return files.fetch_folder(name, folder)
        finally:
            _fetching.release()
    raise BadInput("the files of the index are gone: build it again", index.name)


def pieces(file: CorpusFile) -> Generator[bytes, None, None]:
    """Yield the bytes of a stored file, as it was uploaded."""
    with default_storage.open(file.storage_name) as stored:
        while block := stored.read(BLOCK):
            yield block


@contextmanager
def local_copy(file: CorpusFile) -> Iterator[Path]:
    """Yield the path of a stored file: itself, or a copy that is deleted afterwards if the storage is a bucket.

    Raises `BadInput` if it is gone.
    """
    if not default_storage.exists(file.storage_name):
        raise BadInput("the file of the corpus is gone; delete the corpus and upload it again")
    stored = files.local(file.storage_name)
    if stored is not None:
        yield stored
        return
    with tempfile.TemporaryDirectory(prefix="parley-corpus-") as folder:
        copy = Path(folder) / Path(file.storage_name).name
        with default_storage.open(file.storage_name) as source, copy.open("wb") as target:
            shutil.copyfileobj(source, target, BLOCK)
        yield copy
