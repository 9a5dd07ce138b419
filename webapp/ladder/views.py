"""The page of the ladder: ratings, win matrix, endings, from the stored fit.

It is closed to annotators who have yet to judge a match of the game, because a changed row would reveal its players;
`log.HELD_BACK` does the same for players. Players see only models that are open to them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from training.evaluate import ratings
from training.games import REGISTRY
from webapp.accounts.models import User
from webapp.accounts.permissions import current_user, members
from webapp.arena.models import Match, MatchQuerySet
from webapp.core.http import integer, render_page
from webapp.core.sorting import Order
from webapp.ladder import sample
from webapp.ladder.models import Fit, Standing
from webapp.ladder.tallies import FORCED, UNANSWERED

PER_PAGE = 50
IN_MATRIX = 12
HIDDEN_SHOWN = 5
LADDER = {
    "rank": "Rank",
    "who": "Player",
    "rating": "Rating ± 95 %",
    "games": "Games",
    "share": "Points per game",
    "roles": "By role",
    "kind": "Kind",
}
ENDINGS = {
    "ends": "Player",
    "played": "Games",
    "default_games": "With a default",
    "timeout_games": "With a time-out",
    "forfeit_games": "Given up",
    "moves": "Moves",
    "default_moves": "Defaults",
    "timeout_moves": "Time-outs",
}
SORTS = {name: name for name in ("rank", "kind", "rating", "games", "share")}
ENDING_SORTS = {name: name for name in ENDINGS if name != "ends"}
WHY = {
    "few": f"not enough games: fewer than {ratings.LEAST_GAMES} with a result",
    "apart": "has not met the others",
    "level": "nobody has won a game yet",
}


@dataclass(frozen=True)
class Share:
    """Points per game over `games` games; `None` without games."""

    label: str
    games: int = 0
    share: float | None = None


def _share(label: str, pair: Sequence[float] | None) -> Share:
    return Share(label, int(pair[0]), pair[1] / pair[0]) if pair and pair[0] else Share(label)


@dataclass(frozen=True)
class StandingRow:
    """One row of the ladder."""

    row: Standing
    why: str
    roles: list[Share]
    endings: list[tuple[int, float | None]]


def _line(row: Standing) -> StandingRow:
    roles = [_share(role, pair) for role, pair in sorted(row.roles.items()) if role]
    counts = [(row.played, None), *((getattr(row, f"{origin}_games"), row.played) for origin in FORCED)]
    counts += [(row.moves, None), *((getattr(row, f"{origin}_moves"), row.moves) for origin in UNANSWERED)]
    return StandingRow(row, WHY.get(row.why, ""), roles, [(n, n / of if of else None) for n, of in counts])


def _matrix(rows: Sequence[Standing]) -> list[tuple[Standing, list[Share | None]]]:
    """The score of each player against each other; None on the diagonal."""
    return [
        (row, [None if row.pk == other.pk else _share(other.name, row.against.get(other.who)) for other in rows])
        for row in rows
    ]


def _worth(intervals: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, float, float]]:
    """Name, points and half the interval's width of each seat or role; empty if there is only one."""
    rows = [
        (name, interval["mean"], (interval["high"] - interval["low"]) / 2)
        for name, interval in intervals.items()
        if name
    ]
    return rows if len(rows) > 1 else []


def _game(request: HttpRequest) -> str:
    """The requested game, else the one with the most matches; 404 for an unknown game."""
    requested = request.GET.get("game", "")
    if requested:
        if requested not in REGISTRY:
            raise Http404
        return requested
    most = Fit.objects.filter(game__in=REGISTRY, matches__gt=0).order_by("-matches", "game").first()
    return most.game if most is not None else next(iter(REGISTRY))


def _undisclosed(game: str, user: User) -> MatchQuerySet:
    """Matches of others that this user has yet to judge, whose players the ladder could reveal.

    The user's own matches never close the ladder, and nothing closes it to an administrator.
    """
    if user.is_admin:
        return Match.objects.none()
    return Match.objects.filter(game=game).undisclosed_to(user).order_by("-ended_at")[:HIDDEN_SHOWN]


@require_GET
@members
def ladder(request: HttpRequest) -> HttpResponse:
    """The ladder of one game, filtered and sorted by the query string."""
    user = current_user(request)
    game = _game(request)
    kind = request.GET.get("kind", "")[:8]
    order = Order.requested(request, "rank")
    hidden = list(_undisclosed(game, user))
    context: dict[str, Any] = {"spec": REGISTRY[game], "games": [(spec.name, spec.title) for spec in REGISTRY.values()]}
    context |= {"kind": kind, "kinds": Standing.Kind.choices, "order": str(order), "hidden": hidden}
    fit = None if hidden else Fit.objects.filter(game=game).first()
    if not hidden and (fit is None or not fit.matches):
        context["sample"] = sample.ladder(game)
    if fit is not None:
        standings = fit.standings.visible_to(user).matching(kind=kind).named()
        page = Paginator(order.apply(standings, SORTS | ENDING_SORTS, "rank"), PER_PAGE).get_page(
            integer(request, "page", 1, 1)
        )
        lines = [_line(row) for row in page]
        rows = [line.row for line in lines[:IN_MATRIX]]
        roles = any(line.roles for line in lines)
        titles = LADDER if roles else {name: title for name, title in LADDER.items() if name != "roles"}
        context |= {
            "by_role": roles,
            "fit": fit,
            "page": page,
            "lines": lines,
            "columns": order.columns(titles, SORTS, {"rank", "rating", "games", "share"}),
            "ending_columns": order.columns(ENDINGS, ENDING_SORTS, ENDING_SORTS),
            "against": rows,
            "matrix": _matrix(rows) if len(rows) > 1 else [],
            "worth": _worth({f"seat {int(n) + 1}": interval for n, interval in fit.seats.items()}) + _worth(fit.roles),
        }
    return render_page(request, "ladder/ladder.html", context, "results")
