"""Judging one seat after another: the conversation left, the codebook right, the next seat preloaded.

The page preloads the next seat and names it in the form (`next`); the response to a judgment then leaves that seat's
place empty, and htmx moves the preloaded content into it. Without scripts every judgment reloads the page. Annotators
see their agreement only after their last seat, without what others said of seats that wait for them in another queue.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from training.errors import BadInput
from training.labels.codebooks import Codebook
from training.records import Label
from webapp.accounts.permissions import current_user, get_or_404, members
from webapp.core.http import integer, render_page, wants_fragment
from webapp.judgments import games
from webapp.judgments.annotating import services as annotating
from webapp.judgments.annotating import turns
from webapp.judgments.annotating.forms import ValuesForm, form_value
from webapp.judgments.models import Judgment, Queue, Target
from webapp.judgments.queues import reservations
from webapp.judgments.results import comparison

VALUE = "value"
"""The prefix of a label type's name in the form, which avoids clashes with other fields."""


@require_http_methods(["GET", "POST"])
@members
def annotate(request: HttpRequest, pk: int) -> HttpResponseBase:
    """The next target of a queue for this user; `?after=` requests the one after a target, `?target=` a judged one,
    to change it.
    """
    user = current_user(request)
    queue = get_or_404(Queue.objects.annotated_by(user).select_related("codebook_version__codebook"), pk=pk)
    if request.method == "POST":
        return _judged(request, queue)
    after, reopened = integer(request, "after", 0), integer(request, "target", 0)
    if after and wants_fragment(request):
        following = reservations.offer(queue=queue, user=user, besides=after)
        context = {"queue": queue, "after": after, **(_target(following) if following else {})}
        return render(request, "judgments/annotate_next.html", context)
    if reopened:
        return _reopened(request, queue, get_or_404(queue.targets.judged_by(user).with_games(), pk=reopened))
    return _page(request, queue, reservations.offer(queue=queue, user=user))


@dataclass(frozen=True)
class Asked:
    """What is asked about one target: a form per seat of which something is asked, and one of the game if something is.

    `marks` is the list of labels of turns as the page sends it.
    """

    forms: Sequence[tuple[str, int | None, ValuesForm]]
    """Each with its heading and the seat that it is about."""
    marks: str = ""

    def is_valid(self) -> bool:
        """Whether all forms are; each keeps its own errors."""
        valid = [form.is_valid() for _, _, form in self.forms]
        return all(valid)

    def labels(self) -> list[Label]:
        """Return the labels of valid forms; those of turns are not among them."""
        return [
            label for _, seat, form in self.forms for label in annotating.labels_of(form.codebook, form.values(), seat)
        ]


def _judged(request: HttpRequest, queue: Queue) -> HttpResponseBase:
    """Store a judgment and show the next target; a refused one is shown again with the reason."""
    user = current_user(request)
    target = get_or_404(Target.everything.with_games().filter(queue=queue), pk=request.POST.get("target", ""))
    if not queue.targets.filter(pk=target.pk).exists():
        messages.warning(request, "Consent to the use of this game was withdrawn. Your answer was not stored.")
        return _page(request, queue, queue.targets.open_for(user).with_games().first())
    asked = _asked(target, request.POST)
    reason = request.POST.get("reason", "")
    unscored, refusal = "unscored" in request.POST, ""
    if unscored or asked.is_valid():
        try:
            labels = None if unscored else [*asked.labels(), *_marked(target, asked.marks)]
            annotating.annotate(target=target, by=user, labels=labels, reason=reason)
        except BadInput as error:
            refusal = f"{error.where.capitalize()}: {error.why}."
        else:
            if "reopened" in request.POST:
                messages.success(request, "Saved. Your earlier answer stays in the judgment's history.")
                return redirect("judgments:own_judgments", queue.pk)
            if not wants_fragment(request):
                return redirect("judgments:annotate", queue.pk)
            following = reservations.offer(queue=queue, user=user)
            preloaded = following is not None and request.POST.get("next") == str(following.pk)
            return _page(request, queue, following, preloaded=preloaded)
    # htmx swaps successful responses only
    status = 200 if wants_fragment(request) else 400
    entered = {"reason": reason, "refusal": refusal, "reopened": "reopened" in request.POST}
    shown = _asked(target, marks=asked.marks) if unscored else asked
    return _page(request, queue, target, shown, entered, status=status)


