"""The toy of the miniature: what it pays, that every form learns it when it is easy, and that seeds decide all."""

import numpy as np
import pytest
import torch

from bench.miniature import FORMS
from bench.toy import DECIDES, RIGHT, Net, Toy, _play, _scored, steps_to_reach
from training.methods.omar import OmarConfig

EASY = Toy(turns=2, tokens=2, actions=2, episodes=16, hidden=8, lr=2e-2, critic_lr=2e-2, critic_warmup=2, window=3)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_learns_the_easy_toy(form):
    assert steps_to_reach(OmarConfig(**FORMS[form]), 0, EASY) is not None


def test_the_seed_decides_and_the_global_generator_is_left_alone():
    torch.manual_seed(5)
    expected = torch.rand(1).item()
    torch.manual_seed(5)
    first, again = (steps_to_reach(OmarConfig(), 1, EASY) for _ in range(2))
    assert first == again
    assert torch.rand(1).item() == expected


def test_too_few_steps_are_not_a_success():
    assert steps_to_reach(OmarConfig(), 0, Toy(most_steps=4)) is None


def test_a_played_batch_says_what_was_sampled():
    toy = Toy(turns=3, tokens=2, actions=4, episodes=5)
    torch.manual_seed(0)
    net = Net(toy, ("turn", "token"))
    ids, logps, states = _play(net, toy)
    assert toy.pattern == (-1, 0, 0, -1, 1, 1, -1, 2, 2)
    assert ids.shape == (5, 9)
    assert states.shape == (5, 9, toy.hidden)
    assert (ids[:, ::3] == toy.actions).all()  # observations
    assert (ids[:, [1, 2, 4, 5, 7, 8]] < toy.actions).all()
    # The log-probabilities are those of a forward pass over the whole sequence.
    with torch.no_grad():
        whole = net.logp(net.states(ids))
    for place in (1, 2, 4, 5, 7, 8):
        expected = whole[:, place - 1].gather(1, ids[:, place, None]).squeeze(1)
        assert logps[:, place] == pytest.approx(expected.numpy(), abs=1e-5)
    scored = _scored(toy, 0, ids[0], logps[0], 1.0, {"turn": np.zeros((5, 9))})
    assert scored.episode.traces[0].mask == (0, 1, 1) * 3
    assert (DECIDES, RIGHT) == (1, 0)
