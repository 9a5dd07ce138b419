"""Sampling ahead of learning: which weights play which step, and that stopping and going on changes nothing."""

import gzip

import pytest
import torch

from tests.learn.small_runs import make_run
from tests.learn.test_ranked import config_of, metrics, same, spread
from training.config import parse
from training.errors import BadInput
from training.learn import losses
from training.learn.trainer import Trainer, run
from training.records import Episode
from training.run_checks import check_cluster
from training.store import loads


def versions(run_dir, attempt, step):
    """The weights' versions in the traces of a step's games."""
    with gzip.open(run_dir.attempt(attempt).episodes(step), "rt") as lines:
        games = [Episode.from_dict(loads(line)["episode"]) for line in lines]
    return {version for game in games for trace in game.traces for _, version in trace.versions}


def stop_while_learning(monkeypatch, step):
    """Ask a run once to stop as it begins to learn a step."""
    asked, learned = [], Trainer._learned

    async def stopping(trainer, rollouts, number):
        if number == step and not asked:
            asked.append(trainer.progress.attempt.ask("stop"))
        return await learned(trainer, rollouts, number)

    monkeypatch.setattr(Trainer, "_learned", stopping)


@pytest.mark.process
@pytest.mark.slow
def test_a_fixed_lag_plays_each_step_with_the_weights_of_two_steps_before_also_after_a_stop(tmp_path, monkeypatch):
    _, first = make_run(tmp_path / "a", steps=5, learn={"save_every": 2})
    whole, stopped = (spread(first, tmp_path / name, lag=1) for name in "bc")
    assert run(config_of(whole), whole)["result"] == "succeeded"
    for step in range(1, 6):
        assert versions(whole, 1, step) == {max(0, step - 2)}, step
    assert [line["lag"] for line in metrics(whole)] == [0, 1, 1, 1, 1]

    stop_while_learning(monkeypatch, 3)
    outcome = run(config_of(stopped), stopped)
    assert (outcome["result"], outcome["step"]) == ("stopped", 2), "the games of step 3 are played, and not lost"
    assert run(config_of(stopped), stopped)["result"] == "succeeded"
    for step in range(3, 6):
        assert versions(stopped, 2, step) == {max(0, step - 2)}, step
    for line in metrics(stopped, attempt=2):  # but for the rounding of an engine that batches requests as they come
        wanted = metrics(whole)[line["step"] - 1]
        assert line.keys() == wanted.keys()
        for name, value in line.items():  # value heads that have seen two steps predict by small differences
            digits = 1e-2 if name.startswith(("value_", "explained_")) else 1e-5
            assert value == pytest.approx(wanted[name], rel=digits, abs=1e-5), name
    same(whole.checkpoint_of(5), stopped.checkpoint_of(5))


@pytest.mark.parametrize(
    "changes, named",
    [
        ({"opponents": [{"source": "past"}]}, "opponents"),
        ({"rollout": {"keep_unfinished": True}}, "rollout.keep_unfinished"),
        ({"calibration": {"sets": [{"label": "questions"}]}}, "calibration.sets"),
    ],
)
def test_a_lag_is_refused_where_a_step_needs_what_is_newest(changes, named):
    with pytest.raises(BadInput, match=f"this one has {named}") as caught:
        check_cluster(parse({"cluster": {"lag": 1}, **changes}))
    assert caught.value.where == "cluster.lag"


def test_outliers_of_the_importance_weight_are_left_out():
    """Ratios 0.4, 0.5, 1, 2 and 3: those beyond a factor of 2 weigh nothing, the others at most 1.5."""
    old = torch.tensor([0.4, 0.5, 1.0, 2.0, 3.0]).log()
    weight = losses.importance_weight(old, torch.zeros(5), 1.5, 2.001)
    torch.testing.assert_close(weight, torch.tensor([0.0, 0.5, 1.0, 1.5, 0.0]))
    torch.testing.assert_close(losses.importance_weight(old, torch.zeros(5), 1.5), old.exp().clamp(max=1.5))
