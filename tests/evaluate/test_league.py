"""A league's table as means with intervals, and meta-strategies whose value is known."""

import json

import pytest
from scipy import stats

from training.cli import main
from training.evaluate import league
from training.rollout.league import Cell, Table
from training.rundir import RunDir
from training.store import write_json


def cell(step, opponent, mean, *, spread=0.0, low=-1.0, high=1.0, after=None, **more):
    """A zero-sum cell with two starts."""
    results = (mean - spread, mean + spread)
    others = tuple(low + high - result for result in results)
    after = step if after is None else after
    return Cell(
        **{"games": 4, "first": 16384, "others": others, **more},
        step=step, opponent=opponent, results=results, low=low, high=high, after=after,
    )  # fmt: skip


def population(matrix, steps=None, **named):
    """The cells of checkpoints 10, 20, … with these means against each other; the diagonal is not played."""
    steps = steps or [10 * (at + 1) for at in range(len(matrix))]
    cells = [
        cell(steps[i], f"past {steps[j]}", value)
        for i, row in enumerate(matrix)
        for j, value in enumerate(row)
        if i != j
    ]
    return cells + [
        cell(step, name, mean) for name, means in named.items() for step, mean in zip(steps, means, strict=True)
    ]


ROCK_PAPER_SCISSORS = [[0, -1, 1], [1, 0, -1], [-1, 1, 0]]


def test_rock_paper_scissors_is_uniform():
    meta = league.meta_strategy(population(ROCK_PAPER_SCISSORS))
    assert meta.checkpoints == (10, 20, 30)
    assert meta.opponents == ("past 10", "past 20", "past 30")
    for strategy in (meta.alpha_rank, meta.nash):
        assert strategy.checkpoints == pytest.approx([1 / 3] * 3, abs=1e-3)
        assert strategy.opponents == pytest.approx([1 / 3] * 3, abs=1e-3)
    assert meta.nash_conv < 1e-3


def test_a_dominated_checkpoint_has_no_weight():
    # the first loses to everybody, by more than the others lose: they are rock, paper and scissors at half the stakes
    weak = [[0, -1, -1, -1], *([1, *(value / 2 for value in row)] for row in ROCK_PAPER_SCISSORS)]
    meta = league.meta_strategy(population(weak))
    for strategy in (meta.alpha_rank, meta.nash):
        assert strategy.checkpoints == pytest.approx([0, 1 / 3, 1 / 3, 1 / 3], abs=2e-3)


def test_a_checkpoint_that_beats_all_others_has_all_weight():
    meta = league.meta_strategy(population([[0, -0.2, -0.5], [0.2, 0, -0.1], [0.5, 0.1, 0]]))
    for strategy in (meta.alpha_rank, meta.nash):
        assert strategy.checkpoints == pytest.approx([0, 0, 1], abs=5e-3)


def test_unequal_stakes_have_the_nash_equilibrium_of_the_textbook():
    # rock-paper-scissors in which rock's win over scissors pays 2: p = (1, 2, 1) / 4 on rock, paper, scissors
    stakes = [[0, -0.5, 1], [0.5, 0, -0.5], [-1, 0.5, 0]]
    meta = league.meta_strategy(population(stakes))
    assert meta.nash.checkpoints == pytest.approx([0.25, 0.5, 0.25], abs=1e-2)
    assert meta.nash_conv < 1e-3


def test_against_named_opponents_alone_the_hardest_has_the_weight():
    # step 20 is better against both, and worst off against b: a saddle point
    meta = league.meta_strategy([
        cell(10, "a", 0.2), cell(10, "b", -0.4), cell(20, "a", 0.6), cell(20, "b", 0.1),
    ])  # fmt: skip
    assert (meta.checkpoints, meta.opponents) == ((10, 20), ("a", "b"))
    for strategy in (meta.alpha_rank, meta.nash):
        assert strategy.checkpoints == pytest.approx([0, 1], abs=5e-3)
        assert strategy.opponents == pytest.approx([0, 1], abs=5e-3)


def test_common_payoffs_are_no_zero_sum_game():
    # both get 1 where they meet their own kind of convention 20, 0.5 at 10, else 0
    cells = [
        cell(step, f"past {other}", value, low=0.0, others=(value, value))
        for step, other, value in ((10, 10, 0.5), (20, 20, 1.0), (10, 20, 0.0), (20, 10, 0.0))
    ]
    meta = league.meta_strategy(cells)
    assert max(meta.nash.checkpoints) == pytest.approx(1, abs=1e-2)
    assert meta.nash.checkpoints == pytest.approx(meta.nash.opponents, abs=1e-2)
    assert meta.nash_conv < 1e-2


def test_a_result_with_oneself_that_failed_is_not_made_up():
    cells = population(ROCK_PAPER_SCISSORS) + [cell(step, f"past {step}", 0.5) for step in (10, 20)]
    assert league.meta_strategy(cells).checkpoints == (10, 20)


