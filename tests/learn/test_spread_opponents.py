"""Opponents and head-to-heads of a run on several processes: sampled by its engines, as in one process."""

import gzip

import pytest

from tests.learn.small_runs import make_run
from tests.learn.spread_runs import config_of, metrics, spread
from tests.toy_models import write_random_llama
from training.engines.choice import REGISTRY, EngineSpec
from training.evaluate import during
from training.records import Episode
from training.store import loads, read_lines


@pytest.mark.process
@pytest.mark.slow
def test_the_engines_of_a_run_sample_for_its_opponents_and_evaluations_and_the_driver_has_none(tmp_path, monkeypatch):
    """A named model and past selves with all weights, and a third model in head-to-heads: two processes play as one."""
    for name, seed in (("friend", 7), ("rival", 8)):
        write_random_llama(tmp_path / name, seed=seed, window=4096)
    config, alone = make_run(
        tmp_path / "a",
        steps=2,
        opponents=[{"source": str(tmp_path / "friend")}, {"source": "past", "weight": 2}],
        rollout={"scenarios": 3, "games": 2},
        evaluate={"every": 2, "conversations": 2, "opponent": str(tmp_path / "rival")},
    )
    run_dir = spread(alone, tmp_path / "b", engines=2)
    assert during.run(config, alone)["result"] == "succeeded"

    with monkeypatch.context() as patched:
        patched.setitem(REGISTRY, "transformers", EngineSpec("tests:the_driver_makes_no_engine", "transformers"))
        outcome = during.run(config_of(run_dir), run_dir)
    assert outcome["result"] == "succeeded", outcome

    for step in (1, 2):
        ours, theirs = ([moves(each, step), policies(each, step)] for each in (run_dir, alone))
        assert ours == theirs
    assert {"past 0", "learner", str(tmp_path / "friend")} <= policies(run_dir, 1) | policies(run_dir, 2)
    for line, wanted in zip(metrics(run_dir), metrics(alone), strict=True):
        assert line["reward"] == pytest.approx(wanted["reward"])
    results = [
        [{**event, "at": 0} for event, _ in read_lines(each.attempt(1).events) if event["kind"] == "evaluation"]
        for each in (run_dir, alone)
    ]
    assert results[0] == results[1] != []


def games_of(run_dir, step):
    with gzip.open(run_dir.attempt(1).episodes(step), "rt") as lines:
        return [Episode.from_dict(loads(line)["episode"]) for line in lines]


def moves(run_dir, step):
    return [[turn.reply for turn in game.turns] for game in games_of(run_dir, step)]


def policies(run_dir, step):
    return {trace.policy for game in games_of(run_dir, step) for trace in game.traces}
