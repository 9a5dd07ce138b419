"""The measurement of the critic on rows whose best R² is known."""

from argparse import Namespace

import numpy as np
import pytest
import torch

from bench.critic import States, bound, compute, interval, main, stepwise, summary
from tests.methods.episodes import scored, trace
from tests.toy_models import write_random_llama
from training.engines.local.loading import load_full
from training.errors import BadInput
from training.rundir import RunDir
from training.store import append_member


def synthetic(r2, scenarios=60, turns=6, size=16, seed=0):
    """Rows with y = a·x + noise, Var(a·x)/Var(y) = r2: no predictor has a larger R²."""
    rng = np.random.default_rng(seed)
    slope = rng.normal(size=size)
    slope /= np.linalg.norm(slope)
    x = rng.normal(size=(scenarios * turns, size))
    y = np.sqrt(r2) * x @ slope + np.sqrt(1 - r2) * rng.normal(size=len(x))
    numbers = np.repeat(np.arange(scenarios), turns)
    return States(x, y, numbers, numbers)


def test_the_interval_by_hand():
    # squared errors 1 and 3 over squared deviations 2 and 6: R² is 1 - 4/8 = 0.5 with and without either scenario
    assert interval(np.array([[1.0, 2.0], [3.0, 6.0]])) == {"r2": 0.5, "low": 0.5, "high": 0.5, "scenarios": 2}
    # 1 and 1 over 2 and 4: left out 0.75 and 0.5; jackknife deviation sqrt(1/2 · 2 · 0.125²) = 0.125, t(1) = 12.706
    scores = interval(np.array([[1.0, 2.0], [1.0, 4.0]]))
    assert scores["r2"] == pytest.approx(2 / 3)
    assert scores["high"] - scores["r2"] == pytest.approx(0.125 * 12.7062, rel=1e-4)


@pytest.mark.parametrize("r2", [0.0, 0.5, 0.9])
def test_the_bound_finds_what_can_be_explained(r2):
    scores = bound(synthetic(r2))
    assert scores["r2"] == pytest.approx(r2, abs=0.12)
    assert scores["low"] <= r2 + 0.05
    assert len(scores["by_scenario"]) == 60


def test_the_default_critic_comes_near_step_by_step():
    states = synthetic(0.6, scenarios=160)
    rows = [stepwise(states, "ridge", 16, order) for order in (0, 1)]
    assert [len(row) for row in rows] == [9, 9]  # the first step has nothing to be compared with
    scores = summary(rows)
    assert scores["after_step_5"] >= 0.8 * 0.6
    assert scores["lowest_five_steps"] > 0


def test_steps_are_summed_before_they_are_compared_by_hand():
    # steps 2 to 5 over both orders: errors 2 + 2 + 2 + 8, deviations 4 + 4 + 4 + 8, so R² = 1 - 14/20; then 4 over 16
    first = [[1.0, 2.0], [1.0, 2.0], [1.0, 2.0], [4.0, 4.0], [1.0, 8.0]]
    scores = summary([first, [*first[:4], [3.0, 8.0]]])
    assert scores["steps_2_to_5"] == pytest.approx(0.3)
    assert scores["after_step_5"] == pytest.approx(0.75)
    assert scores["lowest_five_steps"] is None


def test_deviations_are_those_from_the_mean_of_earlier_steps():
    targets = np.array([1.0, 3.0, 5.0, 6.0, 0.0, 2.0])
    numbers = np.arange(6)
    steps = stepwise(States(np.zeros((6, 4)), targets, numbers, numbers), "ridge", 2, None)
    # states that say nothing leave the mean: 2 for (5, 6), then 15/4 for (0, 2)
    assert [deviations for _, deviations in steps] == pytest.approx([25.0, 17.125])
    assert steps[0][0] == pytest.approx(25.0, rel=1e-4)


def write_run(root, episodes):
    """A run directory whose first step has these scored episodes."""
    attempt = RunDir(root).attempt(1)
    attempt.index.parent.mkdir(parents=True)
    for episode in episodes:
        record = {"episode": episode.episode.to_dict(), "turn_rewards": list(episode.turn_rewards)}
        record["returns"] = {str(seat): value for seat, value in episode.returns.items()}
        append_member(attempt.episodes(1), record)
    return root


def test_the_rows_of_a_run(tmp_path):
    # seat 0 has two turns, pays 0.2 for the first and earns 0.5: 0.5·0.5 − 0.2 = 0.05, then 0.5; seat 1 has one turn
    both = [trace(".00.22", seat=0), trace("..1", seat=1)]
    game = scored(both, {0: 0.5, 1: 0.25}, rewards=[-0.2, 0.0, 0.0])
    # only the learner's traces count, unless it is a head-to-head, where nobody is the learner
    against = scored([both[0], both[1].model_copy(update={"policy": "past 0"})], {0: 1.0, 1: 0.0}, start=("t", 0))
    match = scored([each.model_copy(update={"policy": "a"}) for each in both], {0: 1.0, 1: 0.0}, start=("s", 0))
    folder = write_run(tmp_path / "run", [game, against, match])
    model = write_random_llama(tmp_path / "model")
    settings = {"model": str(model), "dtype": "float32", "conversations": 10, "gamma": 0.5}
    states = compute(Namespace(dataset=folder, **settings))
    assert states.targets.tolist() == pytest.approx([0.05, 0.5, 0.25, 0.5, 1.0, 0.5, 1.0, 0.0])
    assert states.scenario.tolist() == [0, 0, 0, 1, 1, 0, 0, 0]
    assert states.conversation.tolist() == [0, 0, 0, 1, 1, 2, 2, 2]
    with pytest.raises(BadInput, match="2 scenarios cannot be held out"):
        main(Namespace(dataset=folder, **settings, threads=1, cache=None, batch=1, orders=1))
    with torch.no_grad():
        hidden = load_full(model, "float32").base_model(torch.tensor([both[0].tokens])).last_hidden_state[0]
    before_first_tokens = hidden[[0, 3]].double()
    np.testing.assert_allclose(states.features[:2], before_first_tokens, atol=1e-6)