def test_a_ranking_that_is_not_unique_is_none(monkeypatch, tmp_path, capsys):
    from open_spiel.python.egt import alpharank

    def several(*_, **__):
        raise ValueError("Expected 1 stationary distribution, but found 2")

    league._solved.cache_clear()
    monkeypatch.setattr(alpharank, "compute", several)
    cells = population(ROCK_PAPER_SCISSORS)
    meta = league.meta_strategy(cells)
    assert meta.alpha_rank is None
    assert meta.nash.checkpoints == pytest.approx([1 / 3] * 3, abs=1e-3)
    assert main(["league", str(run_with(cells, tmp_path / "run").root)]) == 0
    assert "not unique" in capsys.readouterr().out
    league._solved.cache_clear()


def test_only_checkpoints_that_have_all_met_enter():
    cells = population(ROCK_PAPER_SCISSORS, scripted=[0.1, 0.2, 0.3])
    # 40 has met 20 and 30, but not 10, which left the pool
    cells += [cell(40, f"past {step}", 0.5) for step in (20, 30)]
    cells += [cell(step, "past 40", -0.5, after=40) for step in (20, 30)]
    cells.append(cell(40, "scripted", 0.4))
    meta = league.meta_strategy(cells)
    assert meta.checkpoints == (20, 30, 40)
    assert meta.opponents == ("past 20", "past 30", "past 40", "scripted")


def test_a_large_population_enters_with_its_newest_checkpoints():
    strengths = [step / 100 for step in range(30)]
    cells = population([[a - b for b in strengths] for a in strengths], scripted=[0.5] * 30)
    meta = league.meta_strategy(cells)
    assert meta.checkpoints == tuple(range(120, 310, 10))  # 19 · 20 pairs are no more than 400, 20 · 21 are
    assert meta.nash.checkpoints[-1] == pytest.approx(1, abs=1e-2)


def test_a_cell_is_a_mean_with_students_interval_over_starts():
    [table] = league.summarise([cell(10, "scripted", 0.25, spread=0.1, errors=2)])
    [entry] = table.cells
    half = stats.t.ppf(0.975, 1) * 0.1  # two values 0.2 apart: their mean's standard error is 0.1
    assert (entry.result.mean, entry.result.n) == (pytest.approx(0.25), 2)
    assert (entry.result.low, entry.result.high) == (pytest.approx(0.25 - half), pytest.approx(0.25 + half))
    assert entry.score == pytest.approx(0.625)  # from -1 to 1
    assert (entry.games, entry.errors, table.low, table.high) == (4, 2, -1, 1)


def test_columns_are_past_steps_by_number_then_names():
    cells = [cell(20, name, 0.0) for name in ("scripted", "past 10", "mcts:100", "past 9")]
    [table] = league.summarise(cells)
    assert table.opponents == ("past 9", "past 10", "mcts:100", "scripted")


# --- the command ---


def run_with(cells, root):
    run_dir = RunDir(root)
    root.mkdir(exist_ok=True)
    write_json(run_dir.config, {})
    run_dir.attempt(1).root.mkdir(parents=True)
    write_json(run_dir.attempt(1).league, {"version": 1, "cells": Table(cells).to_list()})
    return run_dir


def test_the_command_prints_table_and_meta_strategy(tmp_path, capsys):
    run_dir = run_with(population(ROCK_PAPER_SCISSORS), tmp_path / "run")
    run_dir.attempt(2).root.mkdir()  # an attempt that ended before its first evaluation
    assert main(["league", str(run_dir.root), "--json"]) == 0
    [table] = json.loads(capsys.readouterr().out)["tables"]
    assert (table["checkpoints"], table["learner"]) == ([10, 20, 30], "one")
    assert {(c["step"], c["opponent"]): c["result"]["mean"] for c in table["cells"]}[10, "past 30"] == 1
    assert table["meta"]["nash"]["checkpoints"] == pytest.approx([1 / 3] * 3, abs=1e-3)
    assert main(["league", str(run_dir.root)]) == 0
    shown = capsys.readouterr().out
    assert "step 10      past 30" in shown
    assert "alpha-rank" in shown


def test_a_run_without_a_league_is_told_what_to_set(tmp_path, capsys):
    run_dir = run_with([], tmp_path / "run")
    assert main(["league", str(run_dir.root), "--json"]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["where"] == "league.every"
    assert "set league.every" in error["why"]
    for damaged in ("{", "{}", '{"cells": [{"step": 1}]}', "[]"):
        run_dir.attempt(1).league.write_text(damaged)
        assert main(["league", str(run_dir.root), "--json"]) == 2
        error = json.loads(capsys.readouterr().out)["error"]
        assert error["where"] == str(run_dir.attempt(1).league)
        assert "not the table of a league" in error["why"]
    assert main(["league", str(tmp_path / "nothing"), "--json"]) == 2
    assert "not a run directory" in json.loads(capsys.readouterr().out)["error"]["why"]
