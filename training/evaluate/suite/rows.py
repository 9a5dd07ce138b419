"""The numbers of a suite: returns, normalised values and shares of legal replies, each with its interval.

The independent unit is the deal: a start with its seed. Games of one deal (with the model at different seats, or
repeated from a start whose seed is fixed) are averaged first, so that a good card counts once. A mean over all seats
takes the deals that have a result at every seat. Games that ended by an error are counted and enter no mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, TypedDict

from pydantic import Field

from training.evaluate.intervals import UNIT, Interval, interval
from training.evaluate.suite.judging import GOAL
from training.games import lookup
from training.reading import Record
from training.records import Episode, Seat
from training.rollout.roles import seat_numbers
from training.suites import Scale

Deal = tuple[str, int]
"""A scenario's id and its seed."""
RATES = ("parse_rate", "legal_rate", "won")
"""Numbers of a seat that are shares; `won` is that of games with winners."""
OPPOSITE, JOINT = "opposite", "joint"
"""Numbers of a game in which both sides may gain: the opponents' mean return, and that of all seats."""
SIDE: Seat = 0
"""Where the results of a whole side stand, whose seats change from game to game."""


@dataclass(slots=True)
class Results:
    """What came of the games with the model at certain seats: its numbers at each seat by deal, and the errors.

    `ends` has the lowest and the highest possible return, of every scenario whose settings have others.
    """

    games: int = 0
    values: dict[Seat, dict[Deal, list[Mapping[str, float]]]] = field(default_factory=dict)
    errors: dict[str, int] = field(default_factory=dict)
    ends: set[tuple[float, float]] = field(default_factory=set)

    @property
    def played(self) -> int:
        """The number of games that ended without an error."""
        return self.games - sum(self.errors.values())

    def add(
        self, episode: Episode, seats: Iterable[Seat], *, side: bool = False, opposite: Sequence[Seat] | None = None
    ) -> None:
        """Add a game in which the model played `seats`; of a side, the means over its seats count at `SIDE`.

        `opposite` are the opponents' seats, if any, where the results of both sides are reported; otherwise it is None.
        """
        self.games += 1
        self.ends.add(ends_of(episode))
        if episode.error is not None:
            self.errors[episode.error.kind] = self.errors.get(episode.error.kind, 0) + 1
            return
        deal, numbers = (episode.scenario.id, episode.scenario.seed), seat_numbers(episode)
        rows: dict[Seat, Mapping[str, float]] = {}
        for seat in seats:
            rates = {name: numbers[seat][name] for name in RATES if name in numbers[seat]}
            result = episode.returns[seat]
            rows[seat] = rates if result is None else rates | {"return": result} | _both(episode, opposite)
        for seat, row in ({SIDE: _mean_row(list(rows.values()))} if side else rows).items():
            self.values.setdefault(seat, {}).setdefault(deal, []).append(row)

    def at(self, seat: Seat, name: str) -> dict[Deal, float]:
        """Return the mean of a number at one seat, by deal."""
        games = {deal: [row[name] for row in rows if name in row] for deal, rows in self.values.get(seat, {}).items()}
        return {deal: fmean(values) for deal, values in games.items() if values}


def ends_of(episode: Episode) -> tuple[float, float]:
    """Return the lowest and the highest possible return; of a judged game, those of the judge's value for the goal."""
    spec = lookup(episode.scenario.game)
    return GOAL.bounds if spec.judged else spec.range_of(episode.scenario.settings)


def _both(episode: Episode, opposite: Sequence[Seat] | None) -> dict[str, float]:
    """Return the mean return of the opponents, if there are any, and of all seats; nothing where it is not reported."""
    results = {seat: value for seat, value in episode.returns.items() if value is not None}
    if opposite is None or len(results) < len(episode.returns):
        return {}
    of_opponents = {OPPOSITE: fmean(results[seat] for seat in opposite)} if opposite else {}
    return {**of_opponents, JOINT: fmean(results.values())}


