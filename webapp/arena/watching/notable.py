"""Recently finished games that are worth a look, among those that everybody may watch.

Ranked by the sum of three shares, each between 0 and 1:

- `rating`: the mean rating that its players gave each other afterwards, as a share of each scale; 0.5 without ratings;
- `closeness`: 1 minus the largest difference between two seats' results, in the range of the game's results;
- `length`: the share of recently finished matches of the same game that were not longer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from statistics import fmean

from training.games import lookup
from training.labels.codebooks import CODEBOOKS
from training.records import SPECTATOR
from training.views import TableView, Zone
from webapp.accounts.models import User
from webapp.arena.live import client_state
from webapp.arena.models import Match
from webapp.arena.play import services
from webapp.core.stage import Stage

RECENT = timedelta(days=14)
MOST = 200
"""The newest games that are compared."""
UNRATED = 0.5
POSITIVE = frozenset({"mutual_benefit", "believability"})
"""The label types of ratings in which higher values mean a better game; the others are about behaviours."""


@dataclass(frozen=True)
class Score:
    """Why a game is worth a look."""

    rating: float
    closeness: float
    length: float

    @property
    def total(self) -> float:
        """The sum of the shares, between 0 and 3."""
        return self.rating + self.closeness + self.length


@dataclass(frozen=True)
class NotableGame:
    """A finished game with its score and the public view of its end."""

    match: Match
    score: Score
    view: TableView
    stage: Stage

    @property
    def still(self) -> Sequence[Zone]:
        """The first zone of the table at the end; empty where the game has none."""
        return self.view.zones[:1]


def candidates(user: User) -> list[Match]:
    """The newest finished games that everybody may watch: none of an experiment, played alone, or still to be revealed
    to this user.
    """
    public = Match.objects.without_spoilers(user).listed().filter(state=Match.State.FINISHED, shown_as="", task="")
    recent = public.filter(ended_at__gte=services.database_now() - RECENT)
    hidden = Match.objects.unrevealed_to(user).values("pk")
    return list(recent.exclude(pk__in=hidden).select_related("host").order_by("-ended_at", "-pk")[:MOST])


def closeness(match: Match) -> float:
    """1 for equal results of all seats, 0 for results at both ends of the game's range, or without results."""
    low, high = lookup(match.game).range_of(match.scenario["settings"])
    results = list(match.returns.values())
    if len(results) < 2 or high <= low:
        return 0.0
    return 1 - min(1.0, (max(results) - min(results)) / (high - low))


def lengths(matches: Sequence[Match]) -> Mapping[int, float]:
    """Each match's share of games of its kind that were not longer, itself included."""
    steps = defaultdict(list)
    for match in matches:
        steps[match.game].append(match.step)
    return {
        match.pk: sum(other <= match.step for other in steps[match.game]) / len(steps[match.game]) for match in matches
    }


def scores(matches: Sequence[Match], ratings: Mapping[int, Sequence[float]]) -> dict[int, Score]:
    """The score of each match; `ratings` are the shares that players gave after it, by match."""
    length = lengths(matches)
    return {
        match.pk: Score(
            rating=fmean(ratings[match.pk]) if ratings.get(match.pk) else UNRATED,
            closeness=closeness(match),
            length=length[match.pk],
        )
        for match in matches
    }


def games(user: User, *, most: int) -> list[NotableGame]:
    """The best games, of each kind the best one before any second one; the end of each is replayed."""
    matches = candidates(user)
    ranked = scores(matches, ratings_of(matches))
    ordered = sorted(matches, key=lambda match: (-ranked[match.pk].total, -match.pk))
    firsts = list({match.game: match for match in reversed(ordered)}.values())
    firsts.sort(key=ordered.index)
    chosen = [*firsts, *(match for match in ordered if match not in firsts)][:most]
    return [_replayed(match, ranked[match.pk]) for match in chosen]


def ratings_of(matches: Sequence[Match]) -> dict[int, list[float]]:
    """The values of `POSITIVE` that players gave each other after each match, as shares of their scales."""
    scales = {d.name: d for codebook in CODEBOOKS.values() for d in codebook.labels if d.name in POSITIVE}
    rows = Match.objects.filter(pk__in=[match.pk for match in matches], seats__judgments__labels__name__in=POSITIVE)
    ratings: dict[int, list[float]] = defaultdict(list)
    columns = ("pk", "seats__judgments__labels__name", "seats__judgments__labels__value")
    for pk, name, value in rows.values_list(*columns):
        low, high = scales[name].bounds
        ratings[pk].append((value - low) / (high - low))
    return dict(ratings)


def _replayed(match: Match, score: Score) -> NotableGame:
    """A game with its end."""
    return NotableGame(match, score, _end(match.pk, match.created_at), Stage(match.scenario["seats"]))


@lru_cache(maxsize=64)
def _end(match_id: int, created_at: datetime) -> TableView:
    """The public view of a finished game's end; an empty one where its moves cannot be replayed any more."""
    return client_state.view_of(client_state.folded(Match.objects.get(pk=match_id)), SPECTATOR)
