"""How long a model or a scripted player takes for a move where somebody must not know what sits there.

The time is one that a person took: drawn from the newest moves of people in the same game or, until there are enough
of them, from a log-normal law with about their median. It is drawn from the match's secret seed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import timedelta

from training.records import Seat
from training.seeding import rng
from webapp.arena.models import Match, MatchMove, MatchSeat

MEDIAN_S, SPREAD = 5.0, 0.6
"""Of the log-normal law: median in seconds, standard deviation of the logarithm."""
NEWEST, ENOUGH = 200, 30
"""How many of the newest moves of people are drawn from, and how few of them are not enough."""
READING_S = (1.0, 3.0)
"""Fewest and most seconds where everybody knows what sits where, but many sit there and read along."""
LARGEST_SHARE = 0.75
"""The largest share of the time for a move that is used up."""
AHEAD = timedelta(seconds=2)
"""A worker begins so long before the move is made: a model needs time for its answer."""


def knows_seats(match: Match, user_id: int | None) -> bool:
    """Whether a person knows what sits where because they chose it; who asked for a rematch, or had the seats drawn
    by chance, did not.
    """
    return match.host_id == user_id and match.swapped_from_id is None and not match.shuffled


def blind(match: Match, seats: Sequence[MatchSeat]) -> bool:
    """Whether somebody who plays or may watch does not know what sits where."""
    people = [seat for seat in seats if seat.kind == MatchSeat.Kind.PERSON]
    return match.visibility != Match.Visibility.PRIVATE or any(not knows_seats(match, seat.user_id) for seat in people)


def times_of_people(game: str) -> list[float]:
    """The seconds that people took for their newest moves in a game, newest first."""
    taken = MatchMove.objects.filter(match__game=game, took_s__isnull=False)
    return [
        seconds for seconds in taken.order_by("-pk").values_list("took_s", flat=True)[:NEWEST] if seconds is not None
    ]


def reading_time(match: Match, seat: Seat) -> float:
    """The seconds for a move at a table of many where nobody is to be kept from knowing what sits where."""
    drawn = rng(match.scenario["seed"], "pace", match.step, seat).uniform(*READING_S)
    return min(drawn, match.deadline_s / 4)


def draw(match: Match, seat: Seat, known: Sequence[float]) -> float:
    """The seconds for the move of a seat in the match's current step; `known` are `times_of_people`."""
    chance = rng(match.scenario["seed"], "pace", match.step, seat)
    drawn = chance.choice(known) if len(known) >= ENOUGH else chance.lognormvariate(math.log(MEDIAN_S), SPREAD)
    return min(drawn, LARGEST_SHARE * match.deadline_s)
