"""One run: its self-updating header, its tabs and its actions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from training import event_files as tensorboard
from webapp.accounts.permissions import current_user, get_or_404, researchers
from webapp.core.http import STOP_ASKING, accepted, integer, render_block, wants_fragment
from webapp.corpora.models import Corpus
from webapp.runs import archive, reward_labels, services
from webapp.runs.models import Checkpoint, Run, RunCorpus
from webapp.runs.querysets import OVER
from webapp.runs.summaries import by_role, chart_page, comparing, curves, lineage, pulse, suite_charts, suites
from webapp.runs.summaries import evaluation as summaries
from webapp.runs.views import tabs


def visible(request: HttpRequest, run_id: int) -> Run:
    """The run, if this user may see it; else 404."""
    user = current_user(request)
    runs = Run.objects.visible_to(user).with_pins(user).with_withdrawn()
    runs = runs.select_related("owner", "dataset_version__dataset")
    return get_or_404(runs.select_related("start_checkpoint", "opponent_checkpoint", "cloned_from"), pk=run_id)


def changeable(request: HttpRequest, run_id: int) -> Run:
    """The run, if this user may change it; else 404. Model servers are stopped by their deployment."""
    return get_or_404(Run.objects.changeable_by(current_user(request)).without_servers(), pk=run_id)


def page(request: HttpRequest, run: Run, tab: str, context: dict[str, Any]) -> HttpResponse:
    """A tab of the run's page."""
    user = current_user(request)
    current = context.get("pulse") or pulse.pulse(run)
    header = {"run": run, "pulse": current, "may": pulse.actions(run, user), "over": run.state in OVER}
    header["roles_dealt"] = run.kind in {Run.Kind.TRAIN, Run.Kind.EVAL} and by_role.has_roles(run.game)
    asked = bool(run.config.get("calibration", {}).get("sets"))
    header["calibrates"] = run.kind == Run.Kind.TRAIN and (asked or run.game == services.QUESTIONS)
    verdict = "" if tab == "evaluation" else summaries.verdict(run)  # that tab begins with it
    return render(request, f"runs/{tab}.html", {**context, **header, "verdict": verdict, "tab": tab})


