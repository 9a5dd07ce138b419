"""The payoff table of a league as means with intervals, and its meta-strategy by OpenSpiel's solvers.

The empirical game has two players: one chooses a checkpoint, the other an opponent, and they get the mean results of
the games that both have played. Its α-rank (Omidshafiei et al. 2019) is computed in the limit of strong selection, its
Nash equilibrium by CFR+ with the distance that remains. Raises `BadInput` for a run without a league.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable, Sequence
from functools import lru_cache
from statistics import fmean
from types import ModuleType
from typing import Any

from training.config import load
from training.errors import BadInput
from training.evaluate.intervals import Interval, interval
from training.opponent_sections import PAST
from training.reading import Record
from training.rollout.league import Cell, Table, read
from training.rundir import RunDir

MOST_PAIRS = 400
"""Most pairs of a checkpoint and an opponent in a meta-strategy: α-rank's time grows with their third power."""
ITERATIONS = 1000
NOISES = (0.001, 0.01, 0.1)
"""α-rank's chances of a step that does not pay; the smallest at which the ranking is unique is used."""
Row = tuple[float, ...]
Payoffs = tuple[Row, ...]


class Entry(Record):
    """One cell as a reader sees it: the mean result over starts with its interval, and `score`, the mean from 0 to 1.

    `after` and `first` locate its `games` + `errors` games among the run's episodes.
    """

    step: int
    opponent: str
    result: Interval
    score: float
    games: int
    errors: int
    after: int
    first: int


class Strategy(Record):
    """A mixture of the checkpoints and one of the opponents, in the order of a `MetaStrategy`."""

    checkpoints: Row
    opponents: Row


class MetaStrategy(Record):
    """The solutions of the empirical game of some checkpoints and opponents that have all met.

    `alpha_rank` is None where the ranking is not unique. `nash_conv` is the sum of what both players could still gain
    by a best response to `nash`, on the scale 0 to 1.
    """

    checkpoints: tuple[int, ...]
    opponents: tuple[str, ...]
    alpha_rank: Strategy | None
    nash: Strategy
    nash_conv: float


class PayoffTable(Record):
    """The table of one side of the learner: `learner` as in `Cell`, results between `low` and `high`."""

    learner: str
    low: float
    high: float
    checkpoints: tuple[int, ...]
    opponents: tuple[str, ...]
    cells: tuple[Entry, ...]
    meta: MetaStrategy | None = None


def of_run(run_dir: RunDir) -> list[PayoffTable]:
    """Return the tables of a run's newest attempt that has one, a table for each side of the learner."""
    if not run_dir.config.is_file():
        raise BadInput("no config.json: not a run directory", str(run_dir.root))
    if (kind := load(run_dir.config, stored=True).kind) != "train":
        raise BadInput(f"only training has a league; this run is of kind {kind!r}", str(run_dir.root))
    for number in reversed(run_dir.attempts()):
        if tables := summarise(read(run_dir.attempt(number))):
            return tables
    raise BadInput(
        "no league was played: set league.every to a multiple of learn.save_every, and name opponents such as `past`",
        "league.every",
    )


def from_events(data: Iterable[Any]) -> list[PayoffTable]:
    """Return the tables of the cells in a run's `league` events; a later result of a pair replaces an earlier one."""
    return summarise(Table.from_list(data))


def summarise(cells: Iterable[Cell]) -> list[PayoffTable]:
    """Return the cells as tables, one for each side of the learner, with their meta-strategies."""
    sides: dict[str, list[Cell]] = {}
    for cell in cells:
        sides.setdefault(cell.learner, []).append(cell)
    return [_table(learner, members) for learner, members in sides.items()]


def _table(learner: str, cells: Sequence[Cell]) -> PayoffTable:
    first = cells[0]
    return PayoffTable(
        learner=learner,
        low=first.low,
        high=first.high,
        checkpoints=tuple(sorted({cell.step for cell in cells})),
        opponents=tuple(sorted({cell.opponent for cell in cells}, key=_place)),
        cells=tuple(_entry(cell) for cell in sorted(cells, key=lambda cell: (cell.step, _place(cell.opponent)))),
        meta=meta_strategy(cells),
    )


def _entry(cell: Cell) -> Entry:
    scale = (cell.low, cell.high)
    return Entry(
        step=cell.step,
        opponent=cell.opponent,
        result=interval(cell.results, scale=scale),
        score=cell.score,
        games=cell.games,
        errors=cell.errors,
        after=cell.after,
        first=cell.first,
    )


def _place(opponent: str) -> tuple[bool, int, str]:
    """Return the place of an opponent's column: past selves by step, then the others by name."""
    step = past_step(opponent)
    return (True, 0, opponent) if step is None else (False, step, "")


