"""The header of a run's page: phase, progress, speed, time left, and available actions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import F
from django.db.models.functions import Now

from webapp.accounts.models import User
from webapp.runs.attempts import LIVE
from webapp.runs.models import Attempt, Event, Run
from webapp.runs.querysets import ALIVE
from webapp.runs.summaries.curves import phases
from webapp.runs.summaries.processes import ProcessRow, listed

QUIET_SECONDS = 20.0  # without progress for longer than this, the page says so
LAST_STEPS = 4  # whose three intervals give the time left: a run's steps grow longer with its replies
STEPPING = (Run.Kind.TRAIN, Run.Kind.SFT)
SPEEDS = ("sampling_tokens_per_s", "learning_tokens_per_s")  # the first that a step has is shown


@dataclass(frozen=True)
class Pulse:
    """The current status of a run. Ages are in seconds by the database's clock; None if unknown.

    Those of a run that is not over are of the attempt that a worker holds: phase and speed of an ended one are history.
    `done` of `total` are the parts of the current phase, such as conversations; `eta` is the estimated rest in seconds.
    `training` names the phase of training, of a run that trains in several. `processes` are the engines and ranks of a
    run that has them in processes of their own; `warnings` are about their nodes. `interrupted` is what ended the last
    attempt, until this one has made a step; `no_step` says until then why figures of a step are unknown.
    """

    attempt: Attempt | None
    phase: str
    done: int | None
    total: int | None
    progress_age: float | None
    tokens_per_s: float | None
    eta: float | None
    training: str = ""
    processes: tuple[ProcessRow, ...] = ()
    warnings: tuple[str, ...] = ()
    interrupted: Event | None = None
    no_step: str = ""

    @property
    def quiet(self) -> bool:
        """Whether there was no progress for so long that the page shows a warning."""
        return self.progress_age is not None and self.progress_age > QUIET_SECONDS

    @property
    def gpus(self) -> bool:
        """Whether any process has a GPU, as far as their devices are known."""
        return any(row.may_use_gpu for row in self.processes)


def pulse(run: Run) -> Pulse:
    """Read a run's pulse in two queries, and a third where an earlier attempt may have been interrupted."""
    newest = list(run.attempts.order_by("-number").annotate(progress_age=Now() - F("progressed_at")).defer("log")[:2])
    attempt, before = next(iter(newest), None), next(iter(newest[1:]), None)
    alive = run.state in ALIVE
    current = attempt if attempt and alive and attempt.state in LIVE else None
    rows = list(run.metrics.order_by("-step").values_list("step", "at", "values", "fence")[:LAST_STEPS])
    rows = of_attempt(rows, current) if alive else rows
    speeds = [values[name] for _, _, values, _ in rows[:1] for name in SPEEDS if values.get(name)]
    status: dict[str, Any] = current.status if current else {}
    done, total = _parts(status)
    age = current.progress_age.total_seconds() if current and current.progress_age is not None else None
    return Pulse(
        attempt=attempt,
        phase=str(status.get("phase", "")),
        done=done,
        total=total,
        progress_age=age,
        tokens_per_s=float(speeds[0]) if speeds else None,
        eta=_time_left(run, status, rows) if run.state in {"running", "starting"} else None,
        training=_training(run),
        processes=listed(status, run.config) if current else (),
        warnings=tuple(str(why) for why in status.get("warnings", ())),
        interrupted=interruption(before) if current and not rows else None,
        no_step="no step yet" if run.kind in STEPPING and not rows and not 0 < run.steps <= run.step else "",
    )


def interruption(attempt: Attempt | None) -> Event | None:
    """What interrupted an attempt; None if nothing did, or without an attempt."""
    if attempt is None:
        return None
    events = attempt.events.filter(kind__in=("interrupted", "lapsed")).select_related("attempt")
    return events.order_by("-pk").first()


def _training(run: Run) -> str:
    """The phase of training that the next step belongs to, or the last one, with its number."""
    began = [place for place, (_, start) in enumerate(phases(run)) if start <= run.step]
    return f"{phases(run)[began[-1]][0]} ({began[-1] + 1} of {len(phases(run))})" if began else ""


Row = tuple[int, datetime, dict[str, Any], int]
"""Step, time, values and fence of one training step's metrics."""


def of_attempt(rows: Sequence[Row], attempt: Attempt | None) -> list[Row]:
    """The steps that the attempt has made itself; none without an attempt, or before its process has started."""
    if attempt is None or attempt.pid is None:
        return []
    return [row for row in rows if row[3] == attempt.fence and row[0] > attempt.start_step]


def _time_left(run: Run, status: Mapping[str, Any], rows: Sequence[Row]) -> float | None:
    """Estimated seconds for the remaining training steps or, where none is left to train, of the head-to-head."""
    return _steps_left(run, rows) if run.step < run.steps else _phase_left(run, status)


def _steps_left(run: Run, rows: Sequence[Row]) -> float | None:
    """Seconds for the remaining steps at the speed of the attempt's last three; time between attempts is left out."""
    if len(rows) < 2:
        return None
    (newest, last, *_), (oldest, first, *_) = rows[0], rows[-1]
    return (run.steps - run.step) * (last - first).total_seconds() / (newest - oldest)


def _phase_left(run: Run, status: Mapping[str, Any]) -> float | None:
    """Seconds for the remaining conversations of the last phase; None while a judge has yet to score all of them."""
    done, total = _parts(status)
    since, at = status.get("since"), status.get("at")
    if not (done and total and isinstance(since, int | float) and isinstance(at, int | float)):
        return None
    judged_next = status.get("phase") != "scoring" and run.config.get("evaluate", {}).get("judge")
    return None if judged_next else (total - done) * (at - since) / done


def _parts(status: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """How much of the current phase is done, and of how much; None if it does not count."""
    done, total = status.get("done"), status.get("of")
    return (done, total) if isinstance(done, int) and isinstance(total, int) else (None, None)


def actions(run: Run, user: User) -> dict[str, Any]:
    """The user's actions: hidden if not permitted, disabled with a reason if not possible.

    A model server is started and stopped with its deployment, not here.
    """
    pinned = getattr(run, "pinned", False)  # annotated by `with_pins`
    if run.kind == Run.Kind.SERVE or not user.may_change(run.owner_id):
        return {"change": False, "pinned": pinned}
    alive = run.state in ALIVE
    stop = ""
    if not alive:
        stop = "It has ended."
    elif run.stop_asked_at is not None:
        stop = "It has been asked to stop."
    resume = "" if run.state in {"stopped", "failed"} else "Only a stopped or failed run can be resumed."
    free = {"change": True, "pinned": pinned}
    return {**free, "no_stop": stop, "no_resume": resume, "no_delete": "Stop it first." if alive else ""}
