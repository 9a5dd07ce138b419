"""The estimators against numbers worked by hand, and against identities they must satisfy."""

import numpy as np
import pytest

from training.methods.advantages import gae, hierarchical_gae, token_gae, whitened


def test_gae_by_hand():
    # δ3 = 1 − .5 = .5; δ2 = .9·.5 − .4 = .05; δ1 = .9·.4 − .3 = .06; γλ = .72
    # A3 = .5; A2 = .05 + .72·.5 = .41; A1 = .06 + .72·.41 = .3552
    assert gae([0, 0, 1], [0.3, 0.4, 0.5], 0.9, 0.8) == pytest.approx([0.3552, 0.41, 0.5])


def test_gae_with_a_value_after_the_last_step():
    # δ = 1 + .5·2 − 3 = −1
    assert gae([1.0], [3.0, 2.0], 0.5, 0.9) == pytest.approx([-1.0])


def test_gae_limits():
    rewards, values = [1.0, -2.0, 0.5], [0.2, 0.7, -0.1]
    to_go = [1 + 0.9 * -2 + 0.81 * 0.5, -2 + 0.9 * 0.5, 0.5]
    assert gae(rewards, values, 0.9, 1.0) == pytest.approx(np.subtract(to_go, values))
    assert gae(rewards, values, 0.9, 0.0) == pytest.approx([1 + 0.63 - 0.2, -2 - 0.09 - 0.7, 0.6])


def test_gae_of_nothing():
    assert gae([], [], 0.9, 0.9).shape == (0,)


def test_gae_refuses_unequal_lengths():
    with pytest.raises(ValueError, match="2 rewards need 2 values"):
        gae([0.0, 1.0], [0.0], 1, 1)


def test_hierarchical_by_hand():
    # turn level, γ .9, λ 1: δ2 = 1 − .5 = .5, δ1 = .9·.5 − .2 = .25, A1 = .25 + .9·.5 = .7
    # turn 1 tokens (.1, .3): r = (0, .7): A2 = .4, A1 = (.3 − .1) + .4 = .6
    # turn 2 token (.2): .5 − .2 = .3
    turns, tokens = hierarchical_gae(1.0, [0.2, 0.5], [[0.1, 0.3], [0.2]], 0.9, 1.0, 1.0, 1.0)
    assert turns == pytest.approx([0.7, 0.5])
    assert tokens[0] == pytest.approx([0.6, 0.4])
    assert tokens[1] == pytest.approx([0.3])


def test_hierarchical_with_discounts_inside_the_turn():
    # one turn, A = 2 − .5 = 1.5; γ .5, λ .5: δ3 = 1.5 − .4 = 1.1, δ2 = .5·.4 − .2 = 0, δ1 = .5·.2 − .1 = 0
    # A3 = 1.1, A2 = .25·1.1 = .275, A1 = .06875
    turns, tokens = hierarchical_gae(2.0, [0.5], [(0.1, 0.2, 0.4)], 0.9, 0.9, 0.5, 0.5)
    assert turns == pytest.approx([1.5])
    assert tokens[0] == pytest.approx([0.06875, 0.275, 1.1])


def test_a_reward_per_turn():
    # γ .5, λ 0: A1 = 1 + .5·.4 − .2 = 1; A2 = 3 − .4 = 2.6
    turns, _ = hierarchical_gae([1.0, 3.0], [0.2, 0.4], [[0.0], [0.0]], 0.5, 0.0, 1.0, 1.0)
    assert turns == pytest.approx([1.0, 2.6])


def test_a_failing_turn_has_no_pseudo_reward():
    turns, tokens = hierarchical_gae(1.0, [0.2, 0.5], [[0.1, 0.3], [0.2]], 0.9, 1.0, 1.0, 1.0, passed=[False, True])
    assert turns == pytest.approx([0.7, 0.5])  # the recursion is as before
    assert tokens[0] == pytest.approx([-0.1, -0.3])  # reward 0 at the end: A = −V at λ = 1
    assert tokens[1] == pytest.approx([0.3])


@pytest.mark.parametrize("kind", [list, tuple, np.array])
def test_any_sequence_of_floats(kind):
    turns, tokens = hierarchical_gae(np.float32(1.0), kind([0.0, 0.0]), [kind([0.0, 0.0]), kind([0.0])], 1, 1, 1, 1)
    assert turns == pytest.approx([1, 1])
    assert [len(token) for token in tokens] == [2, 1]
    assert hierarchical_gae(kind([0.0, 1.0]), kind([0.0, 0.0]), [[0.0], [0.0]], 0.5, 1, 1, 1)[0] == pytest.approx(
        [0.5, 1]
    )


def test_ragged_lengths_must_agree():
    with pytest.raises(ValueError, match="passed must agree"):
        hierarchical_gae(1.0, [0.0], [[0.0]], 1, 1, 1, 1, passed=[True, False])
    with pytest.raises(ValueError, match="2 turns need 2 rewards"):
        hierarchical_gae([1.0], [0.0, 0.0], [[0.0], [0.0]], 1, 1, 1, 1)


def test_an_episode_without_turns():
    turns, tokens = hierarchical_gae(1.0, [], [], 0.9, 1, 1, 1)
    assert turns.shape == (0,)
    assert tokens == []


def test_token_rewards_stay_where_they_were_paid():
    # in all 1.0, of which −.2 at token 1 and −.1 at token 2: the last token receives 1.3
    advantages = token_gae(1.0, [0.0, 0.0, 0.0], 1.0, 1.0, token_rewards=[-0.2, -0.1, 0.0])
    assert advantages == pytest.approx([1.0, 1.2, 1.3])


def test_whitening():
    first, second = whitened([np.array([1.0, 3.0]), np.array([5.0, 7.0])])
    spread = np.sqrt(5)  # variance of 1, 3, 5, 7
    assert first == pytest.approx([-3 / spread, -1 / spread])
    assert second == pytest.approx([1 / spread, 3 / spread])
    assert whitened([np.array([2.0, 2.0])])[0] == pytest.approx([0, 0])
    assert whitened([]) == []