def past_step(opponent: str) -> int | None:
    """Return the step of a past self, None for another opponent."""
    first, _, step = opponent.partition(" ")
    return int(step) if first == PAST and step.isdecimal() else None


# --- the empirical game ---


def meta_strategy(cells: Iterable[Cell]) -> MetaStrategy | None:
    """Return the meta-strategy of the newest checkpoints that have all met; None where none have."""
    results = {(cell.step, cell.opponent): cell for cell in cells}
    checkpoints, opponents = _complete(results)
    if not (checkpoints and opponents):
        return None
    pairs = [[_payoffs(results.get((step, opponent))) for opponent in opponents] for step in checkpoints]
    mine, theirs = (tuple(tuple(pair[at] for pair in row) for row in pairs) for at in (0, 1))
    ranked, nash, nash_conv = _solved(mine, theirs)
    return MetaStrategy(checkpoints=checkpoints, opponents=opponents, alpha_rank=ranked, nash=nash, nash_conv=nash_conv)


def _payoffs(cell: Cell | None) -> tuple[float, float]:
    """Return both means on the scale 0 to 1. No cell: a checkpoint against itself, which zero-sum games leave out."""
    if cell is None:
        return 0.5, 0.5
    width = cell.high - cell.low
    return (fmean(cell.results) - cell.low) / width, (fmean(cell.others) - cell.low) / width


def _complete(results: dict[tuple[int, str], Cell]) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Return the newest checkpoints, and the opponents, of which each has met each."""
    steps = sorted({step for step, _ in results}, reverse=True)
    named = sorted({opponent for _, opponent in results if past_step(opponent) is None})
    play_past = any(past_step(opponent) is not None for _, opponent in results)
    play_themselves = any((step, f"{PAST} {step}") in results for step in steps)
    chosen: list[int] = []
    for step in steps:
        met_others = all((step, name) in results for name in named)
        others = [*chosen, step] if play_themselves else chosen
        met_chosen = all({(step, f"{PAST} {other}"), (other, f"{PAST} {step}")} <= results.keys() for other in others)
        rows = len(chosen) + 1
        fits = rows * (len(named) + rows * play_past) <= MOST_PAIRS or not chosen
        if met_others and (met_chosen or not play_past) and fits:
            chosen.append(step)
    past = [f"{PAST} {step}" for step in sorted(chosen)] if play_past else []
    return tuple(sorted(chosen)), (*past, *named)


@lru_cache(maxsize=64)
def _solved(mine: Payoffs, theirs: Payoffs) -> tuple[Strategy | None, Strategy, float]:
    """Return α-rank, the Nash equilibrium and its NashConv of the game with these payoffs of both players."""
    nash, nash_conv = _nash(mine, theirs)
    return _alpha_rank(mine, theirs), nash, nash_conv


def _alpha_rank(mine: Payoffs, theirs: Payoffs) -> Strategy | None:
    import numpy as np

    drawing = "open_spiel.python.egt.alpharank_visualizer"
    if importlib.util.find_spec("matplotlib") is None:
        sys.modules.setdefault(drawing, ModuleType(drawing))  # the solver imports it, but only its plots need it
    from open_spiel.python.egt import alpharank

    tables = [np.array(mine), np.array(theirs)]
    for noise in NOISES:
        try:
            joint = np.abs(
                alpharank.compute(tables, use_inf_alpha=True, inf_alpha_eps=noise)[2].reshape(tables[0].shape)
            )
        except ValueError:  # to rounding there are several stationary distributions
            continue
        return Strategy(checkpoints=tuple(joint.sum(axis=1).tolist()), opponents=tuple(joint.sum(axis=0).tolist()))
    return None


def _nash(mine: Payoffs, theirs: Payoffs) -> tuple[Strategy, float]:
    import pyspiel

    rows, columns = ([str(at) for at in range(count)] for count in (len(mine), len(mine[0])))
    matrix = pyspiel.create_matrix_game("league", "league", rows, columns, mine, theirs)
    game = pyspiel.convert_to_turn_based(matrix)
    solver = pyspiel.CFRPlusSolver(game)
    for _ in range(ITERATIONS):
        solver.evaluate_and_update_policy()
    policy, state = solver.average_policy(), game.new_initial_state()
    first = policy.action_probabilities(state)
    state.apply_action(0)
    second = policy.action_probabilities(state)
    mixed = Strategy(
        checkpoints=tuple(first[at] for at in range(len(rows))),
        opponents=tuple(second[at] for at in range(len(columns))),
    )
    return mixed, max(0.0, float(pyspiel.nash_conv(game, policy)))
