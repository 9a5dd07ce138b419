"""Steps to the same reward, by hand."""

import pytest

from bench import baselines
from tests import tiny_model


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


def test_the_constant_baseline_predicts_the_mean_and_the_others_differ_in_the_critic_alone(tmp_path):
    tiny_model.prepare()
    rows = {form: baselines._trained(form, 0, 4, tmp_path / form) for form in ("constant", "ridge")}
    curves = rows["constant"]["curves"]
    assert max(map(abs, curves["explained_variance_turn"])) < 1e-6  # a constant explains nothing
    # the policy learns in step 4 for the first time, so the games of all four steps are the same
    assert len(curves["reward"]) == 4
    assert rows["ridge"]["curves"]["reward"] == curves["reward"]
    assert rows["ridge"]["curves"]["value_r2_turn"] != curves["value_r2_turn"]
