"""Pages of queues: what waits, judging one target after the other, results, retry, export."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from training.errors import BadInput
from webapp.accounts.permissions import annotators, current_user, one, researchers
from webapp.core.http import render_page
from webapp.judgments import export, games, results, services
from webapp.judgments.forms import QueueForm, ValuesForm
from webapp.judgments.models import JudgeModel, Queue, Rubric, Target
from webapp.scenarios.forms import DatasetNameForm

VALUE = "value"
"""Stands before a dimension's name in the form, so that no dimension is taken for another field."""


@require_GET
@annotators
def queue_list(request: HttpRequest) -> HttpResponse:
    user = current_user(request)
    queues = Queue.objects.visible_to(user).listed().order_by("-created_at")
    context = {
        "queues": queues,
        "mine": Queue.objects.assigned_to(user),
        "rubrics": Rubric.objects.prefetch_related("versions").order_by("name"),
        "judges": JudgeModel.objects.select_related("remote").order_by("name"),
    }
    return render(request, "judgments/list.html", context)


@require_http_methods(["GET", "POST"])
@researchers
def queue_new(request: HttpRequest) -> HttpResponseBase:
    user = current_user(request)
    asked = {name: request.GET.getlist(name) for name in ("match", "run", "step", "annotators") if name in request.GET}
    initial = {name: value if name in {"match", "annotators"} else value[0] for name, value in asked.items()}
    form = QueueForm(user, request.POST or None, initial=initial)
    if request.method == "POST" and form.is_valid():
        given = form.cleaned_data
        try:
            made = services.create_queue(
                name=given["name"],
                owner=user,
                rubric_version=given["rubric_version"],
                matches=given["match"],
                episodes=form.episodes(),
                judge=given["judge"],
                annotators=given["annotators"],
            )
        except BadInput as error:
            form.add_error(None, error.why)
        else:
            return redirect("judgments:queue", made.pk)
    return render(request, "judgments/queue_new.html", {"form": form}, status=400 if form.errors else 200)


@require_GET
@researchers
def queue_page(request: HttpRequest, pk: int) -> HttpResponse:
    user = current_user(request)
    queue = one(Queue.objects.visible_to(user).listed(), pk=pk)
    unscored = queue.targets.filter(state=Target.State.UNSCORED).prefetch_related("judgments")[:50]
    context = {
        "queue": queue,
        "left": queue.targets.filter(state=Target.State.PENDING).count(),
        "results": results.of_queue(queue),
        "unscored": unscored,
        "annotators": queue.annotators.order_by("username"),
        "may_change": user.may_change(queue.owner_id),
        "export_form": DatasetNameForm(initial={"name": f"judged-{queue.pk}"}),
    }
    return render_page(request, "judgments/queue.html", context, "progress")


@require_POST
@researchers
def queue_retry(request: HttpRequest, pk: int) -> HttpResponseBase:
    queue = one(Queue.objects.changeable_by(current_user(request)), pk=pk)
    count = services.retry(queue=queue)
    messages.info(request, f"{count} seats are judged again." if count else "Nothing was left to judge again.")
    return redirect("judgments:queue", queue.pk)


@require_POST
@researchers
def queue_export(request: HttpRequest, pk: int) -> HttpResponseBase:
    user = current_user(request)
    queue = one(Queue.objects.visible_to(user), pk=pk)
    form = DatasetNameForm(request.POST)
    if form.is_valid():
        try:
            version, left_out = export.store(queue=queue, name=form.cleaned_data["name"], by=user)
        except BadInput as error:
            form.add_error("name", error.why)
        else:
            messages.success(request, f"Stored as {version}.")
            if left_out:
                messages.warning(request, f"{len(left_out)} games were left out: {'; '.join(left_out[:5])}.")
            return redirect("scenarios:version", version.dataset.name, version.number)
    return render(request, "judgments/export.html", {"form": form, "queue": queue}, status=400)


@require_http_methods(["GET", "POST"])
@annotators
def annotate(request: HttpRequest, pk: int) -> HttpResponseBase:
    """The next target of a queue for this person: the conversation left, the rubric right."""
    user = current_user(request)
    queue = one(Queue.objects.filter(annotators=user).select_related("rubric_version__rubric"), pk=pk)
    waiting = queue.targets.open_for(user).with_games()
    if request.method == "GET":
        return _annotation(request, queue, waiting.first(), ValuesForm(queue.rubric_version, prefix=VALUE))
    target = one(queue.targets.with_games(), pk=request.POST.get("target", ""))
    form = ValuesForm(queue.rubric_version, request.POST, prefix=VALUE)
    reason = request.POST.get("reason", "")
    skipped = "unscored" in request.POST
    if skipped or form.is_valid():
        try:
            services.annotate(target=target, by=user, values=None if skipped else form.values(), reason=reason)
        except BadInput as error:
            form.add_error(None, f"{error.where}: {error.why}")
        else:
            return redirect("judgments:annotate", queue.pk)
    return _annotation(request, queue, target, form, reason, 400)


def _annotation(
    request: HttpRequest, queue: Queue, target: Target | None, form: ValuesForm, reason: str = "", status: int = 200
) -> HttpResponse:
    user = current_user(request)
    total = queue.targets.count()
    left = queue.targets.open_for(user).count()
    context: dict[str, Any] = {"queue": queue, "target": target, "form": form, "reason": reason}
    context |= {"total": total, "done": total - left}
    if target is not None:
        try:
            game = games.judgeable(target)
            context |= {"lines": game.lines(), "seat_name": game.scenario.seats[target.seat]}
        except BadInput as error:
            context |= {"problem": str(error)}
    return render(request, "judgments/annotate.html", context, status=status)
