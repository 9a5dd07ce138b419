"""Pages of the datasets. Researchers see all of them and change their own; admins change all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from training.errors import BadInput, IllegalMove
from training.games import REGISTRY, anonymised, make, replay
from training.records import ALL, Episode, Judgment, Scenario
from webapp.accounts.permissions import current_user, get_or_404, researchers
from webapp.core import quotas, streaming
from webapp.core.http import integer, render_page, wants_fragment
from webapp.core.transcripts import Start, TranscriptLine, lines_of, starts
from webapp.scenarios import imports, services, withdrawing
from webapp.scenarios.forms import ForkForm, ScenarioForm, UploadForm
from webapp.scenarios.models import Dataset, DatasetVersion, Import, StoredConversation, StoredScenario
from webapp.scenarios.signals import WaitingQueue
from webapp.scenarios.titles import seats_of

PAGE = 24
ORDERS = {"-latest": "newest first", "latest": "oldest first", "name": "by name"}
"""The orders of the list; the first is the default."""


@require_GET
@researchers
def dataset_list(request: HttpRequest) -> HttpResponse:
    words, game = request.GET.get("q", ""), request.GET.get("game", "")
    requested = request.GET.get("order", "")
    order = requested if requested in ORDERS else next(iter(ORDERS))
    datasets = Dataset.objects.visible_to(current_user(request)).listed(words, game, order)
    page = Paginator(datasets.prefetch_related("versions"), PAGE).get_page(integer(request, "page", 1, 1))
    context = {
        "page": page, "words": words, "game": game, "order": order, "orders": ORDERS, "games": sorted(REGISTRY),
        "imports": Import.objects.filter(owner=current_user(request)).under_way(),
    }  # fmt: skip
    return render_page(request, "scenarios/list.html", context, "results")


@require_http_methods(["GET", "POST"])
@researchers
def upload(request: HttpRequest) -> HttpResponseBase:
    form = UploadForm(request.POST or None, request.FILES or None)
    if request.method == "POST" and form.is_valid():
        cleaned = form.cleaned_data
        try:
            record = imports.upload(
                owner=current_user(request), format=cleaned["format"], name=cleaned["name"], files=cleaned["chosen"],
                source=cleaned["source"], licence=cleaned["licence"], options=form.options,
            )  # fmt: skip
        except BadInput as error:  # somebody took the name meanwhile, or a quota is used up
            form.add_error(None if error.where in quotas.WORDS else "name", error.why)
        else:
            return redirect("scenarios:import", record.pk)
    return render(request, "scenarios/upload.html", {"form": form}, status=400 if form.errors else 200)


@require_GET
@researchers
def import_page(request: HttpRequest, pk: int) -> HttpResponse:
    """The import's report, with buttons to confirm or discard it; once stored, the page redirects to the dataset.

    A polling page sends the state it shows as `seen`: the response is 204 if nothing has changed.
    """
    record = get_or_404(Import.objects.changeable_by(current_user(request)).select_related("version__dataset"), pk=pk)
    version_tag, client_tag = f"{record.state} {record.progress:.2f}", request.GET.get("seen", "")
    if wants_fragment(request) and client_tag == version_tag:
        return HttpResponse(status=204)
    changed = wants_fragment(request) and client_tag.partition(" ")[0] != record.state
    context = {"import": record, "seen": version_tag, "changed": changed}
    response = render_page(request, "scenarios/import.html", context, "state")
    if wants_fragment(request) and record.state == Import.State.STORED and record.version is not None:
        response["HX-Redirect"] = reverse(
            "scenarios:version", args=[record.version.dataset.name, record.version.number]
        )
    return response


@require_POST
@researchers
def import_store(request: HttpRequest, pk: int) -> HttpResponseBase:
    record = get_or_404(Import.objects.changeable_by(current_user(request)), pk=pk)
    try:
        imports.accept_import(pk=record.pk)
    except BadInput as error:
        return render(request, "scenarios/import.html", {"import": record, "problem": str(error)}, status=409)
    return redirect("scenarios:import", pk)


@require_POST
@researchers
def import_drop(request: HttpRequest, pk: int) -> HttpResponseBase:
    record = get_or_404(Import.objects.changeable_by(current_user(request)), pk=pk)
    imports.drop_import(pk=record.pk)
    messages.info(request, "The upload was discarded; nothing was stored.")
    return redirect("scenarios:list")


def _version(request: HttpRequest, name: str, number: int) -> DatasetVersion:
    versions = DatasetVersion.objects.visible_to(current_user(request)).select_related("dataset__owner")
    return get_or_404(versions, dataset__name=name, number=number)


@require_GET
@researchers
def newest(request: HttpRequest, name: str) -> HttpResponseBase:
    dataset = get_or_404(Dataset.objects.visible_to(current_user(request)), name=name)
    return redirect("scenarios:version", name, dataset.newest().number)


@require_GET
@researchers
def version_page(request: HttpRequest, name: str, number: int) -> HttpResponse:
    return _version_page(request, _version(request, name, number))


def _version_page(request: HttpRequest, version: DatasetVersion, problem: str = "") -> HttpResponse:
    """A version's scenarios; with a `problem`, the reason why it was not exported."""
    words = request.GET.get("q", "")
    content = version.scenarios.none() if version.closed_at else version.scenarios.all()
    scenarios = content.matching(words).with_counts().order_by("position")
    page = Paginator(scenarios, PAGE).get_page(integer(request, "page", 1, 1))
    context = {
        "version": version,
        "dataset": version.dataset,
        "replacement": version.replacement,
        "versions": version.dataset.versions.newest_first(),
        "page": page,
        "rows": [(stored, seats_of(Scenario.from_dict(stored.data))) for stored in page],
        "words": words,
        "runs": version.runs.order_by("-created_at")[:5],
        "may_change": current_user(request).may_change(version.dataset.owner_id),
        "fork_form": ForkForm(initial={"name": f"{version.dataset.name}-fork"}),
        "problem": problem,
    }
    return render_page(request, "scenarios/version.html", context, "scenarios", 409 if problem else 200)


