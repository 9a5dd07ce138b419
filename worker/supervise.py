"""Supervises one run's process from start to end, for every kind of run.

The supervisor renews the lease; the process's `status.json` shows its progress. If the attempt loses its lease, the
process is killed and nothing is written. If this worker shuts down, the process saves and the run is queued again. If
the database or the storage is unavailable, the process continues, and its output is stored later; an event reports the
storage, and output that the database refuses. A checkpoint that the process prunes before it is published is skipped.
"""

import logging
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, TypeVar

from django.conf import settings
from django.db import DataError, Error, IntegrityError, close_old_connections

from training.cluster.processes import delete_leftovers
from training.errors import ParleyError, name_full_disk
from training.rundir import AttemptDir, RunDir
from training.store import loads, sweep, write_json
from webapp.core import children, files
from webapp.runs import attempts, batches
from webapp.runs.models import Attempt, Run
from worker import lifecycle, processes, publishing
from worker.kinds import KINDS, Kind, Launch, code_version
from worker.serving import Serving
from worker.tail import Tail, clean

logger = logging.getLogger(__name__)
T = TypeVar("T")
ALL_KINDS: dict[str, Kind] = {**KINDS, "serve": Serving()}
POLL_SECONDS = 0.5
STOP_SECONDS = 24.0  # from the request to stop until SIGTERM; the kill follows four seconds later
KILL_SECONDS = 28.0
MICRO_BATCH_SECONDS = 300.0  # without progress, for a process that learns: it hears a stop after a micro-batch
UNSAVED = ("learning", "syncing", "evaluating")  # phases from a step's first micro-batch until it is saved
RETRY_SECONDS = 10.0  # from a failure of the storage until the next try
UNSTORED = "a part of the output could not be stored; it is kept in the run directory and stored on resuming"
RESULTS = ("evaluation.json", "suite.json")


def supervise(run_id: int) -> None:
    """Claim a queued run and supervise it to its end; does nothing if it is not queued."""
    attempt = attempts.claim(run_id=run_id, worker=lifecycle.identity(), host=settings.NODE_NAME)
    if attempt is None:
        return
    run = Run.objects.select_related("dataset_version", "start_checkpoint", "opponent_checkpoint").get(pk=run_id)
    logger.info("run %s: attempt %s", run.pk, attempt.number)
    try:
        Supervisor(run, attempt, ALL_KINDS[run.kind]).run()
    except attempts.Superseded as error:
        logger.warning("%s", error)


class Source(NamedTuple):
    """An attempt whose files are read, with the function that reads the next batch."""

    attempt: Attempt
    tail: Tail
    read: Callable[[], batches.Batch]


