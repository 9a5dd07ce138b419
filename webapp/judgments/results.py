"""What the judgments of a queue say: a mean per player and dimension with its interval, and how many games it covers.

All authors' values for one seat are averaged first, then a player's seats in one game (several scripted players, say,
or people), so the game is the unit: seats of one game are not independent. The interval is Student's t over games
(95 %), and absent for a single game.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

from training.errors import BadInput
from training.rewards.rubrics import Dimension
from webapp.accounts.models import User
from webapp.arena.models import Match, MatchSeat
from webapp.judgments import games
from webapp.judgments.games import GameId
from webapp.judgments.models import Judgment, Queue, Target

UNTOLD = "told once you have rated the game"
UNKNOWN = "unknown"


@dataclass(frozen=True)
class Estimate:
    """The mean of a dimension over `games` games; `half` is the half width of its 95 % interval."""

    dimension: str
    title: str
    low: float
    high: float
    mean: float | None
    half: float | None
    games: int

    @property
    def share(self) -> float:
        """Where the mean lies on its scale, from 0 to 1, for a bar."""
        return 0.0 if self.mean is None else (self.mean - self.low) / (self.high - self.low)


def interval(values: Iterable[float]) -> tuple[float | None, float | None]:
    """Return mean and half width of the 95 % interval; None where there is none."""
    from scipy import stats

    found = list(values)
    if not found:
        return None, None
    if len(found) == 1:
        return found[0], None
    half = float(stats.t.ppf(0.975, len(found) - 1) * stats.sem(found))
    return mean(found), half


def of_queue(queue: Queue, user: User | None = None) -> dict[str, list[Estimate]]:
    """Return the estimates of a queue by player (`person`, a deployment, a run's policy), as far as `user` is told."""
    scored: dict[int, list[Mapping[str, float]]] = defaultdict(list)
    game_of: dict[int, GameId] = {}
    rows = Judgment.objects.scored().filter(target__queue=queue)
    for target_id, match, episode, values in rows.values_list("target_id", "match_id", "episode_id", "values"):
        scored[target_id or 0].append(values or {})
        game_of[target_id or 0] = (match, episode)
    players = players_of(queue, user)
    seats: dict[tuple[str, str], dict[GameId, list[float]]] = defaultdict(lambda: defaultdict(list))
    for target_id, judged in scored.items():
        player = players.get(target_id, UNKNOWN)
        for name in judged[0]:
            seats[player, name][game_of[target_id]].append(mean(values[name] for values in judged))
    dimensions = queue.rubric_version.record().dimensions
    return {
        player: [_estimate(one, seats[player, one.name].values()) for one in dimensions if (player, one.name) in seats]
        for player in sorted({player for player, _ in seats})
    }


def _estimate(dimension: Dimension, games: Iterable[Sequence[float]]) -> Estimate:
    """Return the estimate from the values of a player's seats, game by game."""
    means = [mean(seats) for seats in games]
    centre, half = interval(means)
    return Estimate(dimension.name, dimension.title, dimension.low, dimension.high, centre, half, len(means))


def players_of(queue: Queue, user: User | None = None) -> dict[int, str]:
    """Return who or what sat at each scored target's seat; `UNKNOWN` where an episode's file cannot be read, `UNTOLD`
    where `user` played a match and has not said yet what they took the others for.
    """
    scored = Judgment.objects.scored().filter(target__queue=queue).values("target")
    seats = MatchSeat.objects.filter(match__targets__queue=queue).distinct()
    at_tables = {
        (seat.match_id, seat.seat): games.sitting(seat)
        for seat in seats.select_related("deployment__checkpoint", "deployment__remote")
    }
    played = Match.objects.filter(targets__queue=queue)
    untold = set(played.untold_to(user).values_list("pk", flat=True)) if user is not None else set()
    found = {}
    for target in Target.objects.filter(pk__in=scored).select_related("episode__run"):
        try:
            if target.match_id in untold:
                found[target.pk] = UNTOLD
            elif target.episode is None:
                found[target.pk] = at_tables[target.match_id or 0, target.seat]
            else:
                found[target.pk] = games.policy_at(target.episode, target.seat)
        except BadInput:
            found[target.pk] = UNKNOWN
    return found
