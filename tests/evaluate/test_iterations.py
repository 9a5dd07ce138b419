"""The crew's win rates at both ends of each phase, from the index of a run that is written by hand."""

import json

import pytest
from scipy import stats

from training.cli import main
from training.evaluate.iterations import iterations
from training.rundir import RunDir
from training.store import append_line, write_json

ROLES = ["crewmate", "imposter", "crewmate", "crewmate"]
CREW = {"name": "crew", "steps": 4, "opponents": [{"source": "start", "learner": ["crewmate"], "partner": "start"}]}
IMPOSTER = {"name": "imposter", "steps": 2, "opponents": [{"source": "phase crew", "learner": ["imposter"]}]}
MIXED = {"name": "mixed", "steps": 1, "opponents": [{"source": "past", "learner": ["crewmate"]}]}
OF_CREW = ["learner", "start", "start", "learner"]
OF_IMPOSTER = ["a-model", "learner", "phase crew", "phase crew"]


def run(root, *, steps=7, games=1, phases=(CREW, IMPOSTER, MIXED), **sections):
    """An empty run directory of Among Us in phases."""
    config = {
        "game": {"name": "among_us"},
        "rollout": {"games": games},
        "learn": {"steps": steps, "save_every": 1, "critic_warmup": 0},
        "phases": list(phases),
        **sections,
    }
    run_dir = RunDir(root)
    write_json(run_dir.config, config)
    return run_dir


def attempt(run_dir, number, begun, steps, unfinished=None, seeds=()):
    """Write an attempt: `steps` are (policies, crew's wins by game) of the steps after `begun`; games have `seeds`."""
    files = run_dir.attempt(number)
    files.index.parent.mkdir(parents=True)
    append_line(files.events, {"at": 0, "kind": "started", "attempt": number, "step": begun})
    for step, (policies, wins) in enumerate(steps, begun + 1):
        for game, won in enumerate(wins):
            seats = {str(seat): {"won": float(won == (role == "crewmate"))} for seat, role in enumerate(ROLES)}
            summary = {"roles": ROLES, "policies": policies, "seat_metrics": seats, "error": None}
            if seeds:
                summary |= {"scenario": "ship", "seed": seeds[game]}
            if won is None:
                summary |= {"seat_metrics": {}, "error": {"kind": "engine", "message": "gone"}}
            append_line(files.index, {"step": step, "episode": game, "summary": summary})
        if step != unfinished:
            append_line(files.metrics, {"step": step, "at": 0})


def test_both_ends_of_each_phase(tmp_path):
    run_dir = run(tmp_path)
    crew = [(OF_CREW, wins) for wins in ([0, 0, 0, 1], [1, 0, 0, 0], [1, 1, 0, 1], [1, 1, 1, None])]
    imposter = [(OF_IMPOSTER, [1, 1, 1, 0]), (OF_IMPOSTER, [0, 1, 0, 0])]
    attempt(run_dir, 1, 0, crew + imposter)
    first, second = iterations(run_dir)
    assert (first.phase, first.side, first.opponent, first.partner) == ("crew", ("crewmate",), "start", "start")
    assert (second.phase, second.side, second.partner) == ("imposter", ("imposter",), "")
    assert second.opponent == "phase crew, a-model"  # its ally holds fewer seats
    # the crew's phase has four steps, so that two count at each end; a game that failed does not
    assert [(p.first, p.last, p.games, p.crew.mean) for p in (first.begin, first.end)] == [
        (1, 2, 8, 2 / 8),
        (3, 4, 7, 6 / 7),
    ]
    exact = stats.binomtest(2, 8).proportion_ci(method="exact")
    assert (first.begin.crew.low, first.begin.crew.high) == pytest.approx((exact.low, exact.high))
    # the imposter's side learned, and the number is still the crew's
    assert [(p.first, p.last, p.crew.mean) for p in (second.begin, second.end)] == [(5, 5, 3 / 4), (6, 6, 1 / 4)]
    assert [(entry.step, entry.complete) for entry in (first, second)] == [(4, True), (6, True)]
    iteration = iterations(run_dir, pooled=1)[0]
    assert [(p.first, p.last, p.crew.mean) for p in (iteration.begin, iteration.end)] == [(1, 1, 1 / 4), (4, 4, 1.0)]


