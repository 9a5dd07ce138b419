"""Judging one target after another: the conversation left, the codebook right, the next target preloaded.

`static/js/judging.js` shows the preloaded target at once and saves the one before meanwhile; the response to a judgment
brings the target after that. Without scripts every judgment reloads the page. Annotators see their agreement only after
their last target, without what others said of seats that wait for them in another queue. The page says nothing of who
played, when, or how the game ended.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from training.errors import BadInput
from webapp.accounts.models import User
from webapp.accounts.permissions import current_user, get_or_404, members
from webapp.core.http import integer, render_block, wants_fragment
from webapp.judgments import games
from webapp.judgments.annotating import keys, label_forms, marks
from webapp.judgments.annotating import services as annotating
from webapp.judgments.annotating.game_context import game_context
from webapp.judgments.annotating.label_forms import LabelForms
from webapp.judgments.annotating.settings import own_settings
from webapp.judgments.models import Judgment, Queue, Target
from webapp.judgments.queues import reservations
from webapp.judgments.results import analyses, withheld
from webapp.judgments.results.background import Analysis


@require_http_methods(["GET", "POST"])
@members
def annotate(request: HttpRequest, pk: int) -> HttpResponseBase:
    """The next target of a queue for this user; `?after=` requests the one after a target, `?target=` a judged one,
    to change it, `?earlier=1` the one judged last, and `?agreement=1` the agreement, for a page that waits for it.
    """
    user = current_user(request)
    queue = get_or_404(Queue.objects.annotated_by(user).select_related("codebook_version__codebook"), pk=pk)
    if request.method == "POST":
        return _sent(request, queue)
    after, reopened = integer(request, "after", 0), integer(request, "target", 0)
    if after and wants_fragment(request):
        return render(request, "judgments/annotate_next.html", _progress(queue, user, shown=after))
    if "agreement" in request.GET and wants_fragment(request):
        return render_block(request, "judgments/annotate.html", "analysis", {"analysis": _agreement(queue, user)})
    if "earlier" in request.GET:
        last = Judgment.objects.filter(author=user, queue=queue, decides=False).order_by("-updated_at").first()
        reopened = 0 if last is None else last.target_id or 0
    if reopened:
        return _reopened(request, queue, get_or_404(queue.targets.judged_by(user).with_games(), pk=reopened))
    target, waiting = reservations.offer(queue=queue, user=user)
    return _page(request, queue, target, waiting=waiting)


def _sent(request: HttpRequest, queue: Queue) -> HttpResponseBase:
    """Store a judgment, or put the target aside; a refused one is shown again with the reason."""
    user = current_user(request)
    targets = Target.everything.with_games().with_consent().filter(queue=queue)
    target = get_or_404(targets, pk=request.POST.get("target", ""))
    if not target.kept:  # type: ignore[attr-defined]
        return _next(request, queue, withdrawn=True)
    if not reservations.may_read(target, user):
        messages.warning(request, "What you sent was not stored: this is not yours to judge.")
        return _next(request, queue)
    try:
        forms = _store(request, target, user)
    except BadInput as error:
        refusal = f"{error.where.capitalize()}: {error.why}."
        return _refused(request, queue, target, _submitted(target, request), refusal)
    if forms is not None:
        return _refused(request, queue, target, forms)
    if "reopened" in request.POST:
        messages.success(request, "Saved. Your earlier answer stays in the judgment's history.")
        return redirect("judgments:own_judgments", queue.pk)
    checked = target.gold and queue.gold_feedback and "skip" not in request.POST
    return _next(request, queue, target.pk if checked else None)


WITHDRAWN = "Consent to the use of the game that you just judged was withdrawn. Your answer was not stored."


def _next(
    request: HttpRequest, queue: Queue, checked: int | None = None, *, withdrawn: bool = False
) -> HttpResponseBase:
    """The target after the one that the page already shows; without scripts, its page.

    `checked`: a gold target that was judged just now, with a link to what was right of it. `withdrawn`: the answer to a
    game was refused because somebody withdrew consent, and the next page says so.
    """
    if not wants_fragment(request):
        if withdrawn:
            messages.warning(request, WITHDRAWN)
        if checked is not None:
            return redirect("judgments:gold-answer", queue.pk, checked)
        return redirect("judgments:annotate", queue.pk)
    text = request.POST.get("shown", "")
    shown = int(text) if text.isdecimal() and len(text) < 19 else 0
    context = {**_progress(queue, current_user(request), shown=shown), "checked": checked}
    if withdrawn and (shown or "target" in context):
        context["withdrawn"] = WITHDRAWN
    elif withdrawn:  # nothing follows: the page is loaded anew
        messages.warning(request, WITHDRAWN)
    return render(request, "judgments/annotate_next.html", context)


def _store(request: HttpRequest, target: Target, user: User) -> LabelForms | None:
    """Perform the submitted action; return the forms if one of them is invalid."""
    sent = request.POST
    if "skip" in sent:
        reservations.skip(target=target, user=user, why=sent.get("why", ""))
        return None
    reason, labels, accepted = sent.get("reason", ""), None, {}
    if "unscored" not in sent:
        lines = games.judgeable(target).turn_lines(hidden=target.queue.shows_hidden)
        forms = label_forms.submitted(target, lines, sent)
        if not forms.is_valid():
            return forms
        sent_marks = marks.from_page(forms.marks, target.codebook(), lines)
        labels = [*forms.labels(sent), *(mark.label for mark in sent_marks)]
        accepted = forms.accepted | {mark.label: mark.suggestion for mark in sent_marks if mark.suggestion is not None}
    work = annotating.Work(
        seconds=_seconds(sent.get("seconds", "")),
        unsure="unsure" in sent,
        suggestions_shown=bool(label_forms.shown_suggestions(target)),
        accepted=accepted,
    )
    annotating.annotate(target=target, by=user, labels=labels, reason=reason, work=work)
    return None


def _seconds(text: str) -> float | None:
    """Return the active time that the page measured; None if it measured none."""
    return int(text) / 1 if text.isdecimal() and len(text) < 9 else None


def _submitted(target: Target, request: HttpRequest) -> LabelForms:
    """Return the forms of a refused judgment; without turns if the game cannot be read."""
    try:
        lines = games.judgeable(target).turn_lines(hidden=target.queue.shows_hidden)
    except BadInput:
        lines = []
    return label_forms.submitted(target, lines, request.POST)


def _refused(request: HttpRequest, queue: Queue, target: Target, forms: LabelForms, refusal: str = "") -> HttpResponse:
    sent = request.POST
    entered = {
        "reason": sent.get("reason", ""), "unsure": "unsure" in sent, "refusal": refusal,
        "reopened": "reopened" in sent, "why": sent.get("why", ""), "skipping": "skip" in sent,
    }  # fmt: skip
    if "unscored" in sent or "skip" in sent:
        for section in forms.sections:
            section.form.errors.clear()
    if not wants_fragment(request):
        return _page(request, queue, target, forms, entered, status=400)
    context = {**_target(target, forms, current_user(request)), "queue": queue, **entered}
    return render(request, "judgments/annotate_target.html", context, status=422)


def _reopened(request: HttpRequest, queue: Queue, target: Target) -> HttpResponse:
    """The page of a target with this person's answer, for them to change as long as it was not exported."""
    judgment = Judgment.objects.with_labels().get(target=target, author=current_user(request), decides=False)
    entered: dict[str, Any] = {"reason": judgment.reason, "unsure": judgment.unsure, "reopened": True}
    try:
        annotating.check_changeable(judgment, queue)
    except BadInput as error:
        entered["closed"] = error.why
    lines = games.game_of(target).turn_lines(hidden=queue.shows_hidden)
    return _page(request, queue, target, label_forms.stored(target, lines, judgment), entered)