class Supervisor:
    """One attempt's process and its last known state."""

    def __init__(self, run: Run, attempt: Attempt, kind: Kind) -> None:
        self.job, self.attempt, self.kind = run, attempt, kind
        self.name = f"runs/{run.pk}"
        self.folder = RunDir(settings.RUNS_ROOT / str(run.pk))
        self.status: dict[str, Any] = {}
        self.child: processes.Child | None = None
        self.progressed_at = time.monotonic()  # when the status last changed, by our own clock
        self.asked_at: float | None = None
        self.reason = ""
        self._interrupted = False
        self._recorded = False  # whether the database knows of the process
        self._undelivered = False  # whether the status has changed since it was last stored
        self._beat_due = 0.0
        self.storage_error = ""  # of a storage that fails since `_failing_since`
        self._failing_since = self._retry_at = 0.0
        self._warning = ""  # not stored yet

    def run(self) -> None:
        """Prepare, start, watch, close."""
        try:
            launch = self._prepare()
            if launch is None:  # the run is to stop before there was a process
                self._end(None if self.reason else Run.State.STOPPED, self.reason)
                return
            environment = children.environment(launch.secrets, launch.environment)
            self.child = processes.start(launch.command, self.files.log, environment)
        except (ParleyError, OSError) as error:
            self._end(Run.State.FAILED, name_full_disk(str(error)))
            return
        self.progressed_at = time.monotonic()
        try:
            self._watch(self.child)
            self._close()
        finally:
            self.child.kill()
            delete_leftovers()

    def _prepare(self) -> Launch | None:
        """Prepare the run directory, and find out where the process will start and what is to be stored.

        None: the run is to stop.
        """
        self.files = self._new_folder()
        self._meanwhile(self._clear_leftovers)
        launch = self._meanwhile(self._launch)
        if launch is None or self.asked_at is not None:
            return None
        self.secrets = launch.secrets
        latest = self._meanwhile(self.folder.latest_checkpoint)
        self.start_step = latest[0] if latest else 0
        self.sources = self._sources()
        return launch

    def _launch(self) -> Launch | None:
        """Prepare what the process needs, or return None if the run is to stop.

        A storage that fails is read again, for as long as a process may be without progress; then `StorageError`.
        """
        began, failed = time.monotonic(), False
        while self.asked_at is None:
            try:
                return self.kind.prepare(self.job, self.folder, self.attempt.number)
            except files.StorageError as error:
                if time.monotonic() - began > settings.RUN_STALL_MINUTES * 60:
                    raise
                if not failed:
                    self._warning = clean(f"the storage cannot be read; it is tried again: {error}")
                failed = True
            time.sleep(RETRY_SECONDS)
        return None

    def _new_folder(self) -> AttemptDir:
        """Create the attempt's folder under the first free number.

        Folders with numbers unknown to the site are foreign. They are listed, so that the process does not resume from
        their checkpoints.
        """
        number = self.attempt.number
        while True:
            files = self.folder.attempt(number)
            try:
                files.root.mkdir(parents=True)
                break
            except FileExistsError:
                number += 1
        if number != self.attempt.number:
            attempts.renumber(attempt=self.attempt, number=number)
        known_numbers = set(self.job.attempts.values_list("number", flat=True))
        foreign = [number for number in self.folder.folders() if number not in known_numbers]
        if foreign or self.folder.ignored.exists():
            write_json(self.folder.ignored, {"attempts": foreign})
        return files

    def _meanwhile(self, work: Callable[[], T]) -> T:
        """Run `work` in a thread while the lease is renewed and stops are enforced."""
        return processes.meanwhile(work, self._keep_up, self._beat_seconds())

    def _keep_up(self) -> None:
        try:
            self._renew()
        except Error as error:
            logger.warning("run %s: the database is away: %s", self.job.pk, error)
        except attempts.Superseded:
            if self.child is not None:
                self.child.kill()  # now: the thread may take long to end
            raise
        self._enforce_stop()

    @staticmethod
    def _beat_seconds() -> float:
        return float(min(2.0, settings.RUN_LEASE_SECONDS / 6))

    def _clear_leftovers(self) -> None:
        """Kill processes and delete partial checkpoints that earlier attempts of this run left on this host.

        The process of an attempt that ended has ended, so that its id may be another's by now.
        """
        earlier = self.job.attempts.filter(host=settings.NODE_NAME, number__lt=self.attempt.number, pid__isnull=False)
        for number, state, pid, started in earlier.values_list("number", "state", "pid", "pid_started"):
            if state != Attempt.State.ENDED and pid is not None and started is not None:
                processes.kill_tree(pid, started)
            sweep(self.folder.attempt(number).root / "checkpoints", "step_*")

    def _tail(self, attempt: Attempt) -> Tail:
        name = f"{self.name}/attempts/{attempt.number:04d}"
        return Tail(self.folder.attempt(attempt.number), name, self.job.pk, self.secrets, attempt.offsets)

    def _sources(self) -> list[Source]:
        """What is to be stored, in this order: the rest of what earlier attempts wrote, and what this one writes.

        Earlier attempts may have gone on after their worker had ended, and this one may start from their checkpoint. It
        stores their files under its own fence, which overwrites what any attempt stored. So each is read only up to the
        step from which a later one began.
        """
        limits = self.job.attempts.valid_steps(before=self.attempt.number)
        sources = []
        for earlier in self.job.attempts.filter(number__in=limits).order_by("number"):
            tail, limit = self._tail(earlier), min(limits[earlier.number], self.start_step)
            sources.append(Source(earlier, tail, partial(tail.read_up_to, limit)))
        tail = self._tail(self.attempt)
        tail.holds_back = True
        return [*sources, Source(self.attempt, tail, tail.read)]

    def _watch(self, child: processes.Child) -> None:
        """Watch the process until it has ended."""
        while child.ended() is None:
            self._try(self._poll)
            self._enforce_stop()
            time.sleep(POLL_SECONDS)

    def _try(self, work: Callable[[], None]) -> bool:
        """Do `work`; return whether neither the database nor the storage failed."""
        try:
            work()
        except (DataError, IntegrityError, files.StorageError, OSError) as error:
            why = clean(name_full_disk(str(error)))
            logger.warning("run %s: its output cannot be stored: %s", self.job.pk, why)
            if not self.storage_error:
                self._failing_since = time.monotonic()
                self._warning = f"the output cannot be stored; it is tried again: {why}"
            self.storage_error, self._retry_at = why, time.monotonic() + RETRY_SECONDS
            return False
        except Error as error:
            logger.warning("run %s: the database is away: %s", self.job.pk, error)
            return False
        finally:
            close_old_connections()
        return True

    def _poll(self) -> None:
        """Renew the lease, and store what is new until it is to be renewed again."""
        self._renew()
        if time.monotonic() < self._retry_at:
            return
        while self._store_next() and time.monotonic() < self._beat_due:
            pass
        self.storage_error = ""

    def _renew(self) -> None:
        """Renew the lease and deliver the status, if it is time or the status has changed.

        The status is read first, so that the process's progress is seen even if the database is unavailable.
        """
        self._undelivered |= self._read_status()
        if self.child is not None and not self._recorded:
            attempts.started(
                attempt=self.attempt,
                pid=self.child.pid,
                pid_started=self.child.started,
                start_step=self.start_step,
                code_version=code_version(),
            )
            self._recorded = True
        if self._warning:
            attempts.warn(attempt=self.attempt, why=self._warning)
            self._warning = ""
        if not self._undelivered and time.monotonic() < self._beat_due:
            return
        if attempts.beat(attempt=self.attempt, status=self.status):
            self._ask_to_stop("")
        self._beat_due = time.monotonic() + self._beat_seconds()
        if self._undelivered:
            self.kind.on_status(self.job, self.status)
            self._undelivered = False

    def _store_next(self) -> bool:
        """Store the next batch; return whether another may follow. A log that has grown does not count."""
        attempt, tail, read = self.sources[0]
        batch = read()
        if batch:
            self._store(batch, tail, attempt)
        if batch.offsets:
            return True
        if len(self.sources) == 1:
            return False
        self.sources.pop(0)
        return True

    def _store(self, batch: batches.Batch, tail: Tail, source: Attempt) -> None:
        batch.checkpoints = self._unpublished(batch.checkpoints)
        played = publishing.unreadable(batch, tail)
        if batch.checkpoints or played:
            self._meanwhile(lambda: publishing.publish(batch, played))
        attempts.record(attempt=self.attempt, batch=batch, source=source)
        tail.done(batch)

    def _unpublished(self, checkpoints: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Those that are not in the storage: what was fetched from there is."""
        known = set(self.job.checkpoints.values_list("name", "sha256")) if checkpoints else set()
        return [checkpoint for checkpoint in checkpoints if (checkpoint["name"], checkpoint["sha256"]) not in known]

    def _read_status(self) -> bool:
        """Whether `status.json` has changed."""
        try:
            status = clean(loads(self.files.status.read_text()))
        except (OSError, ValueError):
            return False
        if status == self.status:
            return False
        self.status, self.progressed_at = status, time.monotonic()
        return True

    def _ask_to_stop(self, reason: str) -> None:
        """Forward a request to stop, once; `reason` is set if the run is to be queued again afterwards."""
        if self.asked_at is None:
            self.asked_at, self.reason = time.monotonic(), reason
            with suppress(OSError):  # a full disk: a signal follows
                self.files.ask("stop")

    def _enforce_stop(self) -> None:
        """Enforce a request to stop, and kill a process that makes no progress."""
        if self.child is not None and self.child.ended() is not None:
            return
        if lifecycle.leaving.is_set():
            self._ask_to_stop("the worker was shut down")
        if self.child is None:
            return
        if lifecycle.leaving.is_set():
            self.child.let_go()
        silent = time.monotonic() - self.progressed_at
        if silent > settings.RUN_STALL_MINUTES * 60:
            self.reason = f"no progress for {silent:.0f} s in phase {self.status.get('phase', 'starting')}"
            self.child.kill()
        if self.asked_at is None:
            return
        waited = time.monotonic() - self.asked_at
        if waited > KILL_SECONDS and not self._may_finish(silent):
            self.child.kill()
        elif waited > STOP_SECONDS and not self._interrupted:  # a second signal would end it while it saves
            self._interrupted = True
            self.child.interrupt()

    def _may_finish(self, silent: float) -> bool:
        """Whether a process that was requested to stop may take longer: what it has learned is not saved yet.

        Weights of tens of GiB are saved in minutes, and sent and measured before. Whoever ends the worker does not wait
        for any of it.
        """
        phase = self.status.get("phase")
        finishes = phase == "saving" or (phase in UNSAVED and silent < MICRO_BATCH_SECONDS)
        return finishes and not lifecycle.leaving.is_set()

    def _close(self) -> None:
        """Store the rest and record the end.

        Waits for an unavailable database until the attempt is lost. A failing storage is given as long as a process
        without progress, but only one more try if the run or the worker is to stop.
        """
        self._retry_at = 0.0
        while not (self._try(self._renew) and time.monotonic() >= self._retry_at and self._try(self._store_rest)):
            has_time = self.asked_at is None and not lifecycle.leaving.is_set()
            patience = settings.RUN_STALL_MINUTES * 60 if has_time else 0.0
            if self._retry_at and time.monotonic() - self._failing_since > patience:
                break
            time.sleep(POLL_SECONDS)
        while not self._try(self._record_end):
            time.sleep(POLL_SECONDS)

    def _store_rest(self) -> None:
        self.sources[-1].tail.holds_back = False  # its files grow no more
        while self._store_next():
            self._renew()
        self._meanwhile(self._publish_rest)
        self.storage_error = ""

    def _publish_rest(self) -> None:
        for path in sorted((self.files.root / "episodes").glob("step_*.gz")):
            files.publish_file(path, f"{self.sources[-1].tail.name}/episodes/{path.name}")

    def _record_end(self) -> None:
        code = self.child.ended() if self.child else None
        result, reason = self._outcome(code)
        if self.storage_error and result in {Run.State.SUCCEEDED, Run.State.STOPPED}:
            result = None if lifecycle.leaving.is_set() else Run.State.FAILED  # None: the next attempt stores it
            reason = f"{UNSTORED}: {self.storage_error}"
        self._end(result, reason, code, self._evaluation())

    def _end(self, result: str | None, reason: str, code: int | None = None, evaluation: Any = None) -> None:
        """Record the end of the attempt, and that of the run if it has a result."""
        if result is None:
            died = self.asked_at is None or not self.reason
            attempts.give_back(attempt=self.attempt, exit_code=code, why=reason, died=died)
        else:
            attempts.finish(attempt=self.attempt, state=result, exit_code=code, error=reason, result=evaluation)
        self.kind.on_end(self.job, "" if result in {Run.State.STOPPED, Run.State.SUCCEEDED} else reason)

    def _evaluation(self) -> Any:
        """The result of a head-to-head or of a suite with its conditions; None if there is none."""
        for name in RESULTS:
            with suppress(OSError, ValueError):
                return clean(loads((self.files.root / name).read_text()))
        return None

    def _outcome(self, code: int | None) -> tuple[str | None, str]:
        """The run's end state (None: queue it again) and the reason."""
        last_status: Mapping[str, Any] = self.status if self.status.get("phase") == "finished" else {}
        reason = str(last_status.get("why", ""))
        if last_status.get("result") == "succeeded" and code == 0:
            return Run.State.SUCCEEDED, ""
        if last_status.get("result") == "failed" or code == processes.WRONG_INPUT:
            return Run.State.FAILED, reason or self._last_words()
        if last_status.get("result") == "interrupted":
            return None, reason
        if self.reason:
            return None, self.reason
        if self.asked_at is not None:
            return Run.State.STOPPED, ""
        if last_status.get("result") == "stopped":  # a rule of its own configuration
            return Run.State.STOPPED, reason
        return None, f"the process ended with code {code}. {self._last_words()}".strip()

    def _last_words(self) -> str:
        """The last line that the process printed."""
        log = Attempt.objects.values_list("log", flat=True).get(pk=self.attempt.pk)
        return processes.last_line(log)[:2000]
