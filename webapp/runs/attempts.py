"""Writes of a supervising worker about its attempt. Every write locks the run's row and checks the fence.

A worker claims a queued run, which creates an attempt with the next fence and a lease by the database's clock. Once the
lease has lapsed or another attempt has begun, every function here raises `Superseded` and writes nothing.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Count, Max
from django.db.models.functions import Now

from training.attempts.attempt import TRIES
from webapp.core import queue
from webapp.runs import batches
from webapp.runs.alerts import services as alerts
from webapp.runs.models import Attempt, Event, Run
from webapp.runs.querysets import RunQuerySet
from webapp.runs.summaries import keymetric

LIVE = (Attempt.State.CLAIMED, Attempt.State.RUNNING)
HINT_SECONDS = 15.0  # between two hints for a run that waits
SERVE_HINT_SECONDS = 3.0


class Superseded(Exception):
    """The attempt has lost its lease: its process must be killed and nothing more written."""


def _lease() -> Any:
    return Now() + timedelta(seconds=settings.RUN_LEASE_SECONDS)


def _bounded() -> None:
    """Let the database end this transaction if this process freezes, so that its locks do not outlive the lease."""
    with connection.cursor() as cursor:
        patience = int(settings.RUN_LEASE_SECONDS * 500)
        cursor.execute(f"SET LOCAL idle_in_transaction_session_timeout = {patience}")


@transaction.atomic
def claim(*, run_id: int, worker: str, host: str) -> Attempt | None:
    """Claim a queued run; None if it is not queued or being claimed, however often its message is delivered.

    A model server is not claimed if this node serves `SERVE_SLOTS` models already.
    """
    _bounded()
    run = Run.objects.select_for_update(skip_locked=True).filter(pk=run_id).first()
    if run is None or run.state != Run.State.QUEUED:
        return None
    if run.kind == Run.Kind.SERVE and not _has_serve_slot(host):
        return None
    last = run.attempts.aggregate(number=Max("number"), fence=Max("fence"))
    attempt = Attempt.objects.create(
        run=run,
        number=(last["number"] or 0) + 1,
        fence=(last["fence"] or 0) + 1,
        worker=worker,
        host=host,
        lease_until=_lease(),
    )
    run.state, run.started_at = Run.State.STARTING, run.started_at or Now()
    run.ended_at, run.error = None, ""
    run.save(update_fields=["state", "started_at", "ended_at", "error"])
    attempt.refresh_from_db()
    return attempt


def _has_serve_slot(host: str) -> bool:
    """Whether the node has a free slot. Its other claims wait until this transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"serve slots of {host}"])
    return Attempt.objects.live().filter(host=host, run__kind=Run.Kind.SERVE).count() < settings.SERVE_SLOTS


def _lock(attempt: Attempt) -> tuple[Attempt, Run]:
    """The attempt and its run, locked; raises `Superseded` if the attempt is not the run's live and newest one."""
    _bounded()
    run = Run.objects.select_for_update().filter(pk=attempt.run_id).first()
    locked = Attempt.objects.select_for_update().filter(pk=attempt.pk, state__in=LIVE).first()
    if run is None or locked is None or run.attempts.filter(fence__gt=attempt.fence).exists():
        raise Superseded(f"attempt {attempt.number} of run {attempt.run_id} was taken away")
    return locked, run


@transaction.atomic
def renumber(*, attempt: Attempt, number: int) -> None:
    """Give the attempt a higher number, because its folder already exists."""
    locked, run = _lock(attempt)
    why = f"the folder of attempt {attempt.number} was made outside the site and is ignored: this is attempt {number}"
    locked.number = attempt.number = number
    locked.save(update_fields=["number"])
    Event.objects.create(run=run, attempt=locked, at=Now(), kind="warning", data={"why": why})


@transaction.atomic
def started(*, attempt: Attempt, pid: int, pid_started: float, start_step: int, code_version: str) -> None:
    """Record that the process runs from `start_step` on, and delete what earlier attempts wrote above it.

    Conversations above that step are played again under the same numbers; an event reports judgments deleted with them.
    """
    locked, run = _lock(attempt)
    locked.pid, locked.pid_started, locked.start_step = pid, pid_started, start_step
    locked.state, locked.lease_until = Attempt.State.RUNNING, _lease()
    locked.save(update_fields=["pid", "pid_started", "start_step", "state", "lease_until"])
    run.metrics.filter(step__gt=start_step, fence__lt=locked.fence).delete()
    superseded = run.episodes.filter(step__gt=start_step, fence__lt=locked.fence)
    if judgment_count := superseded.aggregate(lost=Count("judgments"))["lost"]:
        why = f"judgments of conversations above step {start_step} were deleted ({judgment_count}): they are replayed"
        Event.objects.create(run=run, attempt=locked, at=Now(), kind="warning", data={"why": why})
    superseded.delete()
    run.step, run.code_version = start_step, code_version
    run.sparkline = keymetric.cut(run.sparkline, start_step)
    run.save(update_fields=["step", "code_version", "sparkline"])


@transaction.atomic
def beat(*, attempt: Attempt, status: dict[str, Any]) -> bool:
    """Renew the lease and store the process's status; return whether the run was asked to stop."""
    locked, run = _lock(attempt)
    locked.lease_until, locked.status = _lease(), status
    if status:
        locked.phase = str(status.get("phase", ""))[:40]
        locked.progressed_at = batches.moment(float(status.get("at", 0)))
    locked.save(update_fields=["lease_until", "status", "phase", "progressed_at"])
    if run.state == Run.State.STARTING and locked.phase not in {"", "starting"}:
        run.state = Run.State.RUNNING
    run.steps = int(status.get("steps") or run.steps)
    run.save(update_fields=["state", "steps"])
    return run.stop_asked_at is not None


