"""Pages of adjudication: the targets on which annotators disagree, and the decision on one of them.

They are for who may change the queue, once they have judged all that they are to judge of it themselves.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from training.errors import BadInput
from webapp.accounts.models import User
from webapp.accounts.permissions import get_or_404, researchers
from webapp.core.http import accepted, integer, render_page
from webapp.judgments import games
from webapp.judgments.annotating import keys, marks
from webapp.judgments.annotating.game_context import game_context
from webapp.judgments.annotating.services import check_changeable
from webapp.judgments.models import Judgment, Queue, Target
from webapp.judgments.naming import numbers_in
from webapp.judgments.results import analyses, decisions
from webapp.judgments.results.side_by_side import Column, SideBySide, columns_of
from webapp.judgments.results.views import queue_of
from webapp.judgments.results.withheld import unrevealed

PAGE = 50
SHOWN = {"open": "To decide", "decided": "Decided", "gold": "Gold set"}


@dataclass(frozen=True)
class ListedTarget:
    """A target in the list: its game and seat in words, and how much annotators disagree on it, from 0 to 1."""

    target: Target
    game: str
    seat: str
    disagreement: float | None
    decided: bool


def _changeable(request: HttpRequest, pk: int) -> tuple[Queue, User, dict[str, Any]]:
    """A queue of people that this person may adjudicate, and the context that the pages share; else 404."""
    queue, user, context = queue_of(request, pk)
    if not context["may_change"]:
        raise Http404
    return queue, user, context | {"tab": "decisions"}


@require_GET
@researchers
def decision_list(request: HttpRequest, pk: int) -> HttpResponse:
    """The targets on which annotators disagree and nobody decided; those that were decided; the gold set."""
    queue, user, context = _changeable(request, pk)
    shown = request.GET.get("show", "open")
    if shown not in SHOWN:
        raise Http404
    context |= {"shown": shown, "choices": SHOWN}
    if context["awaited"] is None:
        analysis = analyses.of_queue(queue, "disagreement")
        scores = dict(zip(analysis.result.targets, analysis.result.scores, strict=True)) if analysis.result else {}
        page = Paginator(_listed(queue, user, shown, scores), PAGE).get_page(integer(request, "page", 1, low=1))
        context |= {"analysis": analysis, "page": page, "rows": _rows(list(page.object_list), scores)}
    return render_page(request, "judgments/results/decisions.html", context, "analysis")


def _listed(queue: Queue, user: User, shown: str, scores: dict[int, float]) -> list[int]:
    """The targets of a list in its order, without those of matches whose players `user` has yet to be shown."""
    decided = set(Judgment.objects.filter(queue=queue, decides=True).values_list("target", flat=True))
    hidden = unrevealed(queue, user)
    if shown == "open":
        return [target for target in scores if target not in decided and target not in hidden]
    rows = queue.targets.order_by("position").filter(**({"gold": True} if shown == "gold" else {}))
    pks = rows.values_list("pk", flat=True)
    return [pk for pk in pks if (shown == "gold" or pk in decided) and pk not in hidden]


def _rows(pks: Sequence[int], scores: dict[int, float]) -> list[ListedTarget]:
    targets = Target.objects.with_links().in_bulk(pks)
    seats = dict(Target.objects.filter(pk__in=pks).values_list("pk", "conversation__data__scenario__seats"))
    decided = set(Judgment.objects.filter(target__in=pks, decides=True).values_list("target", flat=True))
    rows = [targets[pk] for pk in pks if pk in targets]
    return [_row(row, seats.get(row.pk), scores.get(row.pk), decided=row.pk in decided) for row in rows]


def _row(target: Target, seats: Sequence[str] | None, disagreement: float | None, *, decided: bool) -> ListedTarget:
    """The row of a target; `seats` are the names in a conversation."""
    try:
        if target.seat is None:
            seat = ""
        else:
            seat = games.seat_name(target.game, target.seat) if seats is None else seats[target.seat]
    except BadInput:
        seat = f"seat {target.seat}"
    return ListedTarget(target, games.label(target.game), seat, disagreement, decided)


@require_http_methods(["GET", "POST"])
@researchers
def decide(request: HttpRequest, pk: int, target_id: int) -> HttpResponseBase:
    """One target with the labels of its annotators side by side; a decision leads to the next target."""
    queue, user, context = _changeable(request, pk)
    target = get_or_404(queue.targets.with_games(), pk=target_id)
    if context["awaited"] is not None:
        return render(request, "judgments/results/decide.html", {**context, "target": target})
    if target.pk in unrevealed(queue, user):
        raise Http404
    columns = columns_of(decisions.annotators_of(target), numbers_in(queue.pk))
    decision = Judgment.objects.filter(target=target, decides=True).with_labels().first()
    context |= {
        "target": target,
        "columns": columns,
        "decision": decision,
        "following": _following(queue, user, target),
    }
    if request.method == "POST":
        return _decided(request, user, context)
    context["note"] = decision.reason if decision else ""
    return render(request, "judgments/results/decide.html", context | _shown(target, columns, decision))


def _decided(request: HttpRequest, user: User, context: dict[str, Any]) -> HttpResponseBase:
    """Store what was sent; a refused decision is shown again with the reason."""
    target, columns, decision = context["target"], context["columns"], context["decision"]
    note = request.POST.get("note", "")
    try:
        labels = _sent(request, target, columns)
        decisions.decide(target=target, by=user, labels=labels, note=note)
        if "gold" in request.POST or target.gold:
            decisions.set_gold(target=target, gold=labels is not None and "gold" in request.POST)
    except BadInput as error:
        refusal = f"{error.where[:1].upper()}{error.where[1:]}: {error.why}."
        shown = _shown(target, columns, decision, request)
        page = context | shown | {"note": note, "refusal": refusal}
        return render(request, "judgments/results/decide.html", page, status=400)
    messages.success(request, "Decided.")
    following = context["following"]
    if following is None:
        return redirect("judgments:decisions", target.queue_id)
    return redirect("judgments:decide", target.queue_id, following)


def _sent(request: HttpRequest, target: Target, columns: Sequence[Column]) -> list[Any] | None:
    """The labels that were decided on: all of one annotator, or row by row; None: it cannot be scored."""
    if "unscored" in request.POST:
        return None
    taken = request.POST.get("take", "")
    if not taken:
        return SideBySide(target, columns, data=request.POST).labels()
    column = next((column for column in columns if str(column.number) == taken), None)
    if column is None:
        raise BadInput(f"there is no annotator {taken[:9]}", "take")
    return None if column.labels is None else list(column.labels.values())


def _shown(
    target: Target, columns: Sequence[Column], decision: Judgment | None, request: HttpRequest | None = None
) -> dict[str, Any]:
    """The context of one target: its conversation and rows, or why the game cannot be read."""
    context: dict[str, Any] = {"codebook": target.codebook()}
    if decision is not None:
        try:
            check_changeable(decision, target.queue)
        except BadInput as error:
            context["closed"] = error.why
    try:
        before = None if decision is None else decision.records()
        side = SideBySide(target, columns, before, None if request is None else request.POST)
        context |= {"sheet": side.sheet(), "transcript": side.game.transcript()}
        context["seat_name"] = "" if target.seat is None else side.game.scenario.seats[target.seat]
        if marks.offered(side.codebook):
            types = marks.types_for_page(side.codebook, keys.of_labels(side.codebook, {}))
            context |= {"turns": side.lines, "label_types": json.dumps(types)}
            context["label_actions"] = json.dumps(keys.actions_for_page({}))
            context["game_context"] = game_context(side.game, hidden=False)
            context["label_forms"] = {"marks": context["sheet"].marks, "suggestions": "[]"}
    except BadInput as error:
        context["problem"] = str(error)
    return context


def _following(queue: Queue, user: User, target: Target) -> int | None:
    """The next target to decide after this one, in the order of disagreement, from the first again at the end."""
    result = analyses.of_queue(queue, "disagreement").result
    order = () if result is None else result.targets
    decided = set(Judgment.objects.filter(queue=queue, decides=True).values_list("target", flat=True))
    hidden = unrevealed(queue, user)
    at = order.index(target.pk) + 1 if target.pk in order else 0
    left = (pk for pk in (*order[at:], *order[:at]) if pk not in decided and pk not in hidden and pk != target.pk)
    return next(left, None)


@require_POST
@researchers
def gold(request: HttpRequest, pk: int, target_id: int) -> HttpResponseBase:
    """Put a decided target into the gold set, or take it out."""
    queue, _, context = _changeable(request, pk)
    target = get_or_404(queue.targets.all(), pk=target_id)
    if context["awaited"] is None:
        accepted(request, partial(decisions.set_gold, target=target, gold="gold" in request.POST))
    return redirect("judgments:decide", pk, target_id)
