"""The comparison of value heads: its numbers by hand, and what its runs differ in."""

import pytest
import torch

from bench import baselines
from training import config as configs
from training.learn.critic import Critic
from training.run_sections import LearnSection


def test_steps_to_the_same_reward_by_hand():
    # means of five steps: slow 0, 0.2, 0.4; fast 0.2, 0.4, 0.6: both reach 0.4, after seven and after six steps
    slow, fast = [0.0] * 5 + [1.0, 1.0], [0.0] * 4 + [1.0] * 3
    rewards = {"fast": [fast, fast], "slow": [slow, fast]}
    result = baselines.compared(rewards, {form: [{"seed": 0}, {"seed": 1}] for form in rewards})
    assert result["levels"] == pytest.approx([0.4, 0.6])
    assert result["forms"]["fast"]["steps"] == [6, 7]
    assert result["forms"]["slow"]["steps"] == [7, 7]
    gap = result["steps_minus_fast"]["slow"]
    assert gap["mean"] == pytest.approx(0.5)
    # gaps 1 and 0: standard error 0.5; t with one degree of freedom is 12.7062 (tables)
    assert gap["interval"] == pytest.approx([0.5 - 12.7062 * 0.5, 0.5 + 12.7062 * 0.5], abs=1e-3)
    assert result["reward_minus_fast"]["slow"]["mean"] == pytest.approx((2 / 7 - 3 / 7) / 2)


def test_the_constant_baseline_says_the_mean_of_its_targets_whatever_the_state():
    heads = Critic(("turn",), 16, LearnSection.from_dict(baselines.CONSTANT))
    generator = torch.Generator().manual_seed(0)
    states = torch.randn(200, 16, generator=generator)
    targets = 3 + states[:, 0]  # a critic that learns would see it
    for _ in range(4):
        heads.fit({"turn": (states, targets)}, baselines.CONSTANT["critic_lr"])
    torch.testing.assert_close(heads.value("turn", states), targets.mean().expand(200), atol=1e-6, rtol=0)


def test_the_runs_of_a_seed_differ_in_the_critic_alone():
    runs = {form: configs.parse(baselines.settings(form, 3, 20)).to_dict() for form in baselines.FORMS}
    critics = {form: run["learn"].pop("critic") for form, run in runs.items()}
    for run in runs.values():
        del run["learn"]["critic_lr"], run["learn"]["critic_passes"]
    assert runs["start"] == runs["ridge"] == runs["constant"]
    assert [critic["kind"] for critic in critics.values()] == ["ridge", "ridge", "linear"]
    assert [critic["features"] for critic in critics.values()] == ["policy", "start", "policy"]
