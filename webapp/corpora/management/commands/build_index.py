"""Builds the index of a corpus of the site, or of a file, which becomes one; waits if a worker is building it."""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.files import File
from django.core.management.base import BaseCommand, CommandParser
from django.db import transaction

from training.errors import BadInput
from training.retrieval import index as indexes
from training.retrieval.corpus import InvalidCorpus
from training.store import check_file, looks_complete
from webapp.accounts.services import owner_named
from webapp.corpora import indexing, services
from webapp.corpora.models import Corpus, Index

BEAT_SECONDS = 1.0


class Command(BaseCommand):
    help = (
        "Build the index of a corpus; one that exists is not built again. "
        "Exit codes: 0 the index is there, 2 it is not because something is wrong; an invalid file leaves no corpus."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("corpus", help="name of a corpus of the site, or a JSONL file, which becomes one")
        parser.add_argument("--kind", choices=Index.Kind.values, default=Index.Kind.BM25.value, help="default: bm25")
        parser.add_argument("--name", default="", help="what a file's corpus is called (default: as the file)")
        parser.add_argument("--owner", default="", help="who owns a file's corpus (default: the first admin)")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        began = time.perf_counter()
        try:
            services.check_kind(options["kind"])
            corpus, new = _corpus(options)
            index, built = self._built(corpus, options["kind"], new=new)
        except BadInput as error:
            if options["json"]:
                self.stdout.write(json.dumps({"error": {"kind": "input", "where": error.where, "why": error.why}}))
            self.stderr.write(f"error: {error}")
            sys.exit(2)
        result = {
            "name": index.name,
            "path": str(indexes.root() / index.name),
            "kind": index.kind,
            "corpus": corpus.name,
            "passages": index.file.passages,
            "bytes": index.bytes,
            "seconds": time.perf_counter() - began,
            "built": built,
        }
        size = f"{result['passages']:,} passages, {result['bytes']:,} bytes, {result['seconds']:.1f} s"
        text = f"{index.name}: {size}\n{result['path']}"
        self.stdout.write(json.dumps(result, ensure_ascii=False) if options["json"] else text)

    def _built(self, corpus: Corpus, kind: str, *, new: bool) -> tuple[Index, bool]:
        """Return the index, and whether it was built meanwhile; a `new` corpus is deleted if it is invalid."""
        again, built = not _is_there(corpus, kind), False
        with transaction.atomic():  # so that no worker claims what is asked for here
            index = services.request_index(corpus=corpus, kind=kind, again=again)
            claimed = indexing.claim(pk=index.pk, host=settings.NODE_NAME, at_once=None)
        while True:
            if claimed is not None:
                try:
                    built = self._build(claimed, corpus)
                except InvalidCorpus:
                    if new:
                        services.delete_corpus(corpus=corpus)
                    raise
            corpus = Corpus.objects.select_related("file").get(pk=corpus.pk)
            index = _current(corpus, kind)
            if index.state == Index.State.READY:
                return index, built
            self.stderr.write(f"a worker builds it: {index.phase} {index.done} of {index.total}")
            time.sleep(BEAT_SECONDS)
            built = True
            claimed = indexing.claim(pk=index.pk, host=settings.NODE_NAME, at_once=None)

    def _build(self, index: Index, corpus: Corpus) -> bool:
        """Build a claimed index in this process; return whether there was none; raise `BadInput` if that fails."""
        began, progress = time.perf_counter(), _Progress(self, index)
        try:
            indexing.begun(index=index)
            with services.local_copy(index.file) as path:
                folder = indexes.build(path, indexing.settings_of(index.kind), progress)
            indexing.publish(index=index)
            size = sum(file.stat().st_size for file in folder.rglob("*"))
            passages, seconds = indexes.read_info(folder).passages, time.perf_counter() - began
            indexing.finish(index=index, passages=passages, size=size, seconds=seconds)
        except InvalidCorpus as error:
            place = indexing.place_of(error.where)
            indexing.refuse(index=index, where=place, why=error.why)
            raise InvalidCorpus(error.why, f"{corpus.filename}{place}") from error
        except BadInput as error:
            indexing.fail(index=index, why=str(error))
            raise
        except indexing.Superseded as error:
            raise BadInput("it was stopped on the site", corpus.name) from error
        except KeyboardInterrupt:
            services.stop_index(corpus=corpus, kind=index.kind)
            raise
        finally:
            indexing.release(index=index)
        return progress.built


class _Progress:
    """Renews the lease, and prints about ten lines per phase."""

    def __init__(self, command: Command, index: Index) -> None:
        self._command, self._index = command, index
        self._printed, self._beaten = ("", 0), 0.0
        self.built = False  # whether there was more to do than to read the checksum

    def __call__(self, done: int, total: int, phase: str) -> None:
        self.built |= phase != "checksum"
        if time.monotonic() - self._beaten >= BEAT_SECONDS:
            self._beaten = time.monotonic()
            indexing.beat(index=self._index, phase=phase, done=done, total=total)
        tenth = 10 * done // total if total else 10
        if self._printed != (phase, tenth):
            self._printed = (phase, tenth)
            self._command.stderr.write(f"{phase}: {done} of {total}")


def _corpus(options: dict[str, Any]) -> tuple[Corpus, bool]:
    """Return the corpus, and whether it was made of a file just now."""
    rows = Corpus.objects.select_related("file")
    corpus = rows.filter(name=options["corpus"]).first()
    if corpus is not None:
        return corpus, False
    path = Path(options["corpus"])
    if not path.exists():
        raise BadInput("neither a corpus of the site nor a file is called like this", options["corpus"])
    check_file(path)
    name = options["name"] or re.sub(r"[^-a-zA-Z0-9_]+", "-", path.stem).strip("-")[:80]
    with path.open("rb") as opened:
        content = services.content_of(File(opened), path.name)
        same = rows.filter(name=name, file__sha256=content.sha256).first()
        if same is not None:
            return same, False
        try:
            owner = owner_named(options["owner"])
            return services.create(owner=owner, name=name, content=content, kinds=(), limited=False), True
        except BadInput as error:
            raise BadInput(error.why, "--name" if error.where == "name" else error.where) from error


def _is_there(corpus: Corpus, kind: str) -> bool:
    """Whether the index is recorded as ready, and its folder is complete."""
    index = corpus.index(kind)
    return index is not None and index.state == Index.State.READY and looks_complete(indexes.root() / index.name)


def _current(corpus: Corpus, kind: str) -> Index:
    """Return the index as it is now; raise `BadInput` if nobody will build it."""
    index = corpus.index(kind)
    if index is None:
        raise BadInput(corpus.problem or "it was deleted on the site", corpus.name)
    if index.state in {Index.State.FAILED, Index.State.STOPPED}:
        raise BadInput(index.error or "it was stopped on the site", corpus.name)
    return index
