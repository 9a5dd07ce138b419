"""Pages of the behaviours of a run: their curves, and the words that were suggested at a point."""

from __future__ import annotations

from dataclasses import dataclass

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_GET

from training.errors import BadInput
from training.labels.codebooks import LabelType
from webapp.accounts.permissions import current_user, get_or_404, researchers
from webapp.core.http import integer, render_page
from webapp.judgments import games
from webapp.judgments.annotating.turns import TurnLine
from webapp.judgments.display import ShownValue
from webapp.judgments.models import JudgedGame, Suggestion
from webapp.judgments.results import emergence, suggested
from webapp.judgments.results.suggested import SuggestedTarget
from webapp.judgments.search.quotes import Quote, quotes
from webapp.judgments.search.views import address
from webapp.runs.models import Run

PAGE = 25

OUTCOMES: dict[emergence.Outcome, str] = {"survived": "survivors and eliminated", "won": "winners and losers"}


@require_GET
@researchers
def of_run(request: HttpRequest, run_id: int) -> HttpResponse:
    """The behaviours of a run over its steps, and by outcome; a fragment is the results alone."""
    user = current_user(request)
    run = get_or_404(Run.objects.visible_to(user), pk=run_id)
    authors = emergence.judged(run, user)
    versions = emergence.versions(run, user, authors)
    chosen = integer(request, "codebook", 0)
    version = next((each for each in versions if each.pk == chosen), versions[0] if versions else None)
    context: dict[str, object] = {"run": run, "version": version}
    if version is not None:
        sources = emergence.sources(run, version, user, authors)
        source = next((each for each in sources if each.key == request.GET.get("by")), sources[0])
        outcome: emergence.Outcome = "won" if request.GET.get("outcome") == "won" else "survived"
        analysis = emergence.of_run(run, version, source, outcome, user, authors)
        result: emergence.RunBehaviours | None = analysis.result
        context |= {
            "versions": [(each.pk, str(each)) for each in versions],
            "sources": [(each.key, each.title) for each in sources],
            "source": source,
            "outcomes": [*OUTCOMES.items()],
            "outcome": outcome,
            "analysis": analysis,
            "curves": emergence.drawn(result, run, version, source) if result else [],
            "errors": [
                (label_type, result.errors[label_type.name])
                for label_type in version.record().labels
                if result and label_type.name in result.errors
            ],
            "compared": [row for row in result.rows if row.difference is not None] if result else [],
        }
    return render_page(request, "judgments/emergence.html", context, "results")


@dataclass(frozen=True)
class SuggestedLabel:
    """One suggested label of a page: the game, the seat's name and the words, as far as the game can be read."""

    row: Suggestion
    shown: ShownValue
    title: str
    address: str
    seat: str
    quotes: list[Quote]


@require_GET
@researchers
def suggested_of_run(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """What a source suggested of a label in the games of one training step, with the words; else to the curves."""
    user = current_user(request)
    run = get_or_404(Run.objects.visible_to(user), pk=run_id)
    chosen, step = integer(request, "codebook", 0), integer(request, "step", 0)
    versions = emergence.versions(run, user, emergence.judged(run, user))
    version = next((each for each in versions if each.pk == chosen), None)
    name = request.GET.get("by", "")
    types = [each for each in version.record().labels if each.name == request.GET.get("label")] if version else []
    if version is None or not types or name not in suggested.names(run, version, user):
        return redirect("judgments:of-run", run.pk)
    answered = suggested.targets(run, version, name, user)
    page = Paginator(list(suggested.having(answered, types[0].name, step)), PAGE).get_page(
        integer(request, "page", 1, low=1)
    )
    context = {"run": run, "version": version, "source": name, "label_type": types[0], "step": step, "page": page}
    rows = _shown(list(page), types[0])
    return render_page(request, "judgments/suggested.html", {**context, "rows": rows}, "results")


def _shown(pairs: list[tuple[SuggestedTarget, Suggestion]], label_type: LabelType) -> list[SuggestedLabel]:
    """The rows of a page; each game is read once."""
    read: dict[int, tuple[list[TurnLine], tuple[str, ...]]] = {}
    rows = []
    for each, row in pairs:
        target = each.target
        if target.pk not in read:
            read[target.pk] = _read(target.game)
        lines, names = read[target.pk]
        label = row.record()
        speakers = [line.seat for line in lines if line.turn is not None and line.turn == label.turn]
        seat = next((seat for seat in [label.seat, *speakers] if seat is not None), None)
        rows.append(
            SuggestedLabel(
                row,
                ShownValue(label_type, label),
                games.label(target.game),
                address(target.game),
                names[seat] if seat is not None and seat < len(names) else "",
                quotes(label, lines),
            )
        )
    return rows


def _read(game: JudgedGame) -> tuple[list[TurnLine], tuple[str, ...]]:
    try:
        record = games.of(game)
        return record.turn_lines(hidden=True), record.scenario.seats
    except BadInput:
        return [], ()
