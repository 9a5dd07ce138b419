"""The header of a run's page: phase, progress, speed, time left, and available actions."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import F
from django.db.models.functions import Now

from webapp.accounts.models import User
from webapp.runs.models import Attempt, Run
from webapp.runs.querysets import ALIVE

QUIET_SECONDS = 20.0  # without progress for longer than this, the page says so
LAST_STEPS = 10
SPEEDS = ("sampling_tokens_per_s", "learning_tokens_per_s")  # the first that a step has is shown


@dataclass(frozen=True)
class Pulse:
    """The current status of a run. Ages are in seconds by the database's clock; None if unknown."""

    attempt: Attempt | None
    phase: str
    detail: str
    progress_age: float | None
    tokens_per_s: float | None
    eta: float | None

    @property
    def quiet(self) -> bool:
        """Whether there was no progress for so long that the page shows a warning."""
        return self.progress_age is not None and self.progress_age > QUIET_SECONDS


def pulse(run: Run) -> Pulse:
    """Read a run's pulse in two queries."""
    attempt = run.attempts.order_by("-number").annotate(progress_age=Now() - F("progressed_at")).defer("log").first()
    rows = list(run.metrics.order_by("-step").values_list("step", "at", "values")[:LAST_STEPS])
    speeds = [values[name] for _, _, values in rows[:1] for name in SPEEDS if values.get(name)]
    status: dict[str, Any] = attempt.status if attempt else {}
    alive = run.state in ALIVE
    age = attempt.progress_age.total_seconds() if alive and attempt and attempt.progress_age is not None else None
    return Pulse(
        attempt=attempt,
        phase=str(status.get("phase", "")) if alive else "",
        detail=_detail(status) if alive else "",
        progress_age=age,
        tokens_per_s=float(speeds[0]) if speeds else None,
        eta=_time_left(run, rows) if run.state in {"running", "starting"} else None,
    )


def _time_left(run: Run, rows: list[tuple[int, datetime, dict[str, Any]]]) -> float | None:
    """Estimated seconds for the remaining steps, at the speed of the last ones."""
    if len(rows) < 2 or run.steps <= run.step:
        return None
    (newest, last, _), (oldest, first, _) = rows[0], rows[-1]
    return (run.steps - run.step) * (last - first).total_seconds() / (newest - oldest)


def _detail(status: dict[str, Any]) -> str:
    done, of = status.get("done"), status.get("of")
    return f"{done} of {of}" if isinstance(done, int) and isinstance(of, int) else ""


def actions(run: Run, user: User) -> dict[str, Any]:
    """The user's actions: hidden if not permitted, disabled with a reason if not possible.

    A model server is started and stopped with its deployment, not here.
    """
    if run.kind == Run.Kind.SERVE or not user.may_change(run.owner_id):
        return {"change": False}
    alive = run.state in ALIVE
    stop = ""
    if not alive:
        stop = "It has ended."
    elif run.stop_asked_at is not None:
        stop = "It has been asked to stop."
    resume = "" if run.state in {"stopped", "failed"} else "Only a stopped or failed run can be resumed."
    return {"change": True, "no_stop": stop, "no_resume": resume, "no_delete": "Stop it first." if alive else ""}
