"""Given judgments as people read them: each value under its dimension's title, with its reason, and who gave it.

Reasons and comments are text of models and people; pages show them as text.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from training.rewards.rubrics import Dimension
from webapp.accounts.permissions import annotators, current_user, get_or_404
from webapp.arena import access
from webapp.arena.models import Match
from webapp.core.http import render_page
from webapp.judgments.models import Judgment


@dataclass(frozen=True)
class Valued:
    """One value on its dimension's scale, with the judge's reason (empty where none was given)."""

    dimension: Dimension
    value: float
    reason: str


@dataclass(frozen=True)
class Given:
    """One judgment to read."""

    row: Judgment
    by: str
    values: list[Valued]

    @property
    def seat(self) -> str:
        """The judged seat's number as people count."""
        return str(self.row.seat + 1)


def read(judgments: Iterable[Judgment]) -> list[Given]:
    """Return judgments (loaded `with_authors`) as they are read, in their order."""
    rubrics: dict[int, list[Dimension]] = {}
    found = []
    for row in judgments:
        if row.rubric_version_id not in rubrics:
            rubrics[row.rubric_version_id] = list(row.rubric_version.record().dimensions)
        values = row.values or {}
        said = [
            Valued(dimension, values[dimension.name], row.reasons.get(dimension.name, ""))
            for dimension in rubrics[row.rubric_version_id]
            if dimension.name in values
        ]
        found.append(Given(row, _by(row), said))
    return found


def _by(row: Judgment) -> str:
    if row.judge is not None:
        return row.judge.name
    if row.author_seat is not None:
        return f"{row.author_seat.name}, at the table"
    return row.author.username if row.author is not None else "nobody any more"


@require_GET
@annotators
def of_match(request: HttpRequest, pk: int) -> HttpResponse:
    """The judgments of a match: a layer of its replay, and a page of its own. For those that the replay shows it to."""
    user = current_user(request)
    match = get_or_404(Match.objects.visible_to(user), pk=pk)
    if not access.shows_judgments(match, user):
        raise Http404
    rows = Judgment.objects.readable_by(user).scored().filter(match=match).with_authors()
    seats = match.scenario["seats"]
    given = [(seats[found.row.seat], found) for found in read(rows)]
    return render_page(request, "judgments/of_match.html", {"match": match, "given": given}, "layer")
