"""The critic on problems whose best R² is known, its units, and what it says before it was ever fitted."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.methods.episodes import scored, trace
from training.learn.batch import Item
from training.learn.critic import MOST_FEATURES, Critic
from training.learn.score import Rollout, begin_critic, give_credit
from training.methods.omar import OmarConfig
from training.rewards import Score
from training.run_sections import LearnSection

SIZE, ROWS = 64, 128


def critic(kind="ridge", names=("turn",), size=SIZE, **learn):
    section = LearnSection.from_dict({"critic": {"kind": kind}, "critic_passes": 16, **learn})
    return Critic(names, size, section, seed=1)


def linear_gaussian(seed, r2, steps):
    """Steps of (states, targets) with y = 1.5 + a·x + noise, Var(a·x)/Var(y) = r2: no predictor has a larger R².

    States are rotated, one direction is a large constant, and the signal lies in some directions only.
    """
    generator = torch.Generator().manual_seed(seed)
    scales = torch.full((SIZE,), 0.3)
    scales[:8] = 1.0
    slope = torch.zeros(SIZE)
    slope[:8] = torch.randn(8, generator=generator)
    slope /= slope.norm()
    rotation = torch.linalg.qr(torch.randn(SIZE, SIZE, generator=generator))[0]
    for _ in range(steps):
        latent = torch.randn(ROWS, SIZE, generator=generator) * scales
        noise = torch.randn(ROWS, generator=generator)
        states = latent @ rotation
        states[:, 0] += 40
        yield states, 1.5 + r2**0.5 * latent @ slope + (1 - r2) ** 0.5 * noise


def value_r2(heads, states, targets):
    error = targets - heads.value("turn", states).detach()
    return 1 - float((error**2).mean() / targets.var(unbiased=False))


@pytest.mark.parametrize("r2", [0.3, 0.6])
@pytest.mark.parametrize("seed", range(3))
def test_five_steps_reach_four_fifths_of_what_can_be_explained(seed, r2):
    heads = critic()
    *steps, held_out = list(linear_gaussian(seed, r2, 6))
    for states, targets in steps:
        heads.fit({"turn": (states, targets)}, 1e-3)
    fresh = [value_r2(heads, *held_out)]
    for states, targets in linear_gaussian(seed, r2, 36):  # the same problem, with further draws
        fresh.append(value_r2(heads, states, targets))
    assert np.mean(fresh[6:]) >= 0.8 * r2


def test_states_that_say_nothing_end_at_the_mean():
    heads, generator = critic(), torch.Generator().manual_seed(0)
    late = []
    for step in range(15):
        states, targets = torch.randn(ROWS, SIZE, generator=generator), 3 + torch.randn(ROWS, generator=generator)
        if step >= 5:
            late.append(value_r2(heads, states, targets))
        heads.fit({"turn": (states, targets)}, 1e-3)
    assert np.mean(late) > -0.05


def test_a_ridge_against_the_closed_form():
    heads = critic()
    (states, targets), *_ = linear_gaussian(0, 0.5, 1)
    heads.fit({"turn": (states, targets)}, 1e-3)
    x, y = states.double().numpy(), targets.double().numpy()
    features = (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-6 * x.var(0).mean())
    slope = np.linalg.solve(features.T @ features / ROWS + 30.0 * np.eye(SIZE), features.T @ (y - y.mean()) / ROWS)
    np.testing.assert_allclose(heads.value("turn", states).numpy(), y.mean() + features @ slope, atol=1e-3)


def long_states(seed, r2, steps, size=8192):
    """The steps of `linear_gaussian`, whose states lie in `SIZE` random directions of a space of `size` dimensions."""
    directions = torch.randn(SIZE, size, generator=torch.Generator().manual_seed(seed)) / SIZE**0.5
    for states, targets in linear_gaussian(seed, r2, steps):
        yield states @ directions, targets


def test_a_ridge_on_long_states_needs_bounded_memory_and_reaches_four_fifths():
    heads = critic(size=8192)
    for states, targets in long_states(0, 0.6, 5):
        heads.fit({"turn": (states, targets)}, 1e-3)
    fresh = [value_r2(heads, states, targets) for states, targets in list(long_states(0, 0.6, 25))[5:]]
    assert np.mean(fresh) >= 0.8 * 0.6
    stored = {name: tensor.nbytes for name, tensor in heads.heads["turn"].state_dict().items()}
    assert stored["cross"] == 8 * MOST_FEATURES**2  # not the 512 MiB of 8192² moments
    assert sum(stored.values()) < 9 * 2**20
    assert heads.heads["turn"].projection.nbytes == 4 * MOST_FEATURES * 8192


def test_the_value_of_a_long_state_is_that_of_its_projection():
    heads = critic(size=3000)
    states, targets = next(long_states(0, 0.6, 1, size=3000))
    heads.fit({"turn": (states, targets)}, 1e-3)
    head = heads.heads["turn"]
    # a second implementation: project every state, then apply the solution
    scale = (states.var(0, unbiased=False) * (1 + 1e-6)).rsqrt()
    features = ((states - states.mean(0)) * scale) @ head.projection
    values = (features.double() - head.mean_x) @ head.solutions[head.chosen] + head.mean_y
    np.testing.assert_allclose(heads.value("turn", states).numpy(), values.numpy(), atol=1e-3)
    restored = critic(size=3000)
    restored.load_state_dict(heads.state_dict())
    assert torch.equal(restored.value("turn", states), heads.value("turn", states))


@pytest.mark.parametrize("kind", ["linear", "mlp"])
def test_new_scales_of_targets_change_no_prediction(kind):
    heads = critic(kind)
    (states, targets), *_ = linear_gaussian(0, 0.9, 1)
    heads.fit({"turn": (states, targets)}, 1e-2)
    before = heads.value("turn", states).detach()
    heads.heads["turn"].observe(states, 100 + 50 * targets)  # the same features, so only the targets' scale moves
    assert float(heads.heads["turn"].deviation_y) > 10
    torch.testing.assert_close(heads.value("turn", states).detach(), before, atol=1e-3, rtol=1e-4)


@pytest.mark.parametrize("kind", ["ridge", "linear", "mlp"])
def test_a_copy_continues_bit_for_bit(kind):
    first, second = critic(kind), critic(kind)
    steps = list(linear_gaussian(0, 0.5, 4))
    for states, targets in steps[:2]:
        first.fit({"turn": (states, targets)}, 1e-3)
    second.load_state_dict(first.state_dict())
    if first.optimizer:
        second.optimizer.load_state_dict(copy.deepcopy(first.optimizer.state_dict()))
    for states, targets in steps[2:]:
        first.fit({"turn": (states, targets)}, 1e-3)
        second.fit({"turn": (states, targets)}, 1e-3)
    assert all(torch.equal(tensor, second.state_dict()[name]) for name, tensor in first.state_dict().items())


def two_games():
    """Two turns of two tokens, R = 1 and R = 0.5, decay 0.5, before any value is known."""
    method = OmarConfig(gamma_turn=0.5).build()
    rollouts = []
    for number, reward in enumerate((1.0, 0.5)):
        zeros = {"turn": [[0.0] * 6], "token": [[0.0] * 6]}
        game = scored([trace(".00.11")], {0: reward}, zeros)
        item = Item(game.episode.traces[0], (number, 0))
        rollouts.append(Rollout(number, game.episode, Score({0: reward}, (True, True)), {0: item}, game))
    return rollouts, method


def test_before_its_first_fit_a_head_says_the_mean_of_its_targets():
    # turn returns 0.5, 1 and 0.25, 0.5 have the mean 0.5625;
    # a token's target is its turn's advantage over that mean, and these have the mean 0
    rollouts, method = two_games()
    heads = critic(names=("turn", "token"))
    heads.begin(begin_critic(rollouts, heads.unfitted, method))
    states = torch.randn(5, SIZE)
    assert heads.value("turn", states).tolist() == pytest.approx([0.5625] * 5)
    assert heads.value("token", states).tolist() == pytest.approx([0.0] * 5, abs=1e-7)
    give_credit(rollouts, method)
    advantages = np.concatenate([game.items[0].credit.ppo[[1, 2, 4, 5]] for game in rollouts])
    assert advantages.mean() == pytest.approx(0.0, abs=1e-9)
    assert not heads.fitted


@pytest.mark.parametrize("kind", ["ridge", "linear"])
def test_a_head_that_was_fitted_does_not_begin_again_with_another(kind):
    # a method may have no targets for one of its heads in its first steps
    rollouts, method = two_games()
    heads = critic(kind, ("turn", "token"))
    (states, targets), *_ = linear_gaussian(0, 0.5, 1)
    heads.fit({"turn": (states, targets)}, 1e-2)
    before = heads.value("turn", states).tolist()
    rollouts = [
        replace(game, scored=replace(game.scored, values={"turn": [np.full(6, 0.25)], "token": [np.zeros(6)]}))
        for game in rollouts
    ]
    heads.begin(begin_critic(rollouts, heads.unfitted, method))
    assert heads.value("turn", states).tolist() == before
    assert all(game.scored.values["turn"][0].tolist() == [0.25] * 6 for game in rollouts)
    # turn advantages 0.5 - 0.25, 1 - 0.25 and 0, 0.5 - 0.25 are the targets of their tokens: the mean is 0.3125
    assert heads.value("token", states).tolist() == pytest.approx([0.3125] * ROWS)
    assert heads.unfitted == ("token",)
