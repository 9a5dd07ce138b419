"""How roles fare in a run: what their messages change in beliefs, and the crew's win rate over iterations.

Games that were stored by releases without these numbers are left out.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from statistics import fmean
from typing import Any

from training import config as configs
from training import phases
from training.config import RunConfig
from training.errors import BadInput
from training.evaluate.intervals import Interval, interval
from training.evaluate.iterations import Iteration, of_games, start_of
from training.games import lookup, make
from training.records import Scenario
from webapp.core.forest import Mark, mark_of, reach_of
from webapp.runs.models import Run

NEWEST = 500
"""The games whose messages count, the newest ones."""
EDGE = 20
"""The steps at each end of a phase whose games are read: also an opponent that is seldom drawn has some there."""
ENDS = (-1.0, 1.0)
"""The lowest and the highest possible change of a probability."""
STEP, TOP = 100, 100
"""The width of an iteration and the height of a chart in its coordinates."""


@cache
def has_roles(game: str) -> bool:
    """Whether a game deals roles, by its own start."""
    try:
        spec = lookup(game)
        if spec.start is None:
            names = tuple(f"{seat}" for seat in range(spec.players[0]))
            return bool(make(Scenario(id=game, game=game, seats=names)).roles())
        return bool(make(spec.start(spec.players[0])).roles())
    except BadInput:  # of no game, of one that is not installed, or of one without a start of its own
        return False


@dataclass(frozen=True)
class Persuasion:
    """What a message of one role changes in the belief of one listener, by the listener's role.

    `change` is the mean over starts of the mean of each start's games, `messages` how often a listener heard one.
    `mark` is the interval in the drawing. `metric` names the curve of the speaker's role.
    """

    metric: str
    speaker: str
    listener: str
    messages: int
    change: Interval
    mark: Mark | None

    @property
    def verdict(self) -> str:
        """The interval in words."""
        if self.change.low > 0:
            return "towards the truth"
        return "away from the truth" if self.change.high < 0 else "no change shown"


def persuasion(run: Run) -> list[Persuasion]:
    """Return a row for each role that spoke and each that heard it, over the newest games in which anybody did."""
    heard = run.episodes.of_training().filter(summary__message_effects__0__isnull=False).order_by("-step", "-number")
    cells: dict[tuple[str, str], dict[Any, list[Mapping[str, Any]]]] = {}
    names = ("message_effects", "scenario", "seed")
    rows = heard.values_list("step", "number", *(f"summary__{name}" for name in names))[:NEWEST]
    for step, number, *facts in rows:
        summary = dict(zip(names, facts, strict=True))
        start = start_of(summary) or (step, number)
        for effect in summary["message_effects"]:
            cells.setdefault((effect["speaker"], effect["listener"]), {}).setdefault(start, []).append(effect)
    changes = {
        pair: interval([fmean(game["mean"] for game in of_start) for of_start in starts.values()], scale=ENDS)
        for pair, starts in sorted(cells.items())
    }
    reach = max((reach_of(change.to_dict()) for change in changes.values()), default=0.0)
    return [
        Persuasion(
            metric=f"belief_change/{speaker}",
            speaker=_words(speaker),
            listener=_words(listener),
            messages=sum(game["n"] for of_start in cells[speaker, listener].values() for game in of_start),
            change=change,
            mark=mark_of(change.to_dict(), reach),
        )
        for (speaker, listener), change in changes.items()
    ]


def _words(role: str) -> str:
    return role.replace("_", " ")


@dataclass(frozen=True)
class IterationMark:
    """An iteration with its places in the chart: `x` of both ends, and (low, mean, high) heights at each of them."""

    iteration: Iteration
    x: tuple[int, int]
    begin: tuple[float, float, float]
    end: tuple[float, float, float]

    @property
    def side(self) -> str:
        """The roles that learned."""
        return ", ".join(map(_words, self.iteration.side))

    @property
    def change(self) -> float:
        """The change of the crew's win rate."""
        return self.iteration.end.crew.mean - self.iteration.begin.crew.mean


@dataclass(frozen=True)
class Exploitability:
    """The iterations of a run, and for each side that learned its name, its place and the line of its ends."""

    marks: list[IterationMark]

    @property
    def width(self) -> int:
        """The width of the chart in its own coordinates."""
        return STEP * len(self.marks)

    @property
    def sides(self) -> list[str]:
        """The sides, in the order in which they learned."""
        return list(dict.fromkeys(mark.side for mark in self.marks))

    @property
    def lines(self) -> list[tuple[str, str, list[IterationMark]]]:
        """For each side its name, the SVG points of its ends, and its iterations."""
        of_side = [(side, [mark for mark in self.marks if mark.side == side]) for side in self.sides]
        return [(side, " ".join(f"{mark.x[1]},{mark.end[1]:g}" for mark in marks), marks) for side, marks in of_side]


def exploitability(run: Run) -> Exploitability:
    """Return the iterations of a run in phases, in order; none without phases, or before the first games."""
    if not run.config.get("phases"):
        return Exploitability([])
    try:
        config = configs.parse(run.config, stored=True)
    except BadInput:  # of a game or a method that is no longer installed
        return Exploitability([])
    names = ("roles", "policies", "seat_metrics", "error", "scenario", "seed")
    ordered = run.episodes.of_training().filter(step__in=_edges(run, config)).order_by("step", "number")
    rows: Iterable[tuple[Any, ...]] = ordered.values_list("step", "number", *(f"summary__{name}" for name in names))
    games = ((step, number, dict(zip(names, facts, strict=True))) for step, number, *facts in rows)
    played = ((step, number, _known(summary)) for step, number, summary in games)
    return Exploitability([_placed(at, iteration) for at, iteration in enumerate(of_games(config, played))])


def _edges(run: Run, config: RunConfig) -> list[int]:
    """Return the first and the last `EDGE` steps with games of each phase."""
    ends = phases.ends(config.phases)
    steps = run.episodes.order_by("step").values_list("step", flat=True).distinct()
    by_phase = [list(of_phase) for _, of_phase in groupby(steps, key=lambda step: bisect_left(ends, step))]
    return [step for of_phase in by_phase for step in dict.fromkeys((*of_phase[:EDGE], *of_phase[-EDGE:]))]


def _known(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return a summary without the names that are missing in it, as in games of earlier releases."""
    return {"roles": [], "seat_metrics": {}, "error": None} | {k: v for k, v in summary.items() if v is not None}


def _placed(at: int, iteration: Iteration) -> IterationMark:
    begin, end = (_heights(point.crew) for point in (iteration.begin, iteration.end))
    return IterationMark(iteration, (STEP * at + 30, STEP * at + 70), begin, end)


def _heights(rate: Interval) -> tuple[float, float, float]:
    low, mean, high = (round(TOP * (1 - value), 1) for value in (rate.low, rate.mean, rate.high))
    return low, mean, high
