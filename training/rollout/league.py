"""The payoff table of a league (checkpoint × opponent) and the weights of prioritised fictitious self-play (PFSP).

Source of the weights: Vinyals et al., Grandmaster level in StarCraft II using multi-agent
reinforcement learning (2019), section "Prioritized fictitious self-play".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from statistics import fmean
from typing import Any, Literal

from pydantic import Field

from training.errors import BadInput
from training.games import lookup
from training.reading import Record
from training.records import Scenario, Seat
from training.rundir import AttemptDir
from training.store import loads

UNKNOWN = 0.5
"""The result that is assumed against an opponent that the learner has not met in an evaluation."""
WEIGHTINGS: dict[str, Callable[[float], float]] = {
    "hard": lambda p: (1 - p) ** 2,
    "variance": lambda p: p * (1 - p),
}
"""PFSP's weight of an opponent, of the learner's result p against it from 0 (all is lost) to 1."""


class Cell(Record):
    """The results of one checkpoint against one opponent in the games of an evaluation.

    `learner` says which seats the checkpoint plays: `one`, or its roles, joined by commas. `results` has for every
    start the mean result of the checkpoint's seats, `others` that of the opponent's in the same games; both lie between
    `low` and `high`. `after` is the training step after which the games were played, and `first` the number of the
    first of them among that step's episodes; the others follow it. `games` counts those with a result, `errors` those
    that failed outside the models and have none.
    """

    step: int = Field(ge=0)
    opponent: str
    learner: str = "one"
    results: tuple[float, ...] = Field(min_length=1)
    others: tuple[float, ...] = Field(min_length=1)
    low: float
    high: float
    games: int
    errors: int = 0
    after: int = Field(ge=0)
    first: int = Field(ge=0)

    @property
    def score(self) -> float:
        """The mean result, mapped to 0 to 1."""
        return min(1.0, max(0.0, (fmean(self.results) - self.low) / (self.high - self.low)))


class Table:
    """The cells of a league by opponent, seats and checkpoint; a later result of the same three replaces an earlier."""

    def __init__(self, cells: Iterable[Cell] = ()) -> None:
        self._columns: dict[tuple[str, str], dict[int, Cell]] = {}
        self.add(cells)

    def __iter__(self) -> Iterator[Cell]:
        """Return all cells, by column in the order of their first results."""
        return (cell for column in self._columns.values() for cell in column.values())

    def add(self, cells: Iterable[Cell]) -> None:
        """Enter results."""
        for cell in cells:
            self._columns.setdefault((cell.opponent, cell.learner), {})[cell.step] = cell

    def score(self, opponent: str, learner: str, *, before: int, above: int = -1) -> float:
        """Return the newest result, from 0 to 1, against an opponent in the evaluations before training step `before`.

        Checkpoints up to `above` do not count: an opponent that is a past self is met by later ones alone.
        """
        column = self._columns.get((opponent, learner), {})
        steps = [step for step, cell in column.items() if step > above and cell.after < before]
        return column[max(steps)].score if steps else UNKNOWN

    def to_list(self) -> list[dict[str, Any]]:
        """Return the table as JSON data."""
        return [cell.to_dict() for cell in self]

    @classmethod
    def from_list(cls, data: Iterable[Any]) -> Table:
        """Return the table in JSON data."""
        return cls(Cell.from_dict(cell) for cell in data)


def read(attempt: AttemptDir) -> Table:
    """Return the table that an attempt has written; an empty one where it has written none.

    Raises `BadInput` that names the file if it is damaged.
    """
    if not attempt.league.is_file():
        return Table()
    try:
        return Table.from_list(loads(attempt.league.read_text("utf-8"))["cells"])
    except (ValueError, KeyError, TypeError, BadInput) as error:
        raise BadInput(f"not the table of a league: {error}", str(attempt.league)) from error


def seats_title(learner: Literal["one"] | Iterable[str]) -> str:
    """Return what cells call the learner's seats."""
    return learner if isinstance(learner, str) else ", ".join(learner)


def bounds(scenarios: Iterable[Scenario]) -> tuple[float, float]:
    """Return the lowest and highest result of these scenarios' cells: their own, or 0 and 1 where they differ."""
    first, *others = {(scenario.game, range_of(scenario)) for scenario in scenarios}
    return (0.0, 1.0) if others else first[1]


def range_of(scenario: Scenario) -> tuple[float, float]:
    """Return the lowest and highest return of a seat in this scenario, as its settings have it."""
    return lookup(scenario.game).range_of(scenario.settings)


def mean_result(
    scenario: Scenario, returns: dict[Seat, float], seats: Iterable[Seat], scale: tuple[float, float]
) -> float:
    """Return the mean of these seats' returns in a game, linearly mapped from the scenario's own scale to `scale`."""
    (least, most), (low, high) = range_of(scenario), scale
    return low + (fmean(returns[seat] for seat in seats) - least) / (most - least) * (high - low)