def test_games_of_one_start_are_one_value(tmp_path):
    run_dir = run(tmp_path, games=2)
    attempt(run_dir, 1, 0, [(OF_CREW, [1, 1, 1, 0])])
    [entry] = iterations(run_dir)
    assert (entry.begin.games, entry.begin.crew.n, entry.begin.crew.mean) == (4, 2, 0.75)
    low, high = stats.t.interval(0.95, 1, 0.75, 0.25)  # of the values 1 and 1/2: standard error 1/4
    assert (entry.begin.crew.low, entry.begin.crew.high) == pytest.approx((low, high))
    assert not entry.complete


def test_a_start_that_is_played_again_in_a_later_step_is_one_value(tmp_path):
    """Two starts with seeds of their own, in each of two steps at either end: two values, not four."""
    run_dir = run(tmp_path)
    attempt(run_dir, 1, 0, [(OF_CREW, [1, 0]), (OF_CREW, [1, 1]), (OF_CREW, [1, 1]), (OF_CREW, [1, 0])], seeds=(7, 8))
    [entry] = iterations(run_dir)
    assert (entry.begin.games, entry.begin.crew.n, entry.begin.crew.mean) == (4, 2, 0.75)
    low, high = stats.t.interval(0.95, 1, 0.75, 0.25)  # of the values 1 and 1/2
    assert (entry.begin.crew.low, entry.begin.crew.high) == pytest.approx((low, high))


def test_random_moves_are_no_policy_whose_win_rate_is_measured(tmp_path):
    drawn = {**CREW, "rollout": {"random_moves": True}}
    run_dir = run(tmp_path, phases=(drawn, IMPOSTER, MIXED), sampling={"constrain": True})
    attempt(run_dir, 1, 0, [(OF_CREW, [1])] * 4 + [(OF_IMPOSTER, [1])] * 2)
    assert [entry.phase for entry in iterations(run_dir)] == ["imposter"]


def test_a_later_attempt_replaces_what_it_played_again(tmp_path):
    run_dir = run(tmp_path)
    attempt(run_dir, 1, 0, [(OF_CREW, [0]), (OF_CREW, [0]), (OF_CREW, [0])], unfinished=3)
    attempt(run_dir, 2, 1, [(OF_CREW, [1])])
    [entry] = iterations(run_dir)
    assert [(p.first, p.last, p.games, p.crew.mean) for p in (entry.begin, entry.end)] == [(1, 1, 1, 0), (2, 2, 1, 1)]


def test_an_attempt_that_ended_while_loading_replaces_nothing(tmp_path):
    run_dir = run(tmp_path)
    attempt(run_dir, 1, 0, [(OF_CREW, [0]), (OF_CREW, [1])])
    append_line(run_dir.attempt(2).events, {"at": 0, "kind": "error", "step": 2, "why": "out of memory"})
    [entry] = iterations(run_dir)
    assert [(p.first, p.last, p.games, p.crew.mean) for p in (entry.begin, entry.end)] == [(1, 1, 1, 0), (2, 2, 1, 1)]


def test_past_selves_are_one_opponent_and_the_learner_itself_is_none(tmp_path):
    run_dir = run(tmp_path, steps=2, phases=[{**MIXED, "steps": 2}])
    against = [["learner", f"past {step}", "learner", "learner"] for step in (0, 1)]
    attempt(run_dir, 1, 0, [(against[0], [1]), (against[1], [0])])
    [entry] = iterations(run_dir)
    assert (entry.opponent, entry.step) == ("past", 2)
    mirrored = run(tmp_path / "mirror")
    attempt(mirrored, 1, 0, [(["learner"] * 4, [1]), ([], [1])])
    assert iterations(mirrored) == []


def test_the_command(tmp_path, capsys):
    run_dir = run(tmp_path)
    attempt(run_dir, 1, 0, [(OF_CREW, [1])])
    assert main(["iterations", str(tmp_path), "--json"]) == 0
    [entry] = json.loads(capsys.readouterr().out)["iterations"]
    assert entry["begin"]["crew"]["mean"] == 1
    assert main(["iterations", str(tmp_path)]) == 0
    assert "crew: crewmate beside start against start" in capsys.readouterr().out
    assert main(["iterations", str(tmp_path / "nowhere"), "--json"]) == 2
    assert "config.json" in capsys.readouterr().out
    assert main(["iterations", str(run(tmp_path / "empty").root)]) == 2
    assert "no phase has played" in capsys.readouterr().err
