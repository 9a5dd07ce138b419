"""Counts over a log: games, points by role and opponent, and forced moves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import fmean

from training.evaluate.ratings import RatedGame, comparisons

UNANSWERED = ("default", "timeout")
FORCED = (*UNANSWERED, "forfeit")
"""The origins of moves that a seat did not choose. Forfeits occur at most once per game, so only games are counted."""


@dataclass
class Tally:
    """The counts of one player. Pairs are [games, points]: a win is 1 point and a draw a half.

    Among more than two seats, the points of a game are the share of seats with another result that the player beat.
    `forced_games` counts games with at least one such move.
    """

    played: int = 0
    games: int = 0
    won: float = 0.0
    roles: dict[str, list[float]] = field(default_factory=lambda: defaultdict(lambda: [0, 0.0]))
    against: dict[str, list[float]] = field(default_factory=lambda: defaultdict(lambda: [0, 0.0]))
    moves: int = 0
    forced_moves: dict[str, int] = field(default_factory=lambda: dict.fromkeys(UNANSWERED, 0))
    forced_games: dict[str, int] = field(default_factory=lambda: dict.fromkeys(FORCED, 0))


def count(log: Iterable[RatedGame]) -> dict[str, Tally]:
    """Count for every player in the log."""
    tallies: dict[str, Tally] = defaultdict(Tally)
    for game in log:
        _endings(game, tallies)
        if game.games():
            _points(game, tallies)
    return dict(tallies)


def _endings(game: RatedGame, tallies: dict[str, Tally]) -> None:
    for who in sorted({seat.who for seat in game.seats} - {""}):
        own_seats = [seat for seat in game.seats if seat.who == who]
        tally = tallies[who]
        tally.played += 1
        tally.moves += sum(seat.moves for seat in own_seats)
        for origin in FORCED:
            forced = sum(getattr(seat, origin) for seat in own_seats)
            tally.forced_games[origin] += forced > 0
            if origin in UNANSWERED:
                tally.forced_moves[origin] += forced


def _points(game: RatedGame, tallies: dict[str, Tally]) -> None:
    shares: dict[int, list[tuple[str, float]]] = {n: [] for n, seat in enumerate(game.seats) if seat.counts}
    for comparison in comparisons(game):
        for seat_number, other, share in (
            (comparison.i, comparison.j, comparison.share),
            (comparison.j, comparison.i, 1 - comparison.share),
        ):
            if game.seats[seat_number].who != game.seats[other].who:
                shares[seat_number].append((game.seats[other].who, share))
    points: dict[str, list[float]] = defaultdict(list)
    against: dict[tuple[str, str], list[float]] = defaultdict(list)
    for number, met in shares.items():
        seat = game.seats[number]
        scored = fmean(share for _, share in met) if met else 0.5
        points[seat.who].append(scored)
        role = tallies[seat.who].roles[seat.role]
        role[0] += 1
        role[1] += scored
        for opponent, share in met:
            against[seat.who, opponent].append(share)
    for who, scores in points.items():
        tallies[who].games += 1
        tallies[who].won += fmean(scores)
    for (who, opponent), scores in against.items():
        pair = tallies[who].against[opponent]
        pair[0] += 1
        pair[1] += fmean(scores)
