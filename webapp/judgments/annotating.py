"""Judging one seat after another: the conversation left, the codebook right, the next seat preloaded.

The page preloads the next seat and names it in the form (`next`); the response to a judgment then leaves that seat's
place empty, and htmx moves the preloaded content into it. Without scripts every judgment reloads the page. Annotators
see their agreement only after their last seat, without what others said of seats that wait for them in another queue.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from training.errors import BadInput
from webapp.accounts.permissions import annotators, current_user, get_or_404
from webapp.core.http import integer, render_page, wants_fragment
from webapp.judgments import comparison, games, services
from webapp.judgments.forms import ValuesForm, form_value
from webapp.judgments.models import Judgment, Queue, Target

VALUE = "value"
"""The prefix of a label type's name in the form, which avoids clashes with other fields."""


@require_http_methods(["GET", "POST"])
@annotators
def annotate(request: HttpRequest, pk: int) -> HttpResponseBase:
    """The next target of a queue for this user; `?after=` requests the one after a target, `?target=` a judged one,
    to change it.
    """
    user = current_user(request)
    queue = get_or_404(Queue.objects.filter(annotators=user).select_related("codebook_version__codebook"), pk=pk)
    waiting = queue.targets.open_for(user).with_games()
    if request.method == "POST":
        return _judged(request, queue)
    after, reopened = integer(request, "after", 0), integer(request, "target", 0)
    if after and wants_fragment(request):
        following = waiting.exclude(pk=after).first()
        context = {"queue": queue, "after": after, **(_seat(following, _form(queue, following)) if following else {})}
        return render(request, "judgments/annotate_next.html", context)
    if reopened:
        return _reopened(request, queue, get_or_404(queue.targets.judged_by(user).with_games(), pk=reopened))
    return _page(request, queue, waiting.first())


def _judged(request: HttpRequest, queue: Queue) -> HttpResponseBase:
    """Store a judgment and show the next target; a refused one is shown again with the reason."""
    user = current_user(request)
    target = get_or_404(queue.targets.with_games(), pk=request.POST.get("target", ""))
    form = _form(queue, target, request.POST)
    reason = request.POST.get("reason", "")
    unscored, refusal = "unscored" in request.POST, ""
    if unscored or form.is_valid():
        labels = None if unscored else services.labels_of(form.codebook, form.values(), target.seat)
        try:
            services.annotate(target=target, by=user, labels=labels, reason=reason)
        except BadInput as error:
            refusal = f"{error.where.capitalize()}: {error.why}."
        else:
            if "reopened" in request.POST:
                messages.success(request, "Saved. Your earlier answer stays in the judgment's history.")
                return redirect("judgments:own_judgments", queue.pk)
            if not wants_fragment(request):
                return redirect("judgments:annotate", queue.pk)
            following = queue.targets.open_for(user).with_games().first()
            preloaded = following is not None and request.POST.get("next") == str(following.pk)
            return _page(request, queue, following, preloaded=preloaded)
    # htmx swaps successful responses only
    status = 200 if wants_fragment(request) else 400
    entered = {"reason": reason, "refusal": refusal, "reopened": "reopened" in request.POST}
    return _page(request, queue, target, _form(queue, target) if unscored else form, entered, status=status)


def _reopened(request: HttpRequest, queue: Queue, target: Target) -> HttpResponse:
    """The page of a target with this person's answer, for them to change as long as it was not exported."""
    judgment = Judgment.objects.with_labels().get(target=target, author=current_user(request))
    values = {label.label: label.value for label in judgment.records() or ()}
    entered: dict[str, Any] = {"reason": judgment.reason, "reopened": True}
    try:
        services.check_changeable(judgment, queue)
    except BadInput as error:
        entered["closed"] = error.why
    initial = {
        label_type.name: form_value(label_type, values[label_type.name])
        for label_type in target.codebook().labels
        if label_type.name in values
    }
    return _page(request, queue, target, _form(queue, target, initial=initial), entered)


def _form(queue: Queue, target: Target | None, data: Any = None, initial: Any = None) -> ValuesForm:
    """The values of one target; two of them stand on the page at once, so their ids differ."""
    codebook = target.codebook() if target else queue.codebook_version.record()
    return ValuesForm(codebook, data, prefix=VALUE, auto_id=f"id-{target.pk if target else 0}-%s", initial=initial)


def _page(
    request: HttpRequest,
    queue: Queue,
    target: Target | None,
    form: ValuesForm | None = None,
    entered: Mapping[str, Any] | None = None,
    *,
    preloaded: bool = False,
    status: int = 200,
) -> HttpResponse:
    user = current_user(request)
    total = queue.targets.count()
    remaining = queue.targets.open_for(user).count()
    context: dict[str, Any] = {"queue": queue, "total": total, "done": total - remaining, "preloaded": preloaded}
    context |= {"comparison": None if remaining else comparison.of_queue(queue, user), **(entered or {})}
    if target is not None:
        context |= {"following": remaining > 1 and not context.get("reopened"), "target": target}
        context |= {} if preloaded else _seat(target, form or _form(queue, target))
    return render_page(request, "judgments/annotate.html", context, "judging", status)


def _seat(target: Target, form: ValuesForm) -> dict[str, Any]:
    """The context of one target: its conversation, or the reason why it cannot be read, and the form."""
    context: dict[str, Any] = {"target": target, "form": form}
    try:
        game = games.judgeable(target)
        seat_name = "" if target.seat is None else game.scenario.seats[target.seat]
        return {**context, "transcript": game.transcript(), "seat_name": seat_name}
    except BadInput as error:
        return {**context, "problem": str(error)}