def _progress(queue: Queue, user: User, *, shown: int = 0) -> dict[str, Any]:
    """How far this person is, and the target that follows the one `shown` (0: none is)."""
    following, waiting = reservations.offer(queue=queue, user=user, besides=shown or None)
    done = Judgment.objects.filter(queue=queue, author=user, decides=False).count()
    context: dict[str, Any] = {"queue": queue, "total": waiting + done, "done": done}
    return {**context, **(_target(following, None, user) if following is not None else {})}


def _page(
    request: HttpRequest,
    queue: Queue,
    target: Target | None,
    forms: LabelForms | None = None,
    entered: Mapping[str, Any] | None = None,
    status: int = 200,
    waiting: int | None = None,
) -> HttpResponse:
    """`waiting`: how many targets are open, if that was read."""
    user = current_user(request)
    preferences = own_settings(user)
    waiting = queue.targets.open_for(user).count() if waiting is None else waiting
    done = Judgment.objects.filter(queue=queue, author=user, decides=False).count()
    context: dict[str, Any] = {
        "queue": queue,
        "total": waiting + done,
        "done": done,
        "analysis": None if waiting else _agreement(queue, user),
        "break_minutes": preferences.break_minutes,
        "actions": json.dumps(keys.actions_for_page(preferences.keys)),
        "reopened": False,
        **(entered or {}),
    }
    if target is not None:
        context |= _target(target, forms, user)
    return render(request, "judgments/annotate.html", context, status=status)


def _agreement(queue: Queue, user: User) -> Analysis | None:
    """Return the agreement of a queue's authors; None for a person who has yet to judge one of its targets."""
    awaited = withheld.awaited_by(user)
    return None if queue.pk in awaited.queues else analyses.of_queue(queue, "summary", user, awaited=awaited)


def _target(target: Target, forms: LabelForms | None, user: User) -> dict[str, Any]:
    """The context of one target: its conversation, or the reason why it cannot be read, and the forms."""
    queue, codebook = target.queue, target.codebook()
    context: dict[str, Any] = {"target": target, "codebook": codebook, "person": user.pk}
    try:
        game = games.judgeable(target)
        lines = game.turn_lines(hidden=queue.shows_hidden)
        context["game_context"] = game_context(game, hidden=queue.shows_hidden)
        context["seat_name"] = "" if target.seat is None else game.scenario.seats[target.seat]
        context["turns"] = lines
        context["label_forms"] = forms or label_forms.blank(target, lines, label_forms.shown_suggestions(target))
        offered = marks.types_for_page(codebook, keys.of_labels(codebook, own_settings(user).keys))
        context["label_types"] = json.dumps(offered) if offered else ""
    except BadInput as error:
        context["problem"] = error.why
    return context
