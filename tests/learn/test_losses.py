"""Each term of the loss against numbers worked by hand; the averages against counting."""

import math

import numpy as np
import pytest
import torch

from training.learn import losses

T = torch.tensor


def test_ppo_clip_by_hand():
    # ratios 1.5, 1.5, 0.5, 0.5 with A = 2, −2, 2, −2 and ε = .2
    # min(3, 2.4) = 2.4 held; min(−3, −2.4) = −3; min(1, 1.6) = 1; min(−1, −1.6) = −1.6 held
    logp = T([math.log(1.5), math.log(1.5), math.log(0.5), math.log(0.5)])
    loss, clipped = losses.ppo_clip(logp, torch.zeros(4), T([2.0, -2.0, 2.0, -2.0]), 0.2)
    assert loss.tolist() == pytest.approx([-2.4, 3.0, -1.0, 1.6])
    assert clipped.tolist() == [True, False, False, True]


def test_dual_clip_bounds_bad_actions_only():
    # ratio 4: A = −1 costs 4 without, c = 1.4 with the dual clip; A = 1 is clipped at 1.2 either way
    logp = T([math.log(4.0), math.log(4.0)])
    loss, clipped = losses.ppo_clip(logp, torch.zeros(2), T([-1.0, 1.0]), 0.2, 1.4)
    assert loss.tolist() == pytest.approx([1.4, -1.2])
    assert clipped.tolist() == [True, True]


def test_ppo_gradient_at_ratio_one_is_the_policy_gradient():
    logp = T([-1.0, -2.0], requires_grad=True)
    losses.ppo_clip(logp, logp.detach(), T([3.0, -0.5]), 0.2)[0].sum().backward()
    assert logp.grad.tolist() == pytest.approx([-3.0, 0.5])


def test_importance_weight_is_capped_and_has_no_gradient():
    old = T([0.0, math.log(5.0), math.log(0.5)], requires_grad=True)
    weight = losses.importance_weight(old, torch.zeros(3), 2.0)
    assert weight.tolist() == pytest.approx([1.0, 2.0, 0.5])
    assert not weight.requires_grad


def test_reinforce_nll_and_value_by_hand():
    assert losses.reinforce(T([-2.0]), T([1.5])).tolist() == [3.0]
    assert losses.nll(T([-2.0]), T([0.25])).tolist() == [0.5]
    assert losses.value(T([3.0]), T([1.0])).tolist() == [2.0]


def test_kl_estimates_by_hand():
    # logp − ref = ln 2: k2 = (ln 2)²/2, k3 = 1/2 − 1 + ln 2
    logp, ref = T([math.log(0.5)]), T([math.log(0.25)])
    assert losses.kl("k2", logp, ref).item() == pytest.approx(math.log(2) ** 2 / 2)
    assert losses.kl("k3", logp, ref).item() == pytest.approx(0.5 - 1 + math.log(2))


@pytest.mark.parametrize("kind, forward", [("k2", True), ("k3", False)])
def test_which_divergence_a_term_descends(kind, forward):
    """The expected gradient of k2 is that of KL(π‖ref), of k3 that of KL(ref‖π), by enumeration over three actions."""
    ref = torch.log_softmax(T([0.2, -0.3, 0.5], dtype=torch.double), -1)
    logits = T([1.0, 0.0, -1.0], dtype=torch.double, requires_grad=True)
    logp = torch.log_softmax(logits, -1)
    (logp.exp().detach() * losses.kl(kind, logp, ref)).sum().backward()
    gradient, logits.grad = logits.grad.clone(), None
    logp = torch.log_softmax(logits, -1)
    true = (logp.exp() * (logp - ref)).sum() if forward else (ref.exp() * (ref - logp)).sum()
    true.backward()
    assert gradient.tolist() == pytest.approx(logits.grad.tolist())


MASKS = [np.array([0, 1, 1, 0, 1], dtype=bool), np.array([0, 1, 0], dtype=bool)]
TURNS = [(-1, 0, 0, -1, 2), (-1, 1, -1)]


def test_token_mean_weighs_every_token_the_same():
    first, second = losses.averaging(MASKS, TURNS, ["a", "b"], "token_mean")
    assert first.tolist() == [0, 0.25, 0.25, 0, 0.25]
    assert second.tolist() == [0, 0.25, 0]


def test_turn_mean_weighs_tokens_then_turns_then_seats():
    # seat a: turn 0 (two tokens) and turn 2 (one): 1/2 seats · 1/2 turns · 1/2 tokens; seat b: one turn of one token
    first, second = losses.averaging(MASKS, TURNS, ["a", "b"], "turn_mean")
    assert first.tolist() == [0, 0.125, 0.125, 0, 0.25]
    assert second.tolist() == [0, 0.5, 0]
    # as branches of one seat there are three turns
    first, second = losses.averaging(MASKS, TURNS, ["a", "a"], "turn_mean")
    assert first.tolist() == pytest.approx([0, 1 / 6, 1 / 6, 0, 1 / 3])
    assert second.tolist() == pytest.approx([0, 1 / 3, 0])


def test_player_mean_weighs_players_the_same_however_many_trajectories_they_have():
    # player x has seats a (two turns) and b (one turn), player y seat c (one turn of two tokens)
    masks = [*MASKS, np.array([0, 1, 1], dtype=bool)]
    turns = [*TURNS, (-1, 3, 3)]
    rows = losses.averaging(masks, turns, ["a", "b", "c"], "player_mean", ["x", "x", "y"])
    assert [row.tolist() for row in rows] == [[0, 0.0625, 0.0625, 0, 0.125], [0, 0.25, 0], [0, 0.25, 0.25]]
    alone = losses.averaging(MASKS, TURNS, ["a", "b"], "player_mean", ["x", "x"])
    assert [row.tolist() for row in alone] == [
        row.tolist() for row in losses.averaging(MASKS, TURNS, ["a", "b"], "turn_mean")
    ]


def test_nothing_to_average():
    none = [np.zeros(3, dtype=bool)]
    for how in ("token_mean", "turn_mean", "player_mean"):
        assert losses.averaging(none, [(-1, -1, -1)], ["a"], how, ["x"])[0].tolist() == [0, 0, 0]
