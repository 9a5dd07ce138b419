"""Judging one seat after the other: the conversation left, the rubric right, the next one loaded beforehand.

The page asks for the next seat as soon as it stands. Once it holds it, the form says so (`next`), and the answer to a
judgment leaves that seat's place empty for htmx to move what is already there into it. Without scripts every judgment
is followed by a whole page.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from training.errors import BadInput
from webapp.accounts.permissions import annotators, current_user, get_or_404
from webapp.core.http import integer, render_page, wants_fragment
from webapp.judgments import agreement, games, services
from webapp.judgments.forms import ValuesForm
from webapp.judgments.models import Queue, Target

VALUE = "value"
"""Stands before a dimension's name in the form, so that no dimension is taken for another field."""


@require_http_methods(["GET", "POST"])
@annotators
def annotate(request: HttpRequest, pk: int) -> HttpResponseBase:
    """The next target of a queue for this person; `?after=` asks for the one that follows a target."""
    user = current_user(request)
    queue = get_or_404(Queue.objects.filter(annotators=user).select_related("rubric_version__rubric"), pk=pk)
    waiting = queue.targets.open_for(user).with_games()
    if request.method == "POST":
        return _judged(request, queue)
    after = integer(request, "after", 0)
    if after and wants_fragment(request):
        following = waiting.exclude(pk=after).first()
        context = {"queue": queue, "after": after, **(_seat(following, _form(queue, following)) if following else {})}
        return render(request, "judgments/annotate_next.html", context)
    return _page(request, queue, waiting.first())


def _judged(request: HttpRequest, queue: Queue) -> HttpResponseBase:
    """Store a judgment and go on to the next target; a refused one comes back with the reason."""
    user = current_user(request)
    target = get_or_404(queue.targets.with_games(), pk=request.POST.get("target", ""))
    form = _form(queue, target, request.POST)
    reason = request.POST.get("reason", "")
    skipped, refusal = "unscored" in request.POST, ""
    if skipped or form.is_valid():
        try:
            services.annotate(target=target, by=user, values=None if skipped else form.values(), reason=reason)
        except BadInput as error:
            refusal = f"{error.where.capitalize()}: {error.why}."
        else:
            if not wants_fragment(request):
                return redirect("judgments:annotate", queue.pk)
            following = queue.targets.open_for(user).with_games().first()
            held = following is not None and request.POST.get("next") == str(following.pk)
            return _page(request, queue, following, held=held)
    # htmx shows what comes with a success only; to it the refusal is the page's new state
    status = 200 if wants_fragment(request) else 400
    said = {"reason": reason, "refusal": refusal}
    return _page(request, queue, target, _form(queue, target) if skipped else form, said, status=status)


def _form(queue: Queue, target: Target | None, data: Any = None) -> ValuesForm:
    """The values of one target; two of them stand on the page at once, so their ids differ."""
    asked = target.asked() if target else queue.rubric_version.record()
    return ValuesForm(asked, data, prefix=VALUE, auto_id=f"id-{target.pk if target else 0}-%s")


def _page(
    request: HttpRequest,
    queue: Queue,
    target: Target | None,
    form: ValuesForm | None = None,
    said: Mapping[str, str] | None = None,
    *,
    held: bool = False,
    status: int = 200,
) -> HttpResponse:
    user = current_user(request)
    total = queue.targets.count()
    left = queue.targets.open_for(user).count()
    agreed = agreement.of_queue(queue, judged_by=user)
    context: dict[str, Any] = {"queue": queue, "total": total, "done": total - left, "held": held, **(said or {})}
    context |= {"agreement": agreed, "overall": agreement.overall(agreed)}
    if target is not None:
        context |= {"following": left > 1, "target": target}
        context |= {} if held else _seat(target, form or _form(queue, target))
    return render_page(request, "judgments/annotate.html", context, "judging", status)


def _seat(target: Target, form: ValuesForm) -> dict[str, Any]:
    """What one target shows: its conversation, or why that cannot be read, and the form."""
    shown: dict[str, Any] = {"target": target, "form": form}
    try:
        game = games.judgeable(target)
    except BadInput as error:
        return {**shown, "problem": str(error)}
    return {**shown, "lines": game.lines(), "seat_name": game.scenario.seats[target.seat]}
