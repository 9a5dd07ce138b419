"""The estimators against numbers worked by hand, and against identities they must satisfy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.methods.advantages import (
    Whitening,
    belief_rewards,
    filtered,
    gae,
    hierarchical_gae,
    reinforce_returns,
    token_gae,
    whitening,
)


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


def test_gae_with_a_discount_for_each_step():
    # γ = .5, 1, .9, λ = .8: δ3 = 1 − .5 = .5; δ2 = 1·.5 − .4 = .1; δ1 = .5·.4 − .3 = −.1
    # A3 = .5; A2 = .1 + .8·.5 = .5; A1 = −.1 + .5·.8·.5 = .1; after the last step there is nothing to discount
    assert gae([0, 0, 1], [0.3, 0.4, 0.5], [0.5, 1.0, 0.9], 0.8) == pytest.approx([0.1, 0.5, 0.5])
    assert gae([0, 0, 1], [0.3, 0.4, 0.5], [0.9] * 3, 0.8) == pytest.approx([0.3552, 0.41, 0.5])


def test_gae_of_nothing():
    assert gae([], [], 0.9, 0.9).shape == (0,)


def test_gae_refuses_unequal_lengths():
    with pytest.raises(ValueError, match="2 rewards need 2 values"):
        gae([0.0, 1.0], [0.0], 1, 1)
    with pytest.raises(ValueError, match="2 rewards need 2 discounts, not 1"):
        gae([0.0, 1.0], [0.0, 0.0], [1.0], 1)


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


def test_whitening_is_over_all_entries_together():
    spread = np.sqrt(5)  # variance of 1, 3, 5, 7
    whitened = whitening([np.array([1.0, 3.0]), np.array([5.0, 7.0])])
    assert whitened == pytest.approx((4.0, spread))
    assert whitened(np.array([1.0, 7.0])) == pytest.approx([-3 / spread, 3 / spread])
    assert whitening([np.array([2.0, 2.0])])(np.array([2.0])) == pytest.approx([0])
    assert whitening([])(np.array([5.0])) == pytest.approx([5])


# A = .7, .5 as in `test_hierarchical_by_hand`; turn 1 fails. The tokens of turn 1 have the values −.1 and −.3.
FAILING = (1.0, [0.2, 0.5], [[-0.1, -0.3], [0.2]], 0.9, 1.0, 1.0, 1.0, [False, True])


@pytest.mark.parametrize(
    "rule, first",
    [
        ("off", [0.8, 1.0]),  # .7 − V
        ("zero", [0.1, 0.3]),  # 0 − V: a failing turn may still earn a token credit
        ("min", [0.0, 0.0]),  # the same, cut at 0
    ],
)
def test_filters_of_the_two_level_form(rule, first):
    turns, tokens = hierarchical_gae(*FAILING, filter=rule)
    assert turns == pytest.approx([0.7, 0.5])
    assert tokens[0] == pytest.approx(first)
    assert tokens[1] == pytest.approx([0.3])
    if rule == "zero":  # what the positional form does
        assert [row.tolist() for row in hierarchical_gae(*FAILING)[1]] == [row.tolist() for row in tokens]


def test_min_keeps_the_blame_of_a_failing_turn():
    # R = −1: A2 = −1.5, A1 = .9·.5 − .2 − .9·1.5 = −1.1; tokens −1.1 − V
    turns, tokens = hierarchical_gae(-1.0, *FAILING[1:], filter="min")
    assert turns == pytest.approx([-1.1, -1.5])
    assert tokens[0] == pytest.approx([-1.0, -0.8])


def test_whitening_comes_before_the_filter_and_leaves_the_turn_advantages():
    # (.7 − .6) / .1 = 1 and (.5 − .6) / .1 = −1; turn 1 fails, and its token values are 0
    shifted = Whitening(0.6, 0.1)
    turns, tokens = hierarchical_gae(
        1.0, [0.2, 0.5], [[0.0], [0.0]], 0.9, 1, 1, 1, [False, True], filter="min", whitening=shifted
    )
    assert turns == pytest.approx([0.7, 0.5])
    assert tokens[0] == pytest.approx([0.0])
    assert tokens[1] == pytest.approx([-1.0])
    assert filtered(turns, [False, False], "min", shifted) == pytest.approx([0.0, -1.0])
    assert filtered(turns, [False, False], "zero", shifted) == pytest.approx([0.0, 0.0])


def test_token_rewards_of_every_turn():
    # turn 1 hands down .5, of which −.2 was paid at its first token: −.2 and .7 → to go .5, .7
    _, tokens = hierarchical_gae(
        [0.0, 0.5], [0.0, 0.0], [[0.0, 0.0], [0.0]], 1, 1, 1, 1, token_rewards=[[-0.2, 0.0], [0.5]]
    )
    assert tokens[0] == pytest.approx([0.5, 0.7])
    assert tokens[1] == pytest.approx([0.5])
    with pytest.raises(ValueError, match="2 sequences of token rewards, not 1"):
        hierarchical_gae(1.0, [0.0, 0.0], [[0.0], [0.0]], 1, 1, 1, 1, token_rewards=[[0.0]])


# --- what a message does to beliefs ----------------------------------------------------------------------------------

BELIEFS = [[0.25, 0.0, 0.5, 0.2], [0.5, 0.0, 0.6, 0.2], [0.45, 0.0, 0.3, 0.1], [0.45, 0.0, 0.9, 0.1]]
"""Four seats, of which seat 1 is the imposter, at four probes around three messages."""


def test_belief_rewards_by_hand():
    # message 1 by seat 0:  (.5 + .6 + .2) − (.25 + .5 + .2) = 1.3 − .95 = .35, the speaker's own change included
    # message 2 by seat 1:  (.45 + .3 + .1) − 1.3 = −.45, which the imposter wants: +.45
    # message 3 by seat 2, when only seats 0 and 2 listen: (.45 + .9) − (.45 + .3) = .6
    rewards = belief_rewards(BELIEFS, [0, 1, 2], {1}, [(0, 2, 3), (0, 2, 3), (0, 2)])
    assert rewards == pytest.approx([0.35, 0.45, 0.6])


def test_belief_rewards_are_paid_to_speakers_of_both_sides_and_nobody_hears_for_nothing():
    # the same message is worth the opposite to the other side; without listeners nothing changes
    assert belief_rewards(BELIEFS[:2], [3], [3], [[0]]) == pytest.approx([-0.25])
    assert belief_rewards(BELIEFS[:2], [3], [], [[0]]) == pytest.approx([0.25])
    assert belief_rewards(np.array(BELIEFS[:2]), [3], (), [[]]) == [0]
    assert belief_rewards(BELIEFS[:1], [], {1}, []) == []


def test_the_rewards_of_a_discussion_among_the_same_listeners_telescope():
    crew = (0, 2, 3)
    rewards = belief_rewards(BELIEFS, [0, 2, 3], {1}, [crew] * 3)
    assert sum(rewards) == pytest.approx(sum(BELIEFS[-1][s] - BELIEFS[0][s] for s in crew))


@pytest.mark.parametrize(
    "beliefs, speakers, listeners, why",
    [
        (BELIEFS, [0, 2], [(0,), (0,)], "2 messages need beliefs at 3 probes and 2 sets of listeners, not 4 and 2"),
        (BELIEFS[:2], [0], [], "1 messages need beliefs at 2 probes and 1 sets of listeners, not 2 and 0"),
        ([], [], [], "0 messages need beliefs at 1 probes"),
        ([[0.5, 0.5], [0.5]], [0], [(0,)], r"beliefs of \[2, 1\] seats"),
        ([[0.5], [0.5]], [0], [(0, 1)], "no seat 1"),
        ([[0.5], [0.5]], [4], [(0,)], "no seat 4"),
        ([[0.5], [0.5]], [0], [(-1,)], "no seat -1"),
    ],
)
def test_belief_rewards_refuse_what_does_not_fit(beliefs, speakers, listeners, why):
    with pytest.raises(ValueError, match=why):
        belief_rewards(beliefs, speakers, {0}, listeners)


# --- REINFORCE with returns normalised in each trajectory ------------------------------------------------------------


def test_reinforce_returns_by_hand():
    # γ .5: R3 = 2, R2 = 0 + .5·2 = 1, R1 = 1 + .5·1 = 1.5; the largest is 2
    assert reinforce_returns([1, 0, 2], 0.5) == pytest.approx([0.75, 0.5, 1.0])
    # process rewards at turns 1 and 3 of 4, γ .9: R = 1 + .9·.9 = 1.81, .9, 1, 0
    assert reinforce_returns([1, 0, 1, 0], 0.9) == pytest.approx([1, 0.9 / 1.81, 1 / 1.81, 0])


def test_reinforce_returns_divide_by_the_largest_absolute_return():
    # γ 1: R = 1 − 4 = −3, −4; the signs stay
    assert reinforce_returns([1.0, -4.0], 1.0) == pytest.approx([-0.75, -1.0])
    # γ .5: R2 = −4, R1 = 6 − 2 = 4
    assert reinforce_returns([6.0, -4.0], 0.5) == pytest.approx([1.0, -1.0])


def test_reinforce_returns_without_any_reward():
    assert reinforce_returns([0.0, 0.0, 0.0], 0.99) == [0.0, 0.0, 0.0]
    assert reinforce_returns([], 0.99) == []
    assert reinforce_returns([-2.0, 4.0], 0.5)[0] == 0.0, "a return of 0 beside another one"


TURNS = st.integers(1, 30)
DISCOUNTS = st.floats(0.05, 1.0)


@given(turns=TURNS, gamma=DISCOUNTS, score=st.floats(1e-6, 1e6))
def test_with_only_a_final_positive_score_the_normalisation_cancels_the_score(turns, gamma, score):
    powers = [gamma ** (turns - turn) for turn in range(1, turns + 1)]
    assert reinforce_returns([0.0] * (turns - 1) + [score], gamma) == pytest.approx(powers)
    assert reinforce_returns([0.0] * (turns - 1) + [-score], gamma) == pytest.approx([-power for power in powers])
