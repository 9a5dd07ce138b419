"""Builds one index: supervises `python -m training index` from start to end, as `worker.supervise` does a run.

The process writes its progress to a file, which is stored with each renewal of the lease. If the index is stopped, or
the lease is lost, the process is killed. If this worker shuts down, the index is queued again. Nothing of an unfinished
index remains.
"""

import logging
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

from django.conf import settings
from django.db import Error, close_old_connections

from training.errors import ParleyError, name_full_disk
from training.retrieval import index as indexes
from training.store import loads, sweep
from webapp.core import children
from webapp.corpora import indexing, services
from webapp.corpora.models import Index
from worker import lifecycle, processes

logger = logging.getLogger(__name__)
T = TypeVar("T")
POLL_SECONDS = 0.25
BEAT_SECONDS = 1.0
LOG_CHARACTERS = 2000


def build(pk: int) -> None:
    """Claim an index that waits, and supervise its process to its end; does nothing if there is nothing to do."""
    index = indexing.claim(pk=pk, host=settings.NODE_NAME)
    if index is None:
        return
    logger.info("index %s: try %s", index.pk, index.tries)
    builder = Builder(index)
    try:
        builder.run()
    except indexing.Superseded as error:
        logger.info("%s", error)
    finally:
        builder.clear()


class Builder:
    """The claim of an index, and the process that builds it."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self.child: processes.Child | None = None
        self.progress: dict[str, Any] = {"phase": "", "done": 0, "total": 0}
        self.progressed_at = time.monotonic()  # when the progress last changed
        self._beat_due = 0.0

    def run(self) -> None:
        """Prepare, start, watch, record the end."""
        if self.index.pid is not None and self.index.pid_started is not None:  # of a worker that is gone
            processes.kill_tree(self.index.pid, self.index.pid_started)
        try:
            indexing.begun(index=self.index)
            with ExitStack() as stack:
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="parley-index-")))
                corpus = self._meanwhile(lambda: stack.enter_context(services.local_copy(self.index.file)))
                self._start(corpus, folder)
                self._watch(folder)
                self._end(folder)
        except (ParleyError, OSError) as error:
            indexing.fail(index=self.index, why=name_full_disk(str(error)))

    def clear(self) -> None:
        """End the process, delete what it left, and release the claim."""
        if self.child is not None:
            self.child.kill()
        if self.index.name:
            sweep(indexes.root(), self.index.name)
        try:
            indexing.release(index=self.index)
            if self.index.built and not Index.objects.filter(name=self.index.name).exists():
                services.delete_folder(self.index.name)
        except (Error, ParleyError) as error:
            logger.warning("index %s: not released: %s", self.index.pk, error)

    def _start(self, corpus: Path, folder: Path) -> None:
        command = [*settings.RUN_COMMAND, "index", str(corpus), "--kind", self.index.kind]
        command += ["--status", str(folder / "status.json")]
        self.child = processes.start(command, folder / "log.txt", children.environment({}, {}))
        indexing.started(index=self.index, pid=self.child.pid, pid_started=self.child.started)

    def _watch(self, folder: Path) -> None:
        """Wait until the process has ended, or is ended because it makes no progress or this worker shuts down."""
        assert self.child is not None
        while self.child.ended() is None:
            self._read(folder)
            self._renew()
            silent = time.monotonic() - self.progressed_at
            if lifecycle.leaving.is_set() or silent > settings.RUN_STALL_MINUTES * 60:
                self.child.kill()
            time.sleep(POLL_SECONDS)
        self._read(folder)

    def _read(self, folder: Path) -> None:
        try:
            progress = loads((folder / "status.json").read_bytes())
        except (OSError, ValueError):
            return
        if progress != self.progress:
            self.progress, self.progressed_at = progress, time.monotonic()

    def _renew(self) -> None:
        """Renew the lease if it is time; a database that is away is waited for until the lease is lost."""
        if time.monotonic() < self._beat_due:
            return
        self._beat_due = time.monotonic() + min(BEAT_SECONDS, settings.RUN_LEASE_SECONDS / 6)
        try:
            counts = {name: int(self.progress.get(name, 0)) for name in ("done", "total")}
            indexing.beat(index=self.index, phase=str(self.progress["phase"]), **counts)
        except Error as error:
            logger.warning("index %s: the database is away: %s", self.index.pk, error)
        finally:
            close_old_connections()

    def _meanwhile(self, work: Callable[[], T]) -> T:
        """Run `work` in a thread while the lease is renewed."""
        return processes.meanwhile(work, self._renew, POLL_SECONDS)

    def _end(self, folder: Path) -> None:
        """Record how the process ended."""
        assert self.child is not None
        code, result = self.child.ended(), self.progress
        if code == 0 and result["phase"] == "finished":
            self._meanwhile(lambda: indexing.publish(index=self.index))
            indexing.finish(
                index=self.index, passages=result["passages"], size=result["bytes"], seconds=result["seconds"]
            )
        elif code == processes.WRONG_INPUT and result.get("invalid"):
            indexing.refuse(index=self.index, where=indexing.place_of(result["where"]), why=result["why"])
        elif code == processes.WRONG_INPUT and "why" in result:
            indexing.fail(index=self.index, why=result["why"])
        elif lifecycle.leaving.is_set():
            indexing.give_back(index=self.index)
        else:
            indexing.give_back(
                index=self.index, why=f"the process ended with code {code}. {_last_words(folder)}".strip()
            )


def _last_words(folder: Path) -> str:
    """The last line that the process printed."""
    try:
        text = (folder / "log.txt").read_text("utf-8", "replace")[-LOG_CHARACTERS:]
    except OSError:
        return ""
    return processes.last_line(text).replace("\x00", "")