@transaction.atomic
def warn(*, attempt: Attempt, why: str) -> None:
    """Add a warning to the run's events."""
    locked, run = _lock(attempt)
    Event.objects.create(run=run, attempt=locked, at=Now(), kind="warning", data={"why": why[:2000]})


@transaction.atomic
def record(*, attempt: Attempt, batch: batches.Batch, source: Attempt | None = None) -> None:
    """Store a batch read from the run directory and its file offsets, in one transaction.

    `source` is the attempt whose files were read, if it is an earlier one.
    """
    locked, run = _lock(attempt)
    source = locked if source is None or source.pk == locked.pk else source
    batches.store(batch, locked, run, source)
    source.offsets = {**source.offsets, **batch.offsets}
    source.log = source.log if batch.log is None else batch.log
    source.save(update_fields=["offsets", "log"])


@transaction.atomic
def finish(*, attempt: Attempt, state: str, exit_code: int | None, error: str = "", result: Any = None) -> None:
    """End the run as succeeded, stopped or failed after its process has exited."""
    locked, run = _lock(attempt)
    _end(locked, exit_code)
    _close(run, state, error, result)


@transaction.atomic
def give_back(*, attempt: Attempt, exit_code: int | None, why: str, died: bool = True) -> None:
    """Queue the run again after its process ended early; it has not `died` where its worker was shut down.

    The run ends instead if it was requested to stop, or if its attempts died too often without progress.
    """
    locked, run = _lock(attempt)
    _end(locked, exit_code)
    Event.objects.create(run=run, attempt=locked, at=Now(), kind="interrupted", data={"why": why[:2000], "died": died})
    _requeue(run, why)


def _end(attempt: Attempt, exit_code: int | None) -> None:
    attempt.state, attempt.exit_code, attempt.ended_at = Attempt.State.ENDED, exit_code, Now()
    attempt.save(update_fields=["state", "exit_code", "ended_at"])


def _close(run: Run, state: str, error: str = "", result: Any = None) -> None:
    run.state, run.error, run.ended_at = state, error[:8000], Now()
    if result is not None:
        run.result = result
    run.save(update_fields=["state", "error", "ended_at", "result"])
    alerts.note_end(run)


def _requeue(run: Run, why: str) -> None:
    if run.stop_asked_at is not None:
        _close(run, Run.State.STOPPED)
    elif run.kind == Run.Kind.SERVE:
        _close(run, Run.State.FAILED, why)
    elif _stuck(run):
        _close(run, Run.State.FAILED, f"{TRIES} attempts in a row died without a new checkpoint. The last: {why}")
    else:
        run.state = Run.State.QUEUED
        run.save(update_fields=["state"])
        queue.send(queue.SUPERVISE, run.pk, queue=run.queue)


def _stuck(run: Run) -> bool:
    """Whether the last attempts died before they started or all started from the same step, and none has saved a
    checkpoint above it.
    """
    resumed_after = run.events.filter(kind="resumed").aggregate(last=Max("attempt__number"))["last"] or 0
    shut_down = run.events.filter(kind="interrupted", data__died=False).values("attempt")
    died = run.attempts.filter(number__gt=resumed_after).exclude(pk__in=shut_down)
    last = died.order_by("-number").values_list("start_step", "pid")[:TRIES]
    starts = {start for start, pid in last if pid is not None}
    saved = bool(starts) and run.checkpoints.filter(step__gt=max(starts)).exists()
    return len(last) == TRIES and len(starts) <= 1 and not saved


def lapse_overdue() -> int:
    """Clock step: end attempts whose lease is over and queue their runs again. Returns their number."""
    overdue = Attempt.objects.overdue().values_list("pk", "run_id")
    return sum(_lapse(pk, run_id) for pk, run_id in list(overdue))


@transaction.atomic
def _lapse(pk: int, run_id: int) -> int:
    _bounded()
    run = Run.objects.select_for_update(skip_locked=True).filter(pk=run_id).first()
    attempt = Attempt.objects.select_for_update(skip_locked=True).overdue().filter(pk=pk).first()
    if run is None or attempt is None:
        return 0
    attempt.state, attempt.ended_at = Attempt.State.LAPSED, Now()
    attempt.save(update_fields=["state", "ended_at"])
    why = f"the worker {attempt.worker} was silent for {settings.RUN_LEASE_SECONDS:.0f} s"
    Event.objects.create(run=run, attempt=attempt, at=Now(), kind="lapsed", data={"why": why})
    _requeue(run, why)
    return 1


def repeat_hints() -> int:
    """Clock step: resend hints for queued runs. Duplicate claims are harmless, and old hints expire."""
    return _hint(Run.objects.without_servers(), HINT_SECONDS)


def repeat_serve_hints() -> int:
    """Clock step: the same for model servers, at a shorter interval, as nodes without a free slot do not claim them."""
    return _hint(Run.objects.filter(kind=Run.Kind.SERVE), SERVE_HINT_SECONDS)


def _hint(runs: RunQuerySet, seconds: float) -> int:
    queued = runs.filter(state=Run.State.QUEUED).order_by("created_at")
    waiting = list(queued.values_list("pk", "queue")[:200])
    for pk, name in waiting:
        if not queue.publish(queue.SUPERVISE, pk, queue=name, expires=seconds):
            break
    return len(waiting)
