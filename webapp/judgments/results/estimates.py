"""Results of a queue's judgments: means by player and label type, with intervals and numbers of games.

Where an adjudicator decided, the decision is a seat's only value. Else all authors' values for it are averaged first,
then a player's seats in one game (several scripted players, say, or people), so the game is the unit: seats of one game
are not independent. The interval (95 %) is Student's t over
games, exact (Clopper-Pearson) for shares of games that all answer yes or no, wide enough for unseen values where all
games have the same value, and absent for a single game.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

from training.errors import BadInput
from training.evaluate import intervals
from training.labels.codebooks import LabelType
from webapp.arena.models import MatchSeat
from webapp.judgments import games
from webapp.judgments.games import GameId
from webapp.judgments.models import Judgment, Queue, Target
from webapp.judgments.results.withheld import NOTHING, Withheld

UNRATED = "shown once you have rated the game"
UNKNOWN = "unknown"
GAMES = "whole games"

SeatOfTarget = tuple[int, int | None]
"""A target and one of its seats; None: its game."""


@dataclass(frozen=True)
class Estimate:
    """The mean of a numeric label type over `games` games with its 95 % interval `low` to `high`; None without values,
    or for the interval of a single game.
    """

    label_type: LabelType
    mean: float | None
    low: float | None
    high: float | None
    games: int

    @property
    def half(self) -> float | None:
        """The half width of the interval where it lies evenly around the mean, else None."""
        if self.mean is None or self.low is None or self.high is None:
            return None
        half = (self.high - self.low) / 2
        return half if abs(self.low + half - self.mean) < 1e-9 else None

    @property
    def share(self) -> float:
        """The mean's position on its scale, from 0 to 1."""
        low, high = self.label_type.bounds
        return 0.0 if self.mean is None else (self.mean - low) / (high - low)


def interval(
    values: Iterable[float], scale: tuple[float, float] | None = None
) -> tuple[float | None, float | None, float | None]:
    """Return mean, low and high of one value per game; `scale` are the lowest and the highest possible value.

    A single game has an interval only on the scale 0 to 1.
    """
    data = list(values)
    if not data:
        return None, None, None
    if len(data) == 1 and scale != intervals.UNIT:
        return data[0], None, None
    estimate = intervals.interval(data, scale=scale)
    return estimate.mean, estimate.low, estimate.high


def of_queue(queue: Queue, withheld: Withheld = NOTHING) -> dict[str, list[Estimate]]:
    """Return the estimates of a queue by player (`person`, a deployment, a run's policy, a dataset), as far as a reader
    from whom this is withheld may know who played and what was said.
    """
    scored: dict[SeatOfTarget, list[Mapping[str, float]]] = defaultdict(list)
    game_of: dict[SeatOfTarget, GameId] = {}
    rows = Judgment.objects.scored().deciding().filter(queue=queue).exclude(pk__in=withheld.judgments)
    for row in rows.with_labels():
        for seat, numbers in row.numbers_by_seat().items():
            scored[row.target_id or 0, seat].append(numbers or {})
            game_of[row.target_id or 0, seat] = (row.match_id, row.episode_id, row.conversation_id)
    players = players_of(queue, scored, withheld)
    seats: dict[tuple[str, str], dict[GameId, list[float]]] = defaultdict(lambda: defaultdict(list))
    for judged, answers in scored.items():
        player = players.get(judged, UNKNOWN)
        for name in {name for values in answers for name in values}:
            seats[player, name][game_of[judged]].append(mean(values[name] for values in answers if name in values))
    label_types = [label_type for label_type in queue.codebook_version.record().labels if label_type.numeric]
    return {
        player: [
            estimate(label_type, seats[player, label_type.name].values())
            for label_type in label_types
            if (player, label_type.name) in seats
        ]
        for player in sorted({player for player, _ in seats})
    }


def estimate(label_type: LabelType, games: Iterable[Sequence[float]]) -> Estimate:
    """Return the estimate from the values of the judged seats, game by game."""
    means = [mean(seats) for seats in games]
    return Estimate(label_type, *interval(means, label_type.bounds), len(means))


def players_of(queue: Queue, judged: Iterable[SeatOfTarget], withheld: Withheld = NOTHING) -> dict[SeatOfTarget, str]:
    """Return who or what sat at each judged seat; `UNKNOWN` where an episode's file cannot be read, `UNRATED` in
    matches that are withheld, `GAMES` for whole games.
    """
    seats = MatchSeat.objects.filter(match__targets__queue=queue).distinct()
    at_tables = {(seat.match_id, seat.seat): games.player_name(seat) for seat in seats.named()}
    targets = Target.objects.filter(queue=queue).select_related(
        "episode__run", "conversation__scenario__version__dataset"
    )
    by_pk = targets.in_bulk({pk for pk, _ in judged})
    players = {}
    for pk, seat in judged:
        target = by_pk[pk]
        try:
            if target.match_id in withheld.matches:
                players[pk, seat] = UNRATED
            elif seat is None:
                players[pk, seat] = GAMES
            elif target.conversation is not None:
                players[pk, seat] = str(target.conversation.scenario.version)
            elif target.episode is None:
                players[pk, seat] = at_tables[target.match_id or 0, seat]
            else:
                players[pk, seat] = games.policy_at(target.episode, seat)
        except BadInput:
            players[pk, seat] = UNKNOWN
    return players
