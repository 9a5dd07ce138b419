"""The lock of a run directory: only one process at a time works on a run.

`lock.json` names the holder (process, host, attempt). The holder renews it every `BEAT_S` seconds while it lives and
deletes it when it ends. A lock is stale once its process is gone from this host, or, on another host, once it was not
renewed for `LEASE_S` seconds. The next process takes over a stale lock. A holder that was suspended and finds another
holder in its lock stops. A supervised attempt takes the lock from an earlier supervised attempt, but never from a
process that a person started.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import secrets
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil

from training.errors import BadInput
from training.rundir import RunDir

log = logging.getLogger(__name__)

BEAT_S = 2.0
LEASE_S = 30.0


@dataclass(frozen=True, slots=True)
class Holder:
    """The process that works on a run. `started` (Unix seconds) distinguishes processes with the same number."""

    host: str
    pid: int
    started: float
    attempt: int
    supervised: bool
    token: str

    @classmethod
    def this_process(cls, attempt: int, *, supervised: bool) -> Holder:
        """Return this process as the holder for an attempt."""
        started = psutil.Process().create_time()
        return cls(socket.gethostname(), os.getpid(), started, attempt, supervised, secrets.token_hex(8))

    def is_alive(self, renewed: float, now: float) -> bool:
        """Return whether the holder still works: its process exists on this host, or its lease has not expired.

        `renewed` and `now` are by the clock that dates files.
        """
        if self.host != socket.gethostname():
            return now - renewed < LEASE_S
        try:
            process = psutil.Process(self.pid)
            same = abs(process.create_time() - self.started) < 1.0
            return bool(same and process.status() != psutil.STATUS_ZOMBIE)  # dead, though its parent has not noticed
        except (psutil.NoSuchProcess, ValueError, OverflowError):
            return False

    def yields_to(self, other: Holder) -> bool:
        """Return whether `other` may take the lock although this holder is alive."""
        return self.supervised and other.supervised and self.attempt < other.attempt


class RunLock:
    """A lock that this process has until it releases or loses it; `hold` acquires it."""

    def __init__(self, path: Path, holder: Holder) -> None:
        self.path, self.holder = path, holder
        self.lost: Callable[[str], None] = lambda _: None
        """Called once, in another thread, with the reason, if another process takes over the lock."""
        self._released = threading.Event()
        self._thread = threading.Thread(target=self._renew, name="run-lock", daemon=True)

    def start(self) -> None:
        """Renew the lock until it is released or lost."""
        self._thread.start()

    def release(self) -> None:
        """Delete the lock if it still exists and belongs to this holder."""
        self._released.set()
        self._thread.join()
        with suppress(FileNotFoundError), _opened(self.path, create=False) as file:
            if _read_holder(file) == self.holder:
                self.path.unlink()

    def _renew(self) -> None:
        while not self._released.wait(BEAT_S):
            try:
                with _opened(self.path, create=False) as file:
                    holder = _read_holder(file)
                    if holder == self.holder:
                        os.utime(file)
                        continue
            except FileNotFoundError:
                holder = None
            except OSError as error:  # of a network's file system, for instance: the lock may still be ours
                log.warning("the lock of the run could not be renewed: %s", error)
                continue
            self.lost("the run directory was taken over" + (f" by {_name(holder)}" if holder else ""))
            return


@contextmanager
def hold(run_dir: RunDir, attempt: int | None = None, *, supervised: bool = False) -> Iterator[RunLock]:
    """Hold a run directory's lock for one attempt, by default the next one.

    Raises `BadInput` with the holder's name, and writes nothing, while another process works on the run.
    """
    path = run_dir.root / "lock.json"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _opened(path) as file:
            other = _read_holder(file)
            number = attempt if attempt is not None else max(run_dir.folders(), default=0) + 1
            holder = Holder.this_process(number, supervised=supervised)
            if (
                other is not None
                and other.is_alive(os.fstat(file).st_mtime, _now(path.parent))
                and not other.yields_to(holder)
            ):
                raise BadInput(
                    f"{_name(other)} is working on this run; stop it first, or wait until it has ended",
                    str(run_dir.root),
                )
            os.ftruncate(file, 0)
            os.pwrite(file, json.dumps(asdict(holder)).encode(), 0)
            os.fsync(file)
    except OSError as error:
        raise BadInput(f"the folder cannot be written to: {error.strerror}", str(run_dir.root)) from error
    lock = RunLock(path, holder)
    lock.start()
    try:
        yield lock
    finally:
        lock.release()


@contextmanager
def _opened(path: Path, *, create: bool = True) -> Iterator[int]:
    """Open and lock the file; while the block runs, no other process can lock or replace the file at `path`."""
    while True:
        # No link is followed: a run directory from somewhere else must not name a file to write to.
        file = os.open(path, os.O_RDWR | os.O_NOFOLLOW | (os.O_CREAT if create else 0), 0o644)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            if _is_at(file, path):
                yield file
                return
        finally:
            os.close(file)


def _now(folder: Path) -> float:
    """Return the time by the clock that dates files here: of a shared folder it may be another machine's."""
    with tempfile.TemporaryFile(dir=folder) as file:
        return os.fstat(file.fileno()).st_mtime


def _is_at(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False


def _read_holder(file: int) -> Holder | None:
    """Return the holder of the lock; None for a file that is new, incompletely written, or no lock."""
    try:
        data: dict[str, Any] = json.loads(os.pread(file, 4096, 0))
        holder = Holder(**data)
    except (ValueError, TypeError, RecursionError):
        return None
    values = {"host": str, "pid": int, "started": float, "attempt": int, "supervised": bool, "token": str}
    return holder if all(type(getattr(holder, name)) is kind for name, kind in values.items()) else None


def _name(holder: Holder) -> str:
    return f"process {holder.pid} on {holder.host} (attempt {holder.attempt})"
