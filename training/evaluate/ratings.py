"""Ratings of one game from its log of matches: a Bradley-Terry fit over all players, adjusted for seat and role.

Within a match every two rated seats are compared by their results. The log-odds that i comes out above j are

    strength(i) - strength(j) + seat(i) - seat(j) + role(i) - role(j),

a logistic regression (scikit-learn). In a match of two, equal results are a draw: half a win each. With more seats,
equal results are not compared: a team shares its result, which does not show which member is stronger. Each comparison
has the weight 1 / (rated seats - 1), so that every seat of a match counts as one game, whatever the number of seats.

The prior is one drawn game of every player, seat and role against the average. It makes the rating of a player who has
won all games finite, and divides effects evenly that the log cannot separate. Intervals are Student's t over games with
the spread of a jackknife: each match, and each drawn game of the prior, is left out once, and the squared changes add
up (estimator CR3 of Bell and McCaffrey, 2002, with matches as clusters). The comparisons of one match stay together,
and a player who has won all games has a width from the prior.

Points are Elo points: 400 for odds of 10 to 1; 1000 is the mean of the rated players. The result does not depend on the
order of the log, and the same log gives the same numbers, rounded to hundredths of a point. No log raises an error.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from training.evaluate.intervals import Interval, student
from training.reading import Record

if TYPE_CHECKING:
    from training.records import Floats

METHOD = "bradley-terry/5"
"""Part of every digest. Increase the number when the same log gives other ratings."""
POINTS = 400 / np.log(10)
MEAN = 1000.0
PERSON = "person:"
"""Keys of people begin with it. Accounts are made at will: a ring of them that plays nobody else must not become the
main group, which would leave everybody else without a rating. Anybody can join the group of a model by playing it.
"""
PRIOR = 1.0
LEAST_GAMES = 5
LEVEL = 0.95
SINGULAR = 1e-9
"""A column whose drawn game holds all information but this share is pinned by nothing else; its coefficient is 0."""

Why = Literal["", "few", "apart", "level"]


class RatedSeat(Record):
    """One seat of a match. With an empty `who` (a guest) it is not rated; `value` None means that it has no result yet.

    `moves` counts the seat's moves; `default`, `timeout` and `forfeit` count the moves that the player did not choose.
    """

    who: str = ""
    role: str = ""
    value: float | None = None
    moves: int = Field(default=0, ge=0)
    default: int = Field(default=0, ge=0)
    timeout: int = Field(default=0, ge=0)
    forfeit: int = Field(default=0, ge=0)

    @property
    def counts(self) -> bool:
        """Whether the seat is rated and has a result."""
        return bool(self.who) and self.value is not None


class RatedGame(Record):
    """One finished match of the log, by its number."""

    id: int
    seats: tuple[RatedSeat, ...]

    def games(self) -> set[str]:
        """Return the players with a result if there are at least two, else nobody."""
        rated = {seat.who for seat in self.seats if seat.counts}
        return rated if len(rated) > 1 else set()


class Rating(Record):
    """A player's rating after `games` games; if `points` is None, `why` is the reason.

    few: fewer than `LEAST_GAMES` games; apart: no chain of games connects the player to the main group, whose players
    that anybody can play against have the most games; level: no game of the log had a winner.
    """

    who: str
    games: int
    points: Interval | None = None
    why: Why = ""


class Ladder(Record):
    """The fit: ratings (best first, then unrated players by name), and each seat's and role's advantage in points."""

    digest: str
    matches: int
    ratings: tuple[Rating, ...] = ()
    seats: dict[int, Interval] = Field(default_factory=dict)
    roles: dict[str, Interval] = Field(default_factory=dict)


@dataclass(frozen=True)
class Comparison:
    """A comparison of seats i and j of one match; `share` is 1 if i's result is above j's, 0.5 for a draw."""

    match: int
    i: int
    j: int
    share: float
    weight: float


def digest(log: Sequence[RatedGame]) -> str:
    """Return the SHA-256 of method and log; it does not depend on the log's order."""
    rows = [METHOD, *(played.to_dict() for played in _ordered(log))]
    return hashlib.sha256(json.dumps(rows, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _ordered(log: Sequence[RatedGame]) -> list[RatedGame]:
    return sorted(log, key=lambda played: played.id)


def comparisons(played: RatedGame, match: int = 0) -> Iterator[Comparison]:
    """Yield the comparisons of one match's rated seats, with `match` as their match number."""
    rated = [(number, seat.value) for number, seat in enumerate(played.seats) if seat.who and seat.value is not None]
    for (i, mine), (j, other) in combinations(rated, 2):
        if mine != other or len(rated) == 2:
            yield Comparison(match, i, j, (np.sign(mine - other) + 1) / 2, 1 / (len(rated) - 1))


@dataclass(frozen=True)
class _Design:
    """The design of the regression: one row per kind of comparison, one column per player, seat and role.

    Comparisons with the same players, seats and roles share a row, whose number is `cell`. `match`, `cell`, `up` and
    `down` have one entry per comparison.
    """

    columns: list[tuple[str, str]]
    rows: Floats
    match: NDArray[np.int64]
    cell: NDArray[np.int64]
    up: Floats
    down: Floats

    @classmethod
    def of(cls, log: Sequence[RatedGame]) -> _Design:
        terms: set[tuple[str, str]] = set()
        cells: dict[tuple[tuple[tuple[str, str], ...], ...], int] = {}
        entries: list[tuple[int, int, float, float]] = []
        for match, played in enumerate(log):
            for comparison in comparisons(played, match):
                ends = tuple(
                    (("who", seat.who), ("seat", f"{n:03d}"), ("role", seat.role))
                    for n, seat in (
                        (comparison.i, played.seats[comparison.i]),
                        (comparison.j, played.seats[comparison.j]),
                    )
                )
                terms.update(*ends)
                share = comparison.share
                if ends[0] > ends[1]:
                    ends, share = ends[::-1], 1 - share
                cell = cells.setdefault(ends, len(cells))
                entries.append((match, cell, comparison.weight * share, comparison.weight * (1 - share)))
        columns = sorted(terms)
        place = {term: number for number, term in enumerate(columns)}
        rows = np.zeros((len(cells), len(columns)))
        for (first, second), cell in cells.items():
            for a, b in zip(first, second, strict=True):
                rows[cell, place[a]] += 1
                rows[cell, place[b]] -= 1
        matches, numbers, up, down = zip(*entries, strict=True)
        return cls(columns, rows, np.array(matches), np.array(numbers), np.array(up), np.array(down))

    def solve(self, prior: float) -> Floats:
        """Return one coefficient per column; `prior` is the weight of the drawn game of each column."""
        from sklearn import config_context
        from sklearn.linear_model import LogisticRegression

        up, down = (np.bincount(self.cell, part, len(self.rows)) for part in (self.up, self.down))
        drawn = np.full(len(self.columns), prior / 2)
        once = np.vstack([self.rows, np.eye(len(self.columns))])
        won = np.repeat([1, 0], len(once))
        total = np.concatenate([up, drawn, down, drawn])
        model = LogisticRegression(C=np.inf, fit_intercept=False, solver="newton-cholesky", tol=1e-10)
        with config_context(assume_finite=True, skip_parameter_validation=True):
            coefficients: Floats = model.fit(np.vstack([once, once]), won, sample_weight=total).coef_[0]
        return coefficients

    def changes(self, coefficients: Floats, prior: float) -> Floats:
        """Return how the coefficients change, in one Newton step, without a match or without a drawn game of the prior.

        The first rows are the matches with comparisons, the others the columns' drawn games.
        """
        from scipy.special import expit

        weight, chance = self.up + self.down, expit(self.rows @ coefficients)
        slope, drawn = chance * (1 - chance), expit(coefficients)
        information = (self.rows.T * (np.bincount(self.cell, weight, len(self.rows)) * slope)) @ self.rows
        inverse = np.linalg.inv(information + np.diag(prior * drawn * (1 - drawn)))
        response = self.rows @ inverse
        without = []
        for entries in np.split(np.arange(len(self.match)), np.flatnonzero(np.diff(self.match)) + 1):
            cells = self.cell[entries]
            leverage = (weight[entries] * slope[cells])[:, None] * (response[cells] @ self.rows[cells].T)
            residual = self.up[entries] - weight[entries] * chance[cells]
            without.append(np.linalg.solve(np.eye(len(entries)) - leverage, residual) @ response[cells])
        kept = 1 - prior * drawn * (1 - drawn) * np.diag(inverse)
        pulls = np.divide(prior * (0.5 - drawn), kept, out=np.zeros_like(kept), where=kept > SINGULAR)
        return np.vstack([*without, pulls[:, None] * inverse])


def reasons(log: Sequence[RatedGame]) -> dict[str, Why]:
    """Return for each player in the log the reason why there is no rating, or an empty text."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    games = Counter(who for played in log for who in played.games())
    names = sorted({seat.who for played in log for seat in played.seats if seat.who})
    place = {who: number for number, who in enumerate(names)}
    met: set[tuple[int, int]] = set()
    decided = False
    for played in log:
        for comparison in comparisons(played):
            first, second = played.seats[comparison.i].who, played.seats[comparison.j].who
            met.add((place[first], place[second]))
            decided |= first != second and comparison.share != 0.5
    if not met:
        return dict.fromkeys(names, "few")
    size = (len(names), len(names))
    group = connected_components(coo_array((np.ones(len(met)), tuple(zip(*met, strict=True))), size), False)[1]
    labels = sorted({int(group[first]) for first, second in met if first != second})  # not those compared with nobody
    all_games, open_games = Counter[int](), Counter[int]()
    for who, count in games.items():
        all_games[int(group[place[who]])] += count
        open_games[int(group[place[who]])] += 0 if who.startswith(PERSON) else count
    main = max(labels, key=lambda label: (open_games[label], all_games[label]), default=None)

    def why(who: str) -> Why:
        if games[who] < LEAST_GAMES:
            return "few"
        if group[place[who]] != main:
            return "apart"
        return "" if decided else "level"

    return {who: why(who) for who in names}


def fit(log: Sequence[RatedGame], *, prior: float = PRIOR) -> Ladder:
    """Return the ladder of a game's log. `prior` is the weight of the drawn games."""
    log = _ordered(log)
    why = reasons(log)
    games = Counter(who for played in log for who in played.games())
    rated = {who for who, reason in why.items() if not reason}
    without = tuple(Rating(who=who, games=games[who], why=reason) for who, reason in why.items() if reason)
    if not rated:
        return Ladder(digest=digest(log), matches=len(log), ratings=without)
    design = _Design.of(log)
    coefficients = design.solve(prior)
    fits = np.vstack([coefficients, design.changes(coefficients, prior)]) * POINTS
    strengths = _centred(fits, [kind == "who" and name in rated for kind, name in design.columns])
    seats = _centred(fits, [kind == "seat" for kind, _ in design.columns])
    roles = _centred(fits, [kind == "role" for kind, _ in design.columns])
    estimates: dict[str, dict[str, Interval]] = {"who": {}, "seat": {}, "role": {}}
    for number, (kind, name) in enumerate(design.columns):
        values = {"who": strengths, "seat": seats, "role": roles}[kind][:, number]
        centre, count = (MEAN, games[name]) if kind == "who" else (0.0, len(log))
        estimates[kind][name] = _interval(centre + values[0], values[1:], count)
    ratings = [Rating(who=who, games=games[who], points=estimates["who"][who]) for who in sorted(rated)]
    ratings.sort(key=lambda rating: -rating.points.mean if rating.points else 0.0)
    return Ladder(
        digest=digest(log),
        matches=len(log),
        ratings=(*ratings, *without),
        seats={int(number): worth for number, worth in estimates["seat"].items()},
        roles=estimates["role"] if set(estimates["role"]) != {""} else {},
    )


def _centred(fits: Floats, chosen: Sequence[bool]) -> Floats:
    """Return coefficients, or changes of them, shifted so that the mean over the chosen columns is 0."""
    centred: Floats = fits - fits[:, np.array(chosen)].mean(axis=1, keepdims=True)
    return centred


def _interval(mean: float, changes: Floats, n: int) -> Interval:
    """Return the mean with Student's t interval over n games; with one game, there is one degree of freedom."""
    low, high = student(mean, float(np.sqrt(np.square(changes).sum())), max(n, 2), LEVEL)
    return Interval(mean=round(mean, 2), low=round(low, 2), high=round(high, 2), n=n, level=LEVEL)
