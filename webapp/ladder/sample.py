"""A sample ladder for games of which nobody has played a match that counts: games between players without a model.

`sample.json` holds the returns of the games that its command played, for every ordered pair of players, with the seed
and the commit. It is fitted as the site's own games are, apart from them, and never stored with them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from training.evaluate import ratings
from training.evaluate.ratings import RatedGame, RatedSeat
from training.store import loads
from webapp.arena import opponents

FILE = Path(__file__).with_name("sample.json")


@dataclass(frozen=True)
class Line:
    """A player of a sample ladder: rating with half the width of its interval, games, and points per game."""

    name: str
    rating: float | None
    half: float | None
    games: int
    share: float


@dataclass(frozen=True)
class SampleLadder:
    """The sample ladder of one game and where it comes from."""

    lines: tuple[Line, ...]
    matches: int
    command: str
    commit: str


@cache
def _stored() -> dict[str, Any]:
    stored: dict[str, Any] = loads(FILE.read_text("utf-8"))
    return stored


def games() -> list[str]:
    """The games that have a sample."""
    return list(_stored()["games"])


@cache
def ladder(game: str) -> SampleLadder | None:
    """The sample ladder of a game; None if it has none."""
    if game not in games():
        return None
    log = list(_log(game))
    fitted = ratings.fit(log)
    points = _points(log)
    lines = [
        Line(
            name=opponents.title(rating.who),
            rating=rating.points.mean if rating.points else None,
            half=(rating.points.high - rating.points.low) / 2 if rating.points else None,
            games=rating.games,
            share=points[rating.who] / rating.games,
        )
        for rating in fitted.ratings
    ]
    command = _stored()["command"].replace("GAME", game)
    return SampleLadder(tuple(lines), fitted.matches, command, _stored()["commit"])


def _log(game: str) -> Iterator[RatedGame]:
    played = ((pair["players"], returns) for pair in _stored()["games"][game] for returns in pair["returns"])
    for number, (players, returns) in enumerate(played, 1):
        seats = (RatedSeat(who=who, value=value) for who, value in zip(players, returns, strict=True))
        yield RatedGame(id=number, seats=tuple(seats))


def _points(log: list[RatedGame]) -> dict[str, float]:
    """What each player won: 1 for a win, 0.5 for a draw."""
    points: dict[str, float] = {}
    for played in log:
        for comparison in ratings.comparisons(played):
            for seat, share in ((comparison.i, comparison.share), (comparison.j, 1 - comparison.share)):
                who = played.seats[seat].who
                points[who] = points.get(who, 0.0) + share
    return points
