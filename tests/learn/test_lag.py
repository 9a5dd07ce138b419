"""Sampling ahead of learning: which weights play which step, and that stopping and going on changes nothing."""

import gzip

import pytest
import torch

from tests.learn.small_runs import make_run
from tests.learn.spread_runs import config_of, metrics, same, same_line, spread
from training.config import parse
from training.errors import BadInput
from training.learn import losses
from training.learn.trainer import Trainer, run
from training.learn.unfinished import Unfinished
from training.records import Episode
from training.rollout.league import read
from training.run_sections import MOST_GAMES
from training.store import loads, read_lines


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
        # value heads that have seen two steps predict by small differences
        same_line(line, metrics(whole)[line["step"] - 1], heads=1e-2)
    same(whole.checkpoint_of(5), stopped.checkpoint_of(5))


class RecordingCalibration:
    """Instead of asking a single agent, records whose weights the engine has."""

    def __init__(self):
        self.engine_steps = []

    def due(self, step):
        return step % 2 == 0

    async def __call__(self, trainer):
        self.engine_steps.append((trainer.step, trainer.context.engine.version))


def met(run_dir, step):
    """The past selves that a step's games met, without games of an evaluation."""
    index = (line for line, _ in read_lines(run_dir.attempt(1).index) if line["step"] == step)
    played = [line["summary"]["policies"] for line in index if line["episode"] < MOST_GAMES]
    return {int(policy.removeprefix("past ")) for policies in played for policy in policies if "past" in policy}


@pytest.mark.process
@pytest.mark.slow
def test_past_selves_and_results_are_as_old_as_the_weights_that_play_also_after_a_stop(tmp_path, monkeypatch):
    """In a league, whose evaluations play the present weights, as questions to a single agent do."""
    sections = {
        "opponents": [{"source": "mirror"}, {"source": "past", "weight": 3}],
        "league": {"every": 2, "games": 2, "pfsp": "variance"},
        "rollout": {"scenarios": 2, "games": 2, "past_saved": 4, "keep_unfinished": True},
        "stop": {"advantage_drift": 0.0},
    }
    _, first = make_run(tmp_path / "a", steps=6, **sections)
    whole, stopped = (spread(first, tmp_path / name, lag=1) for name in "bc")
    calibration = RecordingCalibration()
    outcome = run(config_of(whole), whole, calibrate=calibration)
    assert outcome["result"] == "succeeded", outcome
    assert calibration.engine_steps == [(step, step) for step in (0, 2, 4, 6)]
    past = [met(whole, step) for step in range(1, 7)]
    assert all(each <= set(range(max(1, step - 1))) for step, each in enumerate(past, 1)), past
    assert any(each - {0} for each in past)

    add, kept = Unfinished.add_episode, []

    def adding(self, game, episode):
        add(self, game, episode)
        kept.append(game)
        if len(kept) == 14:  # of four games a step: two of step 4 are played, and none of it is learned
            stopped.attempt(1).ask("stop")

    monkeypatch.setattr(Unfinished, "add_episode", adding)
    assert run(config_of(stopped), stopped)["result"] == "stopped"
    assert 14 <= len(kept) < 24
    assert run(config_of(stopped), stopped)["result"] == "succeeded"
    assert len(kept) == 24, "no game was played twice"
    same(whole.checkpoint_of(6), stopped.checkpoint_of(6))
    assert read(stopped.attempt(2)).to_list() == read(whole.attempt(1)).to_list()


@pytest.mark.process
@pytest.mark.slow
def test_nothing_is_played_ahead_of_a_phase(tmp_path):
    """The third goes on from the end of the first, so that its first games are played with those weights."""
    phases = [
        {"name": "a", "steps": 2},
        {"name": "b", "steps": 2, "learn": {"lr": 5e-4}},
        {"name": "c", "steps": 3, "begin": "phase a"},
    ]
    _, first = make_run(tmp_path / "a", steps=7, phases=phases)
    run_dir = spread(first, tmp_path / "b", lag=1)
    assert run(config_of(run_dir), run_dir)["result"] == "succeeded"
    assert [versions(run_dir, 1, step) for step in range(1, 8)] == [{0}, {0}, {2}, {2}, {2}, {2}, {5}]


def test_a_factor_below_1_would_leave_every_token_out():
    with pytest.raises(BadInput, match="at least 1") as caught:
        parse({"learn": {"importance_outlier": 0.5}})
    assert caught.value.where == "learn.importance_outlier"


def test_outliers_of_the_importance_weight_are_left_out():
    """Ratios 0.4, 0.5, 1, 2 and 3: those beyond a factor of 2 weigh nothing, the others at most 1.5."""
    old = torch.tensor([0.4, 0.5, 1.0, 2.0, 3.0]).log()
    weight = losses.importance_weight(old, torch.zeros(5), 1.5, 2.001)
    torch.testing.assert_close(weight, torch.tensor([0.0, 0.5, 1.0, 1.5, 0.0]))
    torch.testing.assert_close(losses.importance_weight(old, torch.zeros(5), 1.5), old.exp().clamp(max=1.5))
