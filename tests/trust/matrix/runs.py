"""Who may use the pages of runs and checkpoints."""

from typing import Any

from tests.trust.matrix.base import MEMBERS, RESEARCHERS, Route
from tests.webapp.runs.making import (
    SUITE_RESULT,
    calibration_rows,
    make_calibration,
    make_checkpoint,
    make_crew_suite,
    make_deduction,
    make_episode,
    make_league,
    make_run,
    ship,
    village,
)
from webapp.runs.alerts.models import AlertRule
from webapp.runs.registry.models import Alias
from webapp.runs.report_pages.models import Report
from webapp.runs.sweeps.models import Sweep, Trial

ADMIN = ("admin",)


def run(owner: Any) -> dict[str, Any]:
    return {"run_id": make_run(owner, state="stopped").pk}


def episode(owner: Any) -> dict[str, Any]:
    made = make_episode(make_run(owner))
    return {"run_id": made.run_id, "step": made.step, "number": made.number}


def replayed(owner: Any) -> dict[str, Any]:
    made = make_episode(make_run(owner), record=village())
    return {"run_id": made.run_id, "step": made.step, "number": made.number}


def league(owner: Any) -> dict[str, Any]:
    return {"run_id": make_league(make_run(owner)).pk}


def calibrated(owner: Any) -> dict[str, Any]:
    run = make_run(owner, game="qa_society")
    for step in (0, 1):
        make_calibration(run, step, (calibration_rows(), True), (calibration_rows("NQ", ""), False))
    return {"run_id": run.pk}


def closed(owner: Any) -> dict[str, Any]:
    return {"checkpoint_id": make_checkpoint(make_run(owner, state="stopped")).pk}


def opened(owner: Any) -> dict[str, Any]:
    return {"checkpoint_id": make_checkpoint(make_run(owner, state="stopped"), open_to_players=True).pk}


def aliased(owner: Any) -> dict[str, Any]:
    checkpoint = make_checkpoint(make_run(owner, state="stopped"))
    Alias.objects.update_or_create(name="best", defaults={"checkpoint": checkpoint})
    return {"checkpoint_id": checkpoint.pk}


def sweep(owner: Any) -> dict[str, Any]:
    made = Sweep.objects.create(name="rates", owner=owner, search="grid", fields=[["learn.lr", "1e-5, 1e-4"]])
    Trial.objects.create(sweep=made, run=make_run(owner), number=1, values={"learn.lr": 1e-5})
    return {"sweep_id": made.pk}


def alert(owner: Any) -> dict[str, Any]:
    return {"rule_id": AlertRule.objects.create(user=owner, events=["failed"], channel="mail").pk}


def report(owner: Any) -> dict[str, Any]:
    return {"report_id": Report.objects.create(owner=owner, title="findings", text="# Findings").pk}


def measured(owner: Any) -> dict[str, Any]:
    return {"run_id": make_run(owner, kind="suite", state="succeeded", result=SUITE_RESULT).pk}


def measured_crew(owner: Any) -> dict[str, Any]:
    make_crew_suite(owner, "another")
    return {"run_id": make_crew_suite(owner).pk}


def deduced(owner: Any) -> dict[str, Any]:
    return {"run_id": make_deduction(owner).pk}


def discussed(owner: Any) -> dict[str, Any]:
    """A game of Among Us whose crew was asked around every message."""
    record = ship(lambda after, seat: (after * 7 + seat * 3) % 10 / 10)
    made = make_episode(make_run(owner, game="among_us"), record=record)
    return {"run_id": made.run_id, "step": made.step, "number": made.number}


