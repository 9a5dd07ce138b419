"""Indexes below `indexes/` of PARLEY_HOME: built once per corpus and settings, complete or absent, opened by name.

An index is a folder that contains its passages, so it needs the corpus file no more. Its name is made of the kind and a
hash of the corpus and the settings. Raises `BadInput` for an invalid corpus, an unknown or incomplete index, and one of
another corpus or of other settings than expected.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Annotated

from pydantic import Field

from training import bases
from training.errors import BadInput
from training.reading import Record, Version
from training.retrieval import bm25, corpus, dense, passages
from training.retrieval.base import Progress, Retriever, no_progress
from training.retrieval.bm25 import Bm25Retriever, Bm25Settings
from training.retrieval.dense import DenseRetriever, DenseSettings
from training.store import atomic_directory, dumps, loads, looks_complete, write_json

Settings = Annotated[Bm25Settings | DenseSettings, Field(discriminator="kind")]
INFO = "index.json"
STEP = 2000
"""Passages between two reports of progress."""
OPEN = 8
"""Indexes that a process keeps open: the ones used last."""
_building = threading.Lock()


class IndexInfo(Record):
    """What an index was made of: the name and SHA-256 of the corpus file, the number of its passages, the settings."""

    version: Version = 1
    corpus: str
    corpus_sha256: str
    passages: int = Field(gt=0)
    settings: Settings


def root() -> Path:
    """Return the folder of the indexes."""
    return bases.home() / "indexes"


def build(path: Path, settings: Bm25Settings | DenseSettings, on_progress: Progress = no_progress) -> Path:
    """Return the folder of the index of a corpus file; build it if there is none yet.

    An exception that `on_progress` raises stops the work. Its phases are `checksum` (in bytes), then in passages
    `read`, and `words` and `scores` (three times the passages), or `vectors`. Raises `BadInput` for an invalid corpus,
    and where the folder cannot be written; whatever happens, no part of an unfinished index remains.
    """
    with _building:  # two threads would write the same temporary folder
        before = _state(path)
        checksum = corpus.checksum(path, on_progress)
        folder = root() / name_of(checksum.sha256, settings)
        if not looks_complete(folder):
            try:
                with atomic_directory(folder) as temporary:
                    count = passages.write(temporary, _counted(path, checksum.lines, on_progress))
                    if not count:
                        raise corpus.InvalidCorpus("the file has no passage", str(path))
                    if _state(path) != before:
                        raise BadInput("the file was changed while it was read: start again", str(path))
                    _write(temporary, settings, on_progress)
                    info = IndexInfo(corpus=path.name, corpus_sha256=checksum.sha256, passages=count, settings=settings)
                    write_json(temporary / INFO, info.to_dict())
            except OSError as error:
                raise BadInput(f"the index cannot be written: {error.strerror or error}", str(folder)) from error
    check(folder, checksum.sha256, settings)
    return folder


def name_of(corpus_sha256: str, settings: Bm25Settings | DenseSettings) -> str:
    """Return the name of the index of a corpus with these settings."""
    made_of = dumps({"version": 1, "corpus": corpus_sha256, "settings": settings.to_dict()})
    return f"{settings.kind}-{hashlib.sha256(made_of.encode()).hexdigest()[:16]}"


def _state(path: Path) -> tuple[int, int]:
    """Return what changes when a file is written: its size and time."""
    try:
        stat = path.stat()
    except OSError as error:
        raise BadInput(error.strerror or "cannot be read", str(path)) from error
    return stat.st_size, stat.st_mtime_ns


def _counted(path: Path, lines: int, on_progress: Progress) -> Iterator[corpus.Document]:
    done = 0
    for done, document in enumerate(corpus.read(path), 1):
        yield document
        if done % STEP == 0:
            on_progress(done, max(done, lines), "read")
    on_progress(done, done, "read")


def _write(folder: Path, settings: Bm25Settings | DenseSettings, on_progress: Progress) -> None:
    stored = passages.Passages(folder)
    if isinstance(settings, Bm25Settings):
        bm25.build(folder, stored, settings, on_progress)
    else:
        dense.build(folder, stored, settings, on_progress)


def find(index: str | Path) -> Path:
    """Return the folder of a complete index by its name or path."""
    places = [Path(place).expanduser() for place in (root() / index, index) if bases.is_folder(place)]
    folder = next((place for place in places if (place / INFO).is_file()), None)
    if folder is None:
        raise BadInput("no such index; `python -m training index CORPUS` builds one and prints its name", str(index))
    if not looks_complete(folder):
        raise BadInput("the index is incomplete: delete the folder and build it again", str(folder))
    return folder.resolve()


def names() -> list[str]:
    """Return the names of the complete indexes of PARLEY_HOME, sorted."""
    return sorted(path.parent.name for path in root().glob(f"[!.]*/{INFO}") if looks_complete(path.parent))


def read_info(folder: Path) -> IndexInfo:
    """Return what the index in a folder was made of."""
    path = folder / INFO
    try:
        return IndexInfo.from_dict(loads(path.read_bytes()))
    except (OSError, ValueError) as error:
        raise BadInput(f"cannot be read: {error}", str(path)) from error


def check(folder: Path, corpus_sha256: str | None, settings: Bm25Settings | DenseSettings | None) -> IndexInfo:
    """Return what an index was made of; raise `BadInput` unless it is of this corpus and these settings, if given."""
    info = read_info(folder)
    if corpus_sha256 is not None and corpus_sha256 != info.corpus_sha256:
        why = (
            f"it is the index of another corpus ({info.corpus}, SHA-256 {info.corpus_sha256[:16]}…): build one of yours"
        )
        raise BadInput(why, str(folder))
    if settings is not None and settings != info.settings:
        why = f"the index has other settings ({dumps(info.settings.to_dict())}): build an index with yours"
        raise BadInput(why, str(folder))
    return info


def open_index(
    index: str | Path, *, corpus_file: Path | None = None, settings: Bm25Settings | DenseSettings | None = None
) -> Retriever:
    """Return the retriever of an index, by name or path; with a corpus file or settings, check that it is theirs.

    A process keeps the retrievers of the last `OPEN` indexes; each loads its arrays and model at its first search.
    """
    folder = find(index)
    check(folder, None if corpus_file is None else corpus.checksum(corpus_file).sha256, settings)
    return _opened(folder)


@lru_cache(maxsize=OPEN)
def _opened(folder: Path) -> Retriever:
    settings = read_info(folder).settings
    if isinstance(settings, Bm25Settings):
        return Bm25Retriever(folder, settings)
    return DenseRetriever(folder, settings)
