"""A run's calibration: when its learner, as a single agent, searched and answered after each step."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_GET

from training.evaluate.calibration import curves
from training.evaluate.calibration.report import WORTH
from training.evaluate.intervals import CAUTION
from webapp.accounts.permissions import researchers
from webapp.runs import archive
from webapp.runs.summaries import calibration as summaries
from webapp.runs.views.run import page, visible


@require_GET
@researchers
def calibration(request: HttpRequest, run_id: int) -> HttpResponse:
    """The report by step, with all evaluations for `?all=1`; or what to set to have one."""
    run = visible(request, run_id)
    report = summaries.report(run, whole=request.GET.get("all") == "1")
    context = {
        "report": report,
        "sets": run.config.get("calibration", {}).get("sets", ()),
        "caution": CAUTION if report and report.few else "",
        "bootstrap": curves.METHOD,
        "worth": WORTH,
        "has_rows": bool(summaries.row_files(run)),
    }
    return page(request, run, "calibration", context)


@require_GET
@researchers
def rows(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """The rows of every evaluation, a JSONL file for each step, in a zip file."""
    run = visible(request, run_id)
    files = summaries.row_files(run)
    if not files:
        raise Http404
    names = [name for _, name in sorted(files.items())]
    return archive.zip_response(request, f"{run.name} calibration", names[0].partition("/attempts/")[0], names)