def _mean_row(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the mean of every number over the rows that have it."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: fmean(row[name] for row in rows if name in row) for name in names}


class Row(Record):
    """One line of the report: a task with the model at one seat, or over all seats or those of a `side` (`seat` None).

    `opposite` and `joint` are the mean return of the opponents and of all seats in the same games, where both sides may
    gain. `partner` names who played one of the side's seats. `won` is the share of games won, of games with winners.
    `charts` are those in which the row is a point. `exact` has the numbers of a best response, and `unavailable` says
    why there are none. `step` is that of the games in the attempt's episodes. `provenance` states everything else that
    the numbers depend on.
    """

    task: int
    title: str
    opponent: str
    held_out: bool
    seat: Seat | None
    side: tuple[str, ...] = ()
    partner: str = ""
    charts: tuple[tuple[str, str], ...] = ()
    games: int = 0
    played: int = 0
    errors: dict[str, int] = Field(default_factory=dict)
    raw: Interval | None = None
    opposite: Interval | None = None
    joint: Interval | None = None
    normalised: Interval | None = None
    parse_rate: Interval | None = None
    legal_rate: Interval | None = None
    won: Interval | None = None
    exact: dict[str, float] | None = None
    unavailable: str = ""
    step: int | None = None
    provenance: dict[str, Any]

    @property
    def who(self) -> str:
        """What the model played: `seat 0`, `all seats`, or the roles of its side and who played beside it."""
        if self.side:
            return ", ".join(self.side) + (f" beside {self.partner}" if self.partner else "")
        return "all seats" if self.seat is None else f"seat {self.seat}"


class Estimates(TypedDict):
    """The intervals of a row."""

    raw: Interval | None
    opposite: Interval | None
    joint: Interval | None
    normalised: Interval | None
    parse_rate: Interval | None
    legal_rate: Interval | None
    won: Interval | None


def estimates(scale: Scale | None, by_seat: Mapping[Seat, Results]) -> Estimates:
    """Return the intervals of a row over the seats of `by_seat`, which has the games with the model at each of them."""
    lows, highs = zip(*(ends for results in by_seat.values() for ends in results.ends), strict=True)
    ends = (min(lows), max(highs))
    returns, parsed, legal, won = (
        {seat: results.at(seat, name) for seat, results in by_seat.items()} for name in ("return", *RATES)
    )
    raw = _over_deals(returns, ends)
    both = {name: {seat: results.at(seat, name) for seat, results in by_seat.items()} for name in (OPPOSITE, JOINT)}
    return {
        "raw": raw,
        "opposite": _over_deals(both[OPPOSITE], ends),
        "joint": _over_deals(both[JOINT], ends),
        "normalised": None if scale is None or raw is None else _normalised(raw, returns, scale, ends),
        "parse_rate": _shares(parsed),
        "legal_rate": _shares(legal),
        "won": _shares(won),
    }


def _over_deals(
    values: Mapping[Seat, Mapping[Deal, float]],
    ends: tuple[float, float],
    of: Callable[[Seat, float], float] = lambda seat, value: value,
) -> Interval | None:
    """Return the mean over deals of each deal's mean over seats; None if no deal has a value at every seat.

    `of` maps a value at a seat, and `ends` bound what it returns.
    """
    first, *rest = values.values()
    deals = sorted(deal for deal in first if all(deal in other for other in rest))  # whichever game ended first
    means = [fmean(of(seat, by_deal[deal]) for seat, by_deal in values.items()) for deal in deals]
    return interval(means, scale=ends) if means else None


def _shares(values: Mapping[Seat, Mapping[Deal, float]]) -> Interval | None:
    """Return the mean share over deals; a deal's is the mean over the seats that were asked for a move in it."""
    deals = sorted({deal for by_deal in values.values() for deal in by_deal})
    means = [fmean(by_deal[deal] for by_deal in values.values() if deal in by_deal) for deal in deals]
    return interval(means, scale=UNIT) if means else None


def _normalised(
    raw: Interval, returns: Mapping[Seat, Mapping[Deal, float]], scale: Scale, ends: tuple[float, float]
) -> Interval | None:
    """Return the interval on the scale: that of the raw mean, moved, unless the seats have scales of their own."""

    def moved(seat: Seat, value: float) -> float:
        low, high = scale.ends(seat)
        return 100 * (value - low) / (high - low)

    first, *rest = returns
    if not rest or not scale.per_seat:
        low, mean, high = (moved(first, value) for value in (raw.low, raw.mean, raw.high))
        return raw.model_copy(update={"mean": mean, "low": low, "high": high})
    reach = [fmean(moved(seat, end) for seat in returns) for end in ends]
    return _over_deals(returns, (reach[0], reach[1]), moved)
