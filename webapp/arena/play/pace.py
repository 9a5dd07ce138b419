"""Delays of models and scripted players in matches where their kind must stay hidden.

A delay is sampled from the times of people's newest moves in the same game or, until there are enough of them, from a
log-normal distribution with a similar median. The sample is seeded by the match's secret seed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import timedelta

from django.db.models import F, Q

from training.records import Seat
from training.seeding import rng
from webapp.accounts.models import Role
from webapp.arena.models import Match, MatchMove, MatchSeat

MEDIAN_S, SPREAD = 5.0, 0.6
"""The log-normal distribution's median in seconds and standard deviation of the logarithm."""
NEWEST, ENOUGH = 200, 30
"""The number of newest moves to sample from, and the number below which they are not used."""
READING_S = (1.0, 3.0)
"""Smallest and largest delay in seconds at tables where the players are known and somebody reads along."""
LARGEST_SHARE = 0.75
"""The largest share of the time for a move that a delay may use."""
AHEAD = timedelta(seconds=2)
"""A worker begins this long before the move is made: a model needs time for its answer."""


def knows_seats(match: Match, user_id: int | None) -> bool:
    """Whether a user knows the players because they chose them: the host, except at shuffled tables.

    Of a rematch the host knows them who knew them in the game before.
    """
    if match.host_id != user_id or match.shuffled:
        return False
    return match.swapped_from is None or knows_seats(match.swapped_from, user_id)


def blind(match: Match, seats: Sequence[MatchSeat]) -> bool:
    """Whether the players must stay hidden from some player or spectator."""
    people = [seat for seat in seats if seat.kind == MatchSeat.Kind.PERSON]
    return match.visibility != Match.Visibility.PRIVATE or any(not knows_seats(match, seat.user_id) for seat in people)


def times_of_people(game: str) -> list[float]:
    """The seconds that people took for their newest moves in a game, newest first.

    Not those of guests at tables of their own, which anybody may open: they would choose how long models take.
    """
    by_guests = Q(match__host__role=Role.GUEST) | Q(match__host__member_since__gt=F("match__created_at"))
    moves = MatchMove.objects.filter(match__game=game, took_s__isnull=False).exclude(by_guests)
    return [
        seconds for seconds in moves.order_by("-pk").values_list("took_s", flat=True)[:NEWEST] if seconds is not None
    ]


def reading_time(match: Match, seat: Seat) -> float:
    """The delay in seconds at a table where the players are known and somebody reads along."""
    seconds = rng(match.scenario["seed"], "pace", match.step, seat).uniform(*READING_S)
    return min(seconds, match.deadline_s / 4)


def draw(match: Match, seat: Seat, times: Sequence[float]) -> float:
    """The delay in seconds of a seat's move in the current step; `times` is the result of `times_of_people`."""
    chance = rng(match.scenario["seed"], "pace", match.step, seat)
    seconds = chance.choice(times) if len(times) >= ENOUGH else chance.lognormvariate(math.log(MEDIAN_S), SPREAD)
    return min(seconds, LARGEST_SHARE * match.deadline_s)