READ = [
    Route(f"runs:{name}", RESEARCHERS, RESEARCHERS, make=run)
    for name in ("detail", "live", "metrics", "conversations", "evaluation", "log", "configuration", "lineage")
]
ROUTES = [
    Route("runs:list", RESEARCHERS),
    Route("runs:event-files", RESEARCHERS, RESEARCHERS, make=run),
    Route("runs:new", RESEARCHERS),
    Route("runs:new", RESEARCHERS, method="POST", data={"name": "a run"}),
    Route("runs:bulk", RESEARCHERS, method="POST", data={"action": "stop"}),
    Route("runs:compare", RESEARCHERS),
    Route("runs:curves-csv", RESEARCHERS),
    Route("runs:comparison-csv", RESEARCHERS),
    Route("runs:alerts", RESEARCHERS),
    Route("runs:alerts", RESEARCHERS, method="POST", data={"events": "failed"}),
    Route("runs:act-on-alert", RESEARCHERS, (), method="POST", make=alert, data={"action": "remove"}),
    Route("runs:reports", RESEARCHERS),
    Route("runs:new-report", RESEARCHERS),
    Route("runs:new-report", RESEARCHERS, method="POST", data={"title": "a report", "text": "text"}),
    Route("runs:preview-report", RESEARCHERS, method="POST", data={"text": "text"}),
    Route("runs:report", RESEARCHERS, RESEARCHERS, make=report),
    Route("runs:edit-report", RESEARCHERS, ADMIN, make=report),
    Route("runs:edit-report", RESEARCHERS, ADMIN, method="POST", make=report, data={"title": "a", "text": "b"}),
    Route("runs:act-on-report", RESEARCHERS, ADMIN, method="POST", make=report, data={"action": "delete"}),
    Route("runs:sweeps", RESEARCHERS),
    Route("runs:new-sweep", RESEARCHERS),
    Route("runs:new-sweep", RESEARCHERS, method="POST", data={"name": "a sweep"}),
    Route("runs:sweep", RESEARCHERS, RESEARCHERS, make=sweep),
    Route("runs:act-on-sweep", RESEARCHERS, ADMIN, method="POST", make=sweep, data={"action": "stop"}),
    Route("runs:list-csv", RESEARCHERS),
    Route("runs:columns", RESEARCHERS),
    Route("runs:columns", RESEARCHERS, method="POST", data={"action": "add", "column": "owner"}),
    Route("runs:about", RESEARCHERS, ADMIN, make=run),
    Route("runs:about", RESEARCHERS, ADMIN, method="POST", make=run, data={"tags": "a, b"}),
    Route("runs:archive", RESEARCHERS, ADMIN, method="POST", make=run),
    Route("runs:pin", RESEARCHERS, RESEARCHERS, method="POST", make=run),
    Route("runs:charts", RESEARCHERS, method="POST", data={"charts": '{"smoothing": 0.5}'}),
    *READ,
    Route("runs:evaluation", RESEARCHERS, RESEARCHERS, make=measured),
    Route("runs:evaluation", RESEARCHERS, RESEARCHERS, make=measured_crew),
    Route("runs:by-role", RESEARCHERS, RESEARCHERS, make=run),
    Route("runs:by-role", RESEARCHERS, RESEARCHERS, make=deduced),
    Route("runs:conversation", RESEARCHERS, RESEARCHERS, make=discussed),
    Route("runs:calibration", RESEARCHERS, RESEARCHERS, make=calibrated),
    Route("runs:calibration-rows", RESEARCHERS, RESEARCHERS, make=calibrated),
    Route("runs:league", RESEARCHERS, RESEARCHERS, make=league),
    Route("runs:league-games", RESEARCHERS, RESEARCHERS, make=league),
    Route("runs:conversation", RESEARCHERS, RESEARCHERS, make=episode),
    Route("runs:replay", RESEARCHERS, RESEARCHERS, make=replayed),
    Route("runs:tokens", RESEARCHERS, RESEARCHERS, make=episode),
    Route("runs:stop", RESEARCHERS, ADMIN, method="POST", make=run),
    Route("runs:resume", RESEARCHERS, ADMIN, method="POST", make=run),
    Route("runs:delete", RESEARCHERS, ADMIN, method="POST", make=run),
    Route("runs:provision", MEMBERS),
    Route("runs:checkpoints", MEMBERS),
    Route("runs:checkpoint", RESEARCHERS, RESEARCHERS, make=closed),
    Route("runs:checkpoint", MEMBERS, MEMBERS, make=opened),
    Route("runs:suite", RESEARCHERS, RESEARCHERS, make=closed),
    Route("runs:suite", RESEARCHERS, RESEARCHERS, method="POST", make=closed, data={"suite": "mars", "games": "0"}),
    Route("runs:download", RESEARCHERS, RESEARCHERS, make=opened),
    Route("runs:share", RESEARCHERS, ADMIN, method="POST", make=closed, data={"open": "1"}),
    Route("runs:delete-checkpoint", RESEARCHERS, ADMIN, method="POST", make=closed),
    Route("runs:matrix", RESEARCHERS),
    Route("runs:add-alias", RESEARCHERS, RESEARCHERS, method="POST", make=closed, data={"alias": "best"}),
    Route("runs:remove-alias", RESEARCHERS, RESEARCHERS, method="POST", make=aliased, data={"alias": "best"}),
    Route("runs:add-base", ADMIN),
    Route("runs:add-base", ADMIN, method="POST", data={"name": "mine", "source": "/nowhere"}),
]
