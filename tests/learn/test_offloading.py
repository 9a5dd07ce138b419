"""Activations that wait in the memory of the machine: the same gradients, and nothing that is a weight."""

import pytest
import torch

from tests.toy_models import write_random_llama
from training.learn import offloading, policy
from training.run_sections import LearnSection

TOKENS, LAYERS, HIDDEN = 50, 2, 64  # no weight of the model has 50 rows or columns


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return str(write_random_llama(tmp_path_factory.mktemp("base") / "toy"))


def gradients(base, **learn):
    section = LearnSection.from_dict({"lora": False, "kl": "none", "kl_measured": False, **learn})
    made = policy.load(base, (), section, seed=0, temperature=1.0, device="cpu")
    ids = torch.arange(TOKENS)[None]
    hidden = made.hidden(ids)
    logp, _ = made.logprobs(hidden[0, :-1], ids[0, 1:])
    (-logp.mean()).backward()
    return {name: parameter.grad for name, parameter in made.trained.items()}


@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("lora", [False, {"rank": 2}])
def test_gradients_are_the_same_and_activations_move(base, monkeypatch, recompute, lora):
    expected = gradients(base, recompute=recompute, lora=lora)
    moved, real = [], offloading.to_host

    def counted(tensor):
        moved.append(tensor.nbytes)
        return real(tensor)

    monkeypatch.setattr(offloading, "to_host", counted)
    offloaded = gradients(base, recompute=recompute, lora=lora, offload_activations=True)
    assert offloaded.keys() == expected.keys()
    assert all(torch.equal(offloaded[name], gradient) for name, gradient in expected.items())
    inputs = LAYERS * 4 * TOKENS * HIDDEN
    # of layers that are computed again their inputs, and what the last norm needs
    assert inputs < sum(moved) < 2.6 * inputs if recompute else sum(moved) > 10 * inputs


def test_a_copy_comes_back_and_weights_stay():
    weight, state = torch.nn.Parameter(torch.ones(5, 7)), torch.ones(7, 3)
    moves = [offloading._pack(tensor, (7,)) for tensor in (weight, state, torch.ones(3, 3))]
    assert [device for device, _ in moves] == [None, torch.device("cpu"), None]
    assert moves[0][1] is weight
    assert torch.equal(offloading._unpack(moves[1]), state)
