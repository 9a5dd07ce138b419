"""The page of a search over labels, its file, and a person's saved searches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.postgres.aggregates import ArrayAgg
from django.core.paginator import Paginator
from django.db.models import Count, Exists, OuterRef, QuerySet, Value
from django.http import HttpRequest, HttpResponse, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from training.errors import BadInput
from training.games import REGISTRY
from training.labels.codebooks import LabelType
from webapp.accounts.permissions import current_user, get_or_404, researchers
from webapp.core import csv_files
from webapp.core.http import accepted, integer, render_page
from webapp.judgments import games
from webapp.judgments.annotating.turns import TurnLine
from webapp.judgments.display import ShownValue
from webapp.judgments.models import JudgedGame, Label, LabelledGame, SavedSearch, role_at
from webapp.judgments.search import services
from webapp.judgments.search.filters import (
    AUTHORS,
    LABELLED_GAME,
    OUTCOMES,
    PLACES,
    LabelFilter,
    offered_labels,
    placed,
)
from webapp.judgments.search.quotes import Quote, quotes
from webapp.runs.models import PlayedEpisode, Run
from webapp.scenarios.models import StoredConversation

PAGE = 25
MOST_LISTED = 5_000
"""Labels that the page counts and lists."""
MOST_ROWS = 100_000
"""Rows of a file."""
MOST_RUNS = 200
"""Runs to choose from."""


@dataclass(frozen=True)
class Hit:
    """One label of the results. `seat` and `quotes` are empty where the game cannot be read any more."""

    row: Label
    shown: ShownValue
    title: str
    address: str
    seat: str
    role: str
    quotes: list[Quote]


@require_GET
@researchers
def search(request: HttpRequest) -> HttpResponse:
    """The labels that the query string asks for; a fragment is the results alone."""
    user = current_user(request)
    form = LabelFilter(request.GET)
    matches = form.labels(user) if form.is_valid() else Label.objects.none()
    # one row of keys, without what a page shows of each label
    selected = matches.values("pk", "judgment", labelled_game=LABELLED_GAME)[: MOST_LISTED + 1].aggregate(
        keys=ArrayAgg("pk", order_by=("-judgment", "pk"), default=Value([])),
        games=Count("labelled_game", distinct=True),
    )
    page = Paginator(selected["keys"][:MOST_LISTED], PAGE).get_page(integer(request, "page", 1, low=1))
    rows = placed(Label.objects.filter(pk__in=list(page))).select_related(
        "judgment__codebook_version__codebook",
        "judgment__match",
        "judgment__judge",
        "judgment__episode__run",
        "judgment__conversation__scenario__version__dataset",
    )
    context = {
        "form": form,
        "page": page,
        "hits": list(_hits(rows)) if page else [],
        "game_count": selected["games"],
        "more": len(selected["keys"]) > MOST_LISTED,
        "labels": offered_labels(user),
        "games": sorted((name, REGISTRY[name].title) for name in _games() if name in REGISTRY),
        "runs": list(_runs().values_list("pk", "name")[:MOST_RUNS]),
        "outcomes": [*OUTCOMES],
        "authors": AUTHORS,
        "places": PLACES,
        "query": _query(request),
        "saved": SavedSearch.objects.filter(owner=user).order_by("name"),
    }
    return render_page(request, "judgments/search.html", context, "results")


def _query(request: HttpRequest) -> str:
    """The search without its page, in one order: what a saved search and a link hold."""
    names = [*LabelFilter.base_fields]
    return urlencode([(name, value) for name in names if (value := request.GET.get(name, "").strip())])


def _runs() -> QuerySet[Run]:
    """Runs of which some games are labelled, newest first."""
    labelled = LabelledGame.objects.filter(episode__run=OuterRef("pk"))
    return Run.objects.filter(Exists(labelled)).order_by("-pk")


def _games() -> Iterable[str]:
    return LabelledGame.objects.order_by().values_list("game", flat=True).distinct()


def _hits(rows: Iterable[Label]) -> Iterator[Hit]:
    """The results in their order; each game is read once."""
    read: dict[tuple[int | None, int | None, int | None], tuple[games.GameRecord | None, list[TurnLine]]] = {}
    types: dict[int, dict[str, LabelType]] = {}
    for row in rows:
        judgment = row.judgment
        key = (judgment.match_id, judgment.episode_id, judgment.conversation_id)
        if key not in read:
            read[key] = _read(judgment.game)
        version = judgment.codebook_version
        if version.pk not in types:
            types[version.pk] = {label_type.name: label_type for label_type in version.record().labels}
        record, lines = read[key]
        label = row.record()
        seat: int | None = row.of_seat  # type: ignore[attr-defined]
        names = record.scenario.seats if record is not None else ()
        yield Hit(
            row,
            ShownValue(types[version.pk][row.name], label),
            games.label(judgment.game),
            address(judgment.game),
            names[seat] if seat is not None and seat < len(names) else "",
            role_at(judgment.game, seat).replace("_", " ") if seat is not None else "",
            quotes(label, lines),
        )


def _read(game: JudgedGame) -> tuple[games.GameRecord | None, list[TurnLine]]:
    try:
        record = games.of(game)
        return record, record.turn_lines(hidden=True)
    except BadInput:
        return None, []


def address(game: JudgedGame) -> str:
    """Return the page on which a judged game can be read."""
    if isinstance(game, PlayedEpisode):
        return reverse("runs:conversation", args=[game.run_id, game.step, game.number])
    if isinstance(game, StoredConversation):
        version = game.scenario.version
        return reverse("scenarios:scenario", args=[version.dataset.name, version.number, game.scenario.key])
    return reverse("arena:replay", args=[game.pk])


@require_GET
@researchers
def search_file(request: HttpRequest) -> HttpResponseBase:
    """The results as a CSV file: a row a label, without the words of games."""
    form = LabelFilter(request.GET)
    matches = form.labels(current_user(request)) if form.is_valid() else Label.objects.none()
    rows = matches.select_related(
        "judgment__codebook_version__codebook", "judgment__judge", "judgment__episode", "judgment__conversation"
    )
    head = ("label", "value", "codebook", "version", "game", "source", "seat", "turn", "start", "end", "other turn",
            "step", "author", "reason")  # fmt: skip
    return csv_files.response(request, "labels", head, map(_cells, rows[:MOST_ROWS].iterator(chunk_size=500)))


def _cells(row: Label) -> tuple[object, ...]:
    judgment, label = row.judgment, row.record()
    game = judgment.conversation.source if judgment.conversation is not None else ""
    if judgment.match_id is not None:
        game = f"match:{judgment.match_id}"
    elif judgment.episode is not None:
        game = f"run:{judgment.episode.run_id}/{judgment.episode.step}/{judgment.episode.number}"
    return (
        row.name, label.words, judgment.codebook_version.codebook.name, judgment.codebook_version.number,
        row.of_game, game, row.of_seat, row.turn, row.start, row.end, row.other_turn,  # type: ignore[attr-defined]
        judgment.episode.step if judgment.episode is not None else None, judgment.author_kind, row.reason,
    )  # fmt: skip


@require_POST
@researchers
def save(request: HttpRequest) -> HttpResponseBase:
    """Save the search under a name, and return to it."""
    query = request.POST.get("query", "")
    saving = partial(services.save, owner=current_user(request), name=request.POST.get("name", ""), query=query)
    if accepted(request, saving):
        messages.success(request, "The search was saved.")
    return redirect(f"{reverse('judgments:search')}?{QueryDict(query).urlencode()}")


@require_POST
@researchers
def forget(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Delete a search of this person."""
    search = get_or_404(SavedSearch.objects.filter(owner=current_user(request)), pk=pk)
    search.delete()
    messages.success(request, f"“{search.name}” was deleted.")
    return redirect("judgments:search")
