"""Pages of suggestions and classifiers."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from training.errors import BadInput
from webapp.accounts.permissions import current_user, get_or_404, researchers
from webapp.core.http import STOP_ASKING, accepted, integer, wants_fragment
from webapp.judgments.models import Classifier, Queue, Suggestion
from webapp.judgments.suggesting import acceptance, services, sources
from webapp.judgments.suggesting.forms import ClassifierForm
from webapp.judgments.suggesting.withdrawn import flagged, has_withdrawn

PAGE = 50


def _changeable(request: HttpRequest, pk: int) -> Queue:
    """The queue, if this user may change it; else 404."""
    queues = Queue.objects.changeable_by(current_user(request)).select_related("codebook_version__codebook")
    return get_or_404(queues, pk=pk)


def section(queue: Queue) -> dict[str, Any]:
    """The context of a queue's section about suggestions, for whoever may change the queue."""
    reports = acceptance.of_queue(queue)
    at_work = any(report.run is not None and report.run.working for report in reports)
    return {"queue": queue, "reports": reports, "at_work": at_work, "offered": sources.offered(queue)}


@require_GET
@researchers
def suggestions(request: HttpRequest, pk: int) -> HttpResponse:
    """The section alone, which a page polls while a source is at work; as a page of its own it is the queue's."""
    queue = _changeable(request, pk)
    if not wants_fragment(request):
        return redirect("judgments:queue", pk)
    context = section(queue)
    status = 200 if context["at_work"] else STOP_ASKING
    return render(request, "judgments/suggestions.html", context, status=status)


@require_POST
@researchers
def suggest(request: HttpRequest, pk: int) -> HttpResponseBase:
    queue, source = _changeable(request, pk), request.POST.get("source", "")
    accepted(request, partial(services.suggest, queue=queue, source=source))
    return redirect("judgments:queue", pk)


@require_POST
@researchers
def suggestions_delete(request: HttpRequest, pk: int) -> HttpResponseBase:
    queue, source = _changeable(request, pk), request.POST.get("source", "")
    count = services.delete_suggestions(queue=queue, source=source)
    messages.info(request, f"Suggestions deleted: {count}." if count else "It had no suggestions here.")
    return redirect("judgments:queue", pk)


@require_GET
@researchers
def classifier_list(request: HttpRequest) -> HttpResponse:
    rows = Classifier.objects.visible_to(current_user(request)).listed()
    page = Paginator(rows, PAGE).get_page(integer(request, "page", 1, low=1))
    return render(request, "judgments/classifiers.html", {"page": page, "withdrawn": flagged(page)})


@require_http_methods(["GET", "POST"])
@researchers
def classifier_new(request: HttpRequest) -> HttpResponseBase:
    user = current_user(request)
    form = ClassifierForm(user, request.POST or None, initial={name: request.GET[name] for name in request.GET})
    if request.method == "POST" and form.is_valid():
        try:
            classifier = services.create_classifier(owner=user, **form.cleaned_data)
        except BadInput as error:
            form.add_error(error.where if error.where in form.fields else None, error.why)
        else:
            return redirect("judgments:classifier", classifier.name)
    return render(request, "judgments/classifier_new.html", {"form": form}, status=400 if form.errors else 200)


@require_GET
@researchers
def classifier_page(request: HttpRequest, name: str) -> HttpResponse:
    """A classifier; while it is trained the page polls its progress, and gets the whole at the end."""
    user = current_user(request)
    classifier = get_or_404(Classifier.objects.visible_to(user).listed(), name=name)
    info = classifier.info
    labelled = Suggestion.objects.filter(source=f"classifier:{name}", target__queue__in=Queue.objects.visible_to(user))
    games = labelled.values("target__queue", "target__queue__name").order_by("-target__queue")
    context = {
        "classifier": classifier,
        "info": info,
        "rows": list(zip(info.labels, info.agreement, info.accuracy, strict=True)) if info and info.agreement else [],
        "labelled": games.annotate(targets=Count("target", distinct=True), count=Count("pk")),
        "may_change": user.may_change(classifier.owner_id),
        "withdrawn": has_withdrawn(classifier),
    }
    if not wants_fragment(request):
        return render(request, "judgments/classifier.html", context)
    status = 200 if classifier.working else STOP_ASKING
    return render(request, "judgments/classifier_state.html", {**context, "swap": True}, status=status)


def _own_classifier(request: HttpRequest, name: str) -> Classifier:
    return get_or_404(Classifier.objects.changeable_by(current_user(request)), name=name)


@require_POST
@researchers
def classifier_retry(request: HttpRequest, name: str) -> HttpResponseBase:
    accepted(request, partial(services.retry_classifier, classifier=_own_classifier(request, name)))
    return redirect("judgments:classifier", name)


@require_POST
@researchers
def classifier_delete(request: HttpRequest, name: str) -> HttpResponseBase:
    services.delete_classifier(classifier=_own_classifier(request, name))
    messages.success(request, f"{name} was deleted.")
    return redirect("judgments:classifiers")