@require_GET
@researchers
def detail(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """The curves, if requested by `?tab=curves` or if there are metrics; else the first tab with content."""
    run = visible(request, run_id)
    names = set(comparing.last_metrics([run]).get(run.pk, {}))
    if "tab" not in request.GET and (opening := _opening(run, names)) is not None:
        return opening(request, run_id)
    address = reverse("runs:metrics", args=[run.pk])
    data = {
        "live": run.state not in OVER,
        "groups": curves.groups(names),
        "runs": [{"name": run.name, "url": address}],
    }
    data = chart_page.drawn(data, current_user(request))
    events = run.events.filter(kind__in=("warning", "error", "interrupted", "lapsed", "watchdog")).order_by("-pk")[:20]
    good = last_good_checkpoint(run)
    context = {"curves": data, "events": events, "has_metrics": bool(names), "good": good, "phases": curves.phases(run)}
    context |= {"csv": f"run={run.pk}", "labels": reward_labels.recorded(run)}
    return page(request, run, "curves", context)


def last_good_checkpoint(run: Run) -> Checkpoint | None:
    """The checkpoint that the watchdog named when it ended the run, if it still exists."""
    alarm = run.events.filter(kind="watchdog").order_by("-pk").first()
    step = alarm.data.get("checkpoint") if alarm else None
    return run.checkpoints.filter(step=step).order_by("-pk").first() if isinstance(step, int) else None


def _opening(run: Run, metrics: set[str]) -> Callable[..., HttpResponseBase] | None:
    """Return the view that replaces the curves as the first tab; None for the curves."""
    if run.result and {"summary", "rows"} & run.result.keys():
        return evaluation
    if run.kind in {Run.Kind.EVAL, Run.Kind.SUITE} and run.state != Run.State.FAILED:
        return evaluation  # it has no curves
    if metrics:
        return None
    if run.evaluations():
        return evaluation
    return log if run.state == Run.State.FAILED else None


@require_GET
@researchers
def live(request: HttpRequest, run_id: int) -> HttpResponse:
    """The header, polled while the run is alive."""
    run = visible(request, run_id)
    over = run.state in OVER
    user = current_user(request)
    verdict = "" if request.GET.get("tab") == "evaluation" else summaries.verdict(run)  # as `page` shows it
    header = {"run": run, "pulse": pulse.pulse(run), "may": pulse.actions(run, user), "verdict": verdict}
    changed = request.GET.get("state") != run.state  # the buttons are replaced only then, to keep the focus
    context = {**header, "over": over, "changed": changed}
    return render_block(request, "runs/detail.html", "header", context, status=STOP_ASKING if over else 200)


@require_GET
@researchers
def metrics(request: HttpRequest, run_id: int) -> HttpResponse:
    """The metrics above `?since=`, for a client that knows the attempts up to `?attempt=`."""
    run = get_or_404(Run.objects.visible_to(current_user(request)), pk=run_id)
    since = -1 if request.GET.get("since") == "-1" else integer(request, "since", -1)
    return JsonResponse(curves.columns(run, since, integer(request, "attempt", 0)))


@require_GET
@researchers
def event_files(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """All metrics as a TensorBoard event file, with the script that logs it to W&B, in a zip file."""
    run = visible(request, run_id)
    first = run.metrics.order_by("step").first()
    began = first.at if first else run.created_at
    rows = ((step, at.timestamp(), values) for step, at, values in run.metrics.every())
    script = tensorboard.TO_WANDB
    contents = {
        f"{run.pk}/{tensorboard.file_name(began.timestamp())}": tensorboard.pieces(rows),
        f"{run.pk}/{script.name}": [script.read_bytes()],
    }
    return archive.contents_response(request, f"{run.name} metrics", contents)


@require_GET
@researchers
def evaluation(request: HttpRequest, run_id: int) -> HttpResponse:
    """The results of head-to-heads (the run's own, and those played during training) or of a suite; polled while the
    run is alive.
    """
    run = visible(request, run_id)
    rows = [(data.get("step"), data) for data in run.evaluations()] if run.kind == "train" else []
    names = curves.in_order({name for _, data in rows for name in data if name != "step"})
    metrics = [name for name in names if not name.endswith(("_low", "_high"))]
    table = [(step, [_cell(data, name) for name in metrics]) for step, data in rows]
    columns = [summaries.column_of(name) for name in metrics]
    summary = summaries.of_run(run)
    if summary and len(table) == 1:
        table = []  # the head-to-head after the last step, which the summary shows
    report = {"summary": summary, "columns": columns, "table": table, **_suite(request, run), **_notes(run)}
    context = {"run": run, **report, **_progress(run, len(rows))}
    if wants_fragment(request):
        if request.GET.get("shown") == context["shown"]:
            return HttpResponse(status=204)  # nothing is replaced, so that what was opened or scrolled stays so
        status = STOP_ASKING if context["over"] else 200
        return render_block(request, "runs/evaluation.html", "report", context, status=status)
    return page(request, run, "evaluation", context)


def _suite(request: HttpRequest, run: Run) -> dict[str, Any]:
    """The report of a suite, and the newest others to compare it with."""
    suite = suites.of_run(run)
    if suite is None:
        return {"suite": None}
    others = Run.objects.visible_to(current_user(request)).filter(kind=Run.Kind.SUITE, result__has_key="rows")
    newest = others.defer("result").order_by("-pk")[: suite_charts.LISTED]
    return {"suite": suite, "others": suite_charts.comparable(run, newest)}


def _progress(run: Run, evaluations: int) -> dict[str, Any]:
    """How far the head-to-head is; `shown` changes whenever the tab has something new."""
    current, over = pulse.pulse(run), run.state in OVER
    checkpoint = run.checkpoints.order_by("-step").first() if run.kind == "train" and not evaluations else None
    shown = f"{run.state} {evaluations}" + (f" {current.phase} {current.done}" if run.kind in {"eval", "suite"} else "")
    return {"pulse": current, "over": over, "shown": shown, "checkpoint": checkpoint}


def _notes(run: Run) -> dict[str, str]:
    """The notes on both models, from the result, else from the base model."""
    conditions = (run.result or {}).get("conditions", {})
    first, second = (conditions.get(model, {}).get("note", "") for model in ("a", "b"))
    return {"note": first or lineage.note(run.base), "other_note": second}


def _cell(data: dict[str, Any], name: str) -> dict[str, Any]:
    return {"mean": data.get(name), "low": data.get(f"{name}_low"), "high": data.get(f"{name}_high")}


@require_GET
@researchers
def log(request: HttpRequest, run_id: int) -> HttpResponse:
    """The end of what each attempt printed."""
    run = visible(request, run_id)
    attempts = list(run.attempts.order_by("-number").defer("log"))  # loaded only for the attempt shown
    number = integer(request, "attempt", attempts[0].number if attempts else 0)
    attempt = next((attempt for attempt in attempts if attempt.number == number), None)
    context = {"run": run, "attempts": attempts, "shown": attempt, "over": run.state in OVER}
    context["interrupted"] = pulse.interruption(attempt)
    if request.htmx:  # type: ignore[attr-defined]
        return render_block(request, "runs/log.html", "log", context, status=STOP_ASKING if context["over"] else 200)
    return page(request, run, "log", context)


@require_GET
@researchers
def configuration(request: HttpRequest, run_id: int) -> HttpResponse:
    """Every field of the configuration, with its meaning."""
    run = visible(request, run_id)
    return page(request, run, "configuration", {"fields": lineage.described(run.config)})


@require_GET
@researchers
def ancestry(request: HttpRequest, run_id: int) -> HttpResponse:
    """The run's lineage."""
    run = visible(request, run_id)
    checkpoints = run.checkpoints.order_by("step")
    clones = run.clones.order_by("pk")
    shown = set(Corpus.objects.visible_to(current_user(request)).filter(runs=run).values_list("pk", flat=True))
    searched = [(record, _tools_of(run, record), record.corpus_id in shown) for record in run.searched.order_by("name")]
    return page(request, run, "lineage", {"saved": checkpoints, "clones": clones, "searched": searched})


def _tools_of(run: Run, record: RunCorpus) -> str:
    """The tools that search a corpus, as the configuration names them with its indexes."""
    indexes: Mapping[str, str] = run.config.get("search", {}).get("indexes", {})
    named = {tool: text.removeprefix(record.name) for tool, text in indexes.items()}
    tools = [f"{tool}{kind}" for tool, kind in named.items() if kind in {"", " bm25", " dense"}]
    return ", ".join(tools)


@require_POST
@researchers
def stop(request: HttpRequest, run_id: int) -> HttpResponse:
    """Ask the run to stop."""
    accepted(request, partial(services.stop_run, run=changeable(request, run_id)))
    return tabs.back(request, run_id)


@require_POST
@researchers
def resume(request: HttpRequest, run_id: int) -> HttpResponse:
    """Resume from the last checkpoint."""
    accepted(request, partial(services.resume_run, run=changeable(request, run_id)))
    return tabs.back(request, run_id)


@require_POST
@researchers
def delete(request: HttpRequest, run_id: int) -> HttpResponse:
    """Delete the run with its files and checkpoints."""
    run = changeable(request, run_id)
    if not accepted(request, partial(services.delete_run, run=run)):
        return redirect("runs:detail", run_id)
    messages.success(request, f"{run.name} is deleted, with its files and checkpoints.")
    return redirect("runs:list")