@require_GET
@researchers
def export(request: HttpRequest, name: str, number: int) -> HttpResponseBase:
    version = _version(request, name, number)
    try:
        services.check_exportable(version, current_user(request))
    except BadInput as error:
        return _version_page(request, version, error.why)
    lines = streaming.lines(line.dumps() for line in services.lines_of(version))
    response = streaming.stream(request, lines, "application/jsonl; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}-v{number}.jsonl"'
    response["X-Content-SHA256"] = version.sha256
    return response


@require_POST
@researchers
def fork(request: HttpRequest, name: str, number: int) -> HttpResponseBase:
    version = _version(request, name, number)
    form = ForkForm(request.POST)
    if form.is_valid():
        try:
            copy = services.fork(version=version, name=form.cleaned_data["name"], by=current_user(request))
        except BadInput as error:  # somebody took the name meanwhile
            form.add_error("name", error.why)
        else:
            messages.success(request, f"{version} was copied; this copy is yours to change.")
            return redirect("scenarios:version", copy.dataset.name, copy.number)
    return render(request, "scenarios/fork.html", {"form": form, "version": version}, status=400)


@require_POST
@researchers
def delete(request: HttpRequest, name: str) -> HttpResponseBase:
    user = current_user(request)
    dataset = get_or_404(Dataset.objects.changeable_by(user), name=name)
    try:
        services.delete_dataset(dataset=dataset)
    except BadInput as error:
        messages.error(request, f"{name} was not deleted: {error.why}.")
        return redirect("scenarios:newest", name)
    messages.success(request, f"{name} was deleted.")
    return redirect("scenarios:list")


def _stored(request: HttpRequest, name: str, number: int, key: str) -> StoredScenario:
    readable = StoredScenario.objects.filter(version=_version(request, name, number), version__closed_at=None)
    return get_or_404(readable.select_related("version__dataset"), key=key)


def _views(scenario: Scenario) -> tuple[list[Start], str]:
    """Return what each seat sees at the start, or why the present rules do not play the scenario."""
    try:
        game = make(anonymised(scenario))
    except BadInput as error:
        return [], str(error)
    return starts(game), ""


@require_GET
@researchers
def scenario_page(request: HttpRequest, name: str, number: int, key: str) -> HttpResponse:
    stored = _stored(request, name, number, key)
    scenario, user = Scenario.from_dict(stored.data), current_user(request)
    awaited = stored.conversations.all().awaited_by(user)
    around = stored.version.scenarios.around(stored.position)
    views, problem = _views(scenario)
    context = {
        "stored": stored, "scenario": scenario, "version": stored.version, "around": around,
        "views": views, "problem": problem,
        "conversations": [_conversation(row, awaited.get(row.pk)) for row in stored.conversations.order_by("position")],
        "may_change": user.may_change(stored.version.dataset.owner_id),
    }  # fmt: skip
    return render(request, "scenarios/scenario.html", context)


def _conversation(row: StoredConversation, awaited_in: WaitingQueue | None) -> dict[str, Any]:
    """Return the page's data of a conversation, with its own roles: new games may deal others.

    What others said of it is left out for a reader who has yet to judge it, in the queue `awaited_in`.
    """
    episode = Episode.from_dict(row.data)
    roles = [(name, role) for name, role in zip(episode.scenario.seats, episode.roles, strict=False) if role]
    metrics = episode.metrics | {
        f"{name} of {episode.scenario.seats[seat]}": value
        for seat, values in episode.seat_metrics.items()
        for name, value in values.items()
    }
    lines, problem = conversation_lines(episode)
    judgments = row.judgments if awaited_in is None else []
    return {
        "row": row,
        "lines": lines,
        "problem": problem,
        "metrics": metrics,
        "roles": roles,
        "awaited_in": awaited_in,
        "judgments": [_judgment(Judgment.from_dict(data), episode.scenario.seats) for data in judgments],
    }


def _judgment(record: Judgment, names: Sequence[str]) -> dict[str, Any]:
    """Return one author's values for a seat, or for the conversation as a whole, with their mean."""
    seat = "all" if record.seat is None else names[record.seat] if 0 <= record.seat < len(names) else str(record.seat)
    numbers = (record.numbers or {}).values()
    mean = sum(numbers) / len(numbers) if numbers else None
    return {"record": record, "seat": seat, "mean": mean}


def conversation_lines(episode: Episode) -> tuple[list[TranscriptLine], str]:
    """Return what happened from the all-seeing view; of a conversation that the present rules refuse, the reason."""
    try:
        messages = replay(episode.scenario, episode.moves).observe(ALL).messages
    except (BadInput, IllegalMove) as error:
        return [], str(error)
    return lines_of(messages, episode.scenario.seats), ""


@require_POST
@researchers
def withdraw(request: HttpRequest, name: str, number: int, key: str) -> HttpResponseBase:
    """Withdraw a conversation of one's own dataset, and every copy of it, for the person who took part in it."""
    stored, user = _stored(request, name, number, key), current_user(request)
    get_or_404(Dataset.objects.changeable_by(user), pk=stored.version.dataset_id)
    conversation = get_or_404(stored.conversations.all(), pk=request.POST.get("conversation", ""))
    withdrawing.withdraw_conversation(conversation=conversation, by=user)
    messages.success(request, "The conversation was withdrawn. A version without it is being made.")
    return redirect("scenarios:version", name, number)


@require_http_methods(["GET", "POST"])
@researchers
def scenario_edit(request: HttpRequest, name: str, number: int, key: str) -> HttpResponseBase:
    stored = _stored(request, name, number, key)
    user = current_user(request)
    get_or_404(Dataset.objects.changeable_by(user), pk=stored.version.dataset_id)
    scenario, note = Scenario.from_dict(stored.data), request.POST.get("note", "").replace("\x00", "")[:400]
    views, problem = _views(scenario)
    if problem:  # the form has a field for each of the game's present settings
        messages.error(request, f"{key} cannot be edited: the present rules do not play it: {problem}.")
        return redirect("scenarios:scenario", name, number, key)
    form = ScenarioForm(scenario, request.POST or None)
    valid, saving, outdated = form.is_valid(), request.method == "POST" and "preview" not in request.POST, ""
    try:
        services.check_newest(stored.version)
        if valid and saving:
            version = services.change_scenario(stored=stored, scenario=form.scenario, by=user, note=note)
            messages.success(request, f"Saved as {version}; {stored.version} is unchanged.")
            return redirect("scenarios:scenario", name, version.number, form.scenario.id)
    except BadInput as error:
        outdated = error.why
    if request.method == "GET":
        form.preview = views
    context = {"form": form, "stored": stored, "version": stored.version, "note": note, "outdated": outdated}
    status = (409 if outdated else 400) if saving else 200
    return render_page(request, "scenarios/edit.html", context, "preview", status)
