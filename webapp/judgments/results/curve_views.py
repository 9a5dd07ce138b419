"""Pages of what judgments say."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from webapp.accounts.permissions import current_user, get_or_404, researchers
from webapp.core.http import integer, render_page
from webapp.judgments.results import emergence
from webapp.runs.models import Run

OUTCOMES: dict[emergence.Outcome, str] = {"survived": "survivors and eliminated", "won": "winners and losers"}


@require_GET
@researchers
def of_run(request: HttpRequest, run_id: int) -> HttpResponse:
    """The behaviours of a run over its steps, and by outcome; a fragment is the results alone."""
    user = current_user(request)
    run = get_or_404(Run.objects.visible_to(user), pk=run_id)
    versions = emergence.versions(run, user)
    chosen = integer(request, "codebook", 0)
    version = next((each for each in versions if each.pk == chosen), versions[0] if versions else None)
    context: dict[str, object] = {"run": run, "version": version}
    if version is not None:
        sources = emergence.sources(run, version, user)
        source = next((each for each in sources if each.key == request.GET.get("by")), sources[0])
        outcome: emergence.Outcome = "won" if request.GET.get("outcome") == "won" else "survived"
        shown = emergence.of_run(run, version, source, outcome, user)
        context |= {
            "versions": [(each.pk, str(each)) for each in versions],
            "sources": [(each.key, each.title) for each in sources],
            "source": source,
            "outcomes": [*OUTCOMES.items()],
            "outcome": outcome,
            "emergence": shown,
            "compared": [row for row in shown.rows if row.difference is not None],
        }
    return render_page(request, "judgments/emergence.html", context, "results")
