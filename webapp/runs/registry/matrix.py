"""Who was measured against whom: the newest result of every pair, from head-to-heads and suites, by game."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.urls import reverse

from webapp.accounts.models import User
from webapp.runs.models import Run

TITLES = {
    "won": "Games won (share)",
    "points": "Points",
    "return": "Return",
    "normalised": "Normalised return",
}
"""The numbers that a cell can have; the first that a game has is shown."""
NEWEST = 500
"""Head-to-heads and suites that are read."""


@dataclass(frozen=True)
class Result:
    """One number of a checkpoint against an opponent: a mean with its 95 % interval, over `n` games or scenarios."""

    game: str
    number: str
    model: str
    opponent: str
    model_href: str
    href: str
    mean: float
    low: float
    high: float
    n: int | None

    @property
    def half(self) -> float:
        """Half of the interval's width."""
        return (self.high - self.low) / 2


@dataclass(frozen=True)
class Grid:
    """The opponents, and for each model its address and its cells in their order; None where they have not met."""

    opponents: Sequence[str]
    rows: Sequence[tuple[str, str, Sequence[Result | None]]]


def results(user: User) -> list[Result]:
    """Every number of the newest head-to-heads and suites that this person may see, oldest first."""
    runs = Run.objects.visible_to(user).filter(kind__in=(Run.Kind.EVAL, Run.Kind.SUITE), result__isnull=False)
    newest = runs.select_related("start_checkpoint", "opponent_checkpoint").defer("config").order_by("-pk")[:NEWEST]
    return [result for run in reversed(newest) for result in _of_run(run)]


def numbers(results: Sequence[Result]) -> list[str]:
    """The numbers that occur, in the order of `TITLES`."""
    present = {result.number for result in results}
    return [name for name in TITLES if name in present]


def grid(results: Sequence[Result]) -> Grid:
    """The matrix of these results; of several of one pair, the last counts."""
    cells = {(result.model, result.opponent): result for result in results}
    opponents = sorted({opponent for _, opponent in cells})
    models = {result.model: result.model_href for result in results}
    rows = [(name, models[name], [cells.get((name, opponent)) for opponent in opponents]) for name in sorted(models)]
    return Grid(opponents, rows)


def _of_run(run: Run) -> Iterator[Result]:
    if run.start_checkpoint is None or not isinstance(run.result, dict):
        return
    if "summary" in run.result:
        yield from _of_head_to_head(run, run.result["summary"])
    yield from (result for row in run.result.get("rows", ()) for result in _of_row(run, row))


def _of_head_to_head(run: Run, summary: Mapping[str, Any]) -> Iterator[Result]:
    """Both models' numbers, each against the other; none against the weights that the run itself started from."""
    first, second = run.start_checkpoint, run.opponent_checkpoint
    if first is None or second is None or first == second:
        return
    for model, other, key in ((first, second, "a"), (second, first, "b")):
        for number in ("won", "points", "return"):
            yield from _result(run, run.game, number, (model.pk, model.name), other.name, summary[key].get(number))


def _of_row(run: Run, row: Mapping[str, Any]) -> Iterator[Result]:
    """The numbers of one task of a suite over all its seats."""
    if row.get("seat") is not None or run.start_checkpoint is None:
        return
    game = row.get("provenance", {}).get("game", "")
    opponent = f"{row['opponent']} ({row['title']})"
    model = (run.start_checkpoint.pk, run.start_checkpoint.name)
    for number, key in (("won", "won"), ("return", "raw"), ("normalised", "normalised")):
        yield from _result(run, game, number, model, opponent, row.get(key))


def _result(
    run: Run, game: str, number: str, model: tuple[int, str], opponent: str, estimate: Mapping[str, Any] | None
) -> Iterator[Result]:
    if estimate:
        model_href, href = reverse("runs:checkpoint", args=[model[0]]), reverse("runs:conversations", args=[run.pk])
        n = estimate.get("n") or (run.result or {}).get("summary", {}).get("used")
        ends = (float(estimate["mean"]), float(estimate["low"]), float(estimate["high"]))
        yield Result(game, number, model[1], opponent, model_href, href, *ends, n)
