"""Who was measured against whom: the newest result of every pair, by game.

Results come from head-to-heads, suites, and the head-to-head after the last step of a training run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Q
from django.urls import reverse

from webapp.accounts.models import User
from webapp.runs.models import Checkpoint, Run

TITLES = {
    "won": "Games won (share)",
    "points": "Points",
    "return": "Return",
    "normalised": "Normalised return",
}
"""The numbers that a cell can have; the first that a game has is shown."""
OF_HEAD_TO_HEAD = ("won", "points", "return")
MEASURED = (Run.Kind.EVAL, Run.Kind.SUITE, Run.Kind.TRAIN)
NEWEST = 500
"""Runs with a result that are read."""


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
    """Every number of the newest measurements that this person may see, oldest first."""
    measured = Q(result__has_key="summary") | Q(result__has_key="rows")
    runs = Run.objects.visible_to(user).filter(measured, kind__in=MEASURED).defer("config", "error", "sparkline")
    newest = list(runs.select_related("start_checkpoint", "opponent_checkpoint").order_by("-pk")[:NEWEST])
    trained = _last_checkpoints(run for run in newest if run.kind == Run.Kind.TRAIN)
    return [result for run in reversed(newest) for result in _of_run(run, trained)]


def _last_checkpoints(runs: Iterable[Run]) -> dict[int, Checkpoint]:
    """The last checkpoint of each of these runs that still has one."""
    saved = Checkpoint.objects.filter(run__in=list(runs)).order_by("step").only("pk", "name", "run_id", "step")
    return {checkpoint.run_id: checkpoint for checkpoint in saved if checkpoint.run_id}


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


def _of_run(run: Run, trained: Mapping[int, Checkpoint]) -> Iterator[Result]:
    result = run.result or {}
    if run.kind == Run.Kind.TRAIN:
        yield from _of_training(run, result.get("summary", {}), trained.get(run.pk))
    elif run.start_checkpoint is not None:
        if "summary" in result:
            yield from _of_head_to_head(run, result["summary"])
        yield from (each for row in result.get("rows", ()) for each in _of_row(run, row))


def _of_training(run: Run, summary: Mapping[str, Any], last: Checkpoint | None) -> Iterator[Result]:
    """The learner after its last step, against the weights that the run names or, without any, started from.

    A run without checkpoints, such as a sample, stands for its learner.
    """
    conditions = (run.result or {}).get("conditions", {})
    before = run.opponent_checkpoint or run.start_checkpoint
    opponent = before.name if before else conditions.get("b", {}).get("title") or run.base
    model = (last.name, _page_of(last)) if last else (run.name, reverse("runs:detail", args=[run.pk]))
    games = reverse("runs:evaluation", args=[run.pk])  # the report: its games are not among the run's conversations
    for number in OF_HEAD_TO_HEAD:
        yield from _result(run, run.game, number, model, opponent, summary.get("a", {}).get(number), games)


def _of_head_to_head(run: Run, summary: Mapping[str, Any]) -> Iterator[Result]:
    """Both models' numbers, each against the other; none against the weights that the run itself started from."""
    first, second = run.start_checkpoint, run.opponent_checkpoint
    if first is None or second is None or first == second:
        return
    games = reverse("runs:conversations", args=[run.pk])
    for model, other, key in ((first, second, "a"), (second, first, "b")):
        for number in OF_HEAD_TO_HEAD:
            named = (model.name, _page_of(model))
            yield from _result(run, run.game, number, named, other.name, summary[key].get(number), games)


def _of_row(run: Run, row: Mapping[str, Any]) -> Iterator[Result]:
    """The numbers of one task of a suite over all its seats."""
    if row.get("seat") is not None or run.start_checkpoint is None:
        return
    game = row.get("provenance", {}).get("game", "")
    opponent = f"{row['opponent']} ({row['title']})"
    model, games = (
        (run.start_checkpoint.name, _page_of(run.start_checkpoint)),
        reverse("runs:conversations", args=[run.pk]),
    )
    for number, key in (("won", "won"), ("return", "raw"), ("normalised", "normalised")):
        yield from _result(run, game, number, model, opponent, row.get(key), games)


def _page_of(checkpoint: Checkpoint) -> str:
    return reverse("runs:checkpoint", args=[checkpoint.pk])


def _result(
    run: Run,
    game: str,
    number: str,
    model: tuple[str, str],
    opponent: str,
    estimate: Mapping[str, Any] | None,
    games: str,
) -> Iterator[Result]:
    """The number if it was measured; `model` is a name and its page, `games` the page of the measurement."""
    if estimate:
        n = estimate.get("n") or (run.result or {}).get("summary", {}).get("used")
        ends = (float(estimate["mean"]), float(estimate["low"]), float(estimate["high"]))
        yield Result(game, number, model[0], opponent, model[1], games, *ends, n)