def _marked(target: Target, marks: str) -> list[Label]:
    codebook = target.codebook()
    return (
        turns.labels_from_page(marks, codebook, games.judgeable(target).turn_lines()) if turns.offered(codebook) else []
    )


def _reopened(request: HttpRequest, queue: Queue, target: Target) -> HttpResponse:
    """The page of a target with this person's answer, for them to change as long as it was not exported."""
    judgment = Judgment.objects.with_labels().get(target=target, author=current_user(request), decides=False)
    entered: dict[str, Any] = {"reason": judgment.reason, "reopened": True}
    try:
        annotating.check_changeable(judgment, queue)
    except BadInput as error:
        entered["closed"] = error.why
    return _page(request, queue, target, _asked(target, labels=judgment.records() or ()), entered)


def _asked(target: Target, data: QueryDict | None = None, labels: Sequence[Label] = (), marks: str = "") -> Asked:
    """What is asked about a target, filled with what was sent or with stored labels.

    Two targets stand on the page at once, so their ids differ.
    """
    codebook = target.codebook()
    forms: list[tuple[str, int | None, ValuesForm]] = []
    places: list[tuple[str, int | None, Codebook, str]] = [("The game", None, codebook, "game")]
    if target.seat is not None:
        places.append(("", target.seat, codebook, "seat"))
    else:
        for number, role in enumerate(games.roles(target.game)):
            places.append((games.seat_name(target.game, number), number, codebook.asking(role), "seat"))
    for heading, seat, asking, about in places:
        initial = {
            label.label: form_value(codebook.type_of(label.label), label.value)
            for label in labels
            if label.turn is None and label.seat == seat
        }
        name = VALUE if seat is None or target.seat is not None else f"{VALUE}-{seat}"
        ids = f"id-{target.pk}-%s"
        form = ValuesForm(asking, data, prefix=name, auto_id=ids, initial=initial or None, about=about)
        if form.fields:
            forms.append((heading, seat, form))
    if data is not None:
        marks = data.get("labels", "")
    elif labels and turns.offered(codebook):
        marks = turns.labels_for_page(labels, games.game_of(target).turn_lines())
    return Asked(forms, marks)


def _page(
    request: HttpRequest,
    queue: Queue,
    target: Target | None,
    asked: Asked | None = None,
    entered: Mapping[str, Any] | None = None,
    *,
    preloaded: bool = False,
    status: int = 200,
) -> HttpResponse:
    user = current_user(request)
    total = queue.targets.count()
    remaining, awaited = queue.targets.open_for(user).count(), queue.targets.awaited_by(user).exists()
    context: dict[str, Any] = {"queue": queue, "total": total, "done": total - remaining, "preloaded": preloaded}
    context |= {"comparison": None if awaited else comparison.of_queue(queue, user), **(entered or {})}
    if target is not None:
        context |= {"following": remaining > 1 and not context.get("reopened"), "target": target}
        context |= {} if preloaded else _target(target, asked)
    return render_page(request, "judgments/annotate.html", context, "judging", status)


def _target(target: Target, asked: Asked | None = None) -> dict[str, Any]:
    """The context of one target: its conversation, or the reason why it cannot be read, and the forms."""
    context: dict[str, Any] = {"target": target, "codebook": target.codebook()}
    try:
        game = games.judgeable(target)
        asked = asked or _asked(target)
        context |= {"transcript": game.transcript()}
        context["seat_name"] = "" if target.seat is None else game.scenario.seats[target.seat]
        if turns.offered(context["codebook"]):
            context |= {"turns": game.turn_lines(), "label_types": turns.types_for_page(context["codebook"])}
    except BadInput as error:
        context["problem"] = str(error)
    return {**context, "asked": asked}
