"""What goes into a checkpoint comes out of it: optimizer, generators, and no pickle anywhere."""

import pickle
import random
import sys
from functools import partial

import numpy as np
import pytest
import torch

from tests.peaks import growth
from training.engines.chunks import cut
from training.errors import BadInput
from training.learn import checkpoint
from training.learn.tensor_files import Outline, TensorFile


def optimizer_after(steps, parameters):
    optimizer = torch.optim.AdamW([{"params": parameters[:1]}, {"params": parameters[1:], "weight_decay": 0.0}], lr=0.1)
    for step in range(steps):
        for number, parameter in enumerate(parameters):
            parameter.grad = torch.full_like(parameter, step + number + 1.0)
        optimizer.step()
    return optimizer


def test_an_optimizer_resumes_its_state():
    first = [torch.nn.Parameter(torch.ones(3)), torch.nn.Parameter(torch.zeros(2, 2))]
    stepped = optimizer_after(3, first)
    data, tensors = checkpoint.pack_optimizer(stepped)
    second = [torch.nn.Parameter(p.detach().clone()) for p in first]
    resumed = optimizer_after(0, second)
    checkpoint.unpack_optimizer(resumed, data, tensors)
    for parameters, optimizer in ((first, stepped), (second, resumed)):
        for parameter in parameters:
            parameter.grad = torch.full_like(parameter, 0.5)
        optimizer.step()
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def test_an_optimizer_of_another_shape_is_refused():
    data, tensors = checkpoint.pack_optimizer(
        optimizer_after(1, [torch.nn.Parameter(torch.ones(3)), torch.nn.Parameter(torch.ones(1))])
    )
    other = torch.optim.AdamW([torch.nn.Parameter(torch.ones(3)), torch.nn.Parameter(torch.ones(1))])
    with pytest.raises(BadInput, match="optimizer does not fit"):
        checkpoint.unpack_optimizer(other, data, tensors)


def test_the_value_heads_of_an_earlier_optimizer_are_left_out():
    # the policy's parameter comes first; its second moment after one step of gradient 1 is (1 - 0.999) * 1
    data, tensors = checkpoint.pack_optimizer(
        optimizer_after(1, [torch.nn.Parameter(torch.ones(3)), torch.nn.Parameter(torch.ones(1))])
    )
    policy = torch.optim.AdamW([torch.nn.Parameter(torch.ones(3))])
    checkpoint.unpack_optimizer(policy, data, tensors)
    [state] = policy.state_dict()["state"].values()
    assert state["exp_avg_sq"].tolist() == pytest.approx([0.001] * 3)


def draws():
    return random.random(), float(np.random.rand()), torch.rand(2).tolist()  # noqa: NPY002


def test_generators_resume_their_state():
    checkpoint.seed_generators(5)
    draws()
    random.gauss(0, 1)
    data, tensors = checkpoint.pack_generators()
    expected = draws()
    checkpoint.seed_generators(6)
    assert draws() != expected
    checkpoint.unpack_generators(data, tensors)
    assert draws() == expected


@pytest.mark.skipif(sys.platform != "linux", reason="peaks are read from /proc")
def test_a_checkpoint_is_written_without_a_second_copy_of_its_tensors_and_read_without_them(tmp_path):
    tensors = {f"optimizer.{number}.exp_avg": torch.ones(2**20) for number in range(32)}  # 128 MiB
    made = []

    def chunks():  # 256 MiB of older weights, of which no more than a few chunks are there at once
        made.append(True)
        return cut(((f"weight.{number}", torch.ones(2**20)) for number in range(64)), size=2**23)

    state = checkpoint.TrainerState(1, {}, tensors, {0: chunks})
    beats = []
    beat = partial(beats.append, None)
    before, peak = growth(lambda: checkpoint.write_with(tmp_path / "step", lambda inside: None, state, beat=beat))
    assert len(beats) >= 2 + 256 // 8, "two chunks of 64 MiB, and those of 8"
    assert peak - before < 48 * 2**20
    assert len(made) == 2, "once for the header, and once for the file"
    [(_, older)] = checkpoint.older(tmp_path / "step").items()
    assert TensorFile(older).outlines == {f"weight.{n}": Outline(torch.float32, (2**20,)) for n in range(64)}
    read = []
    before, peak = growth(lambda: read.append(checkpoint.read(tmp_path / "step")))
    assert peak - before < 16 * 2**20, "nor is one read before it is asked for"
    assert read[0].tensors.keys() == tensors.keys()
    assert len(pickle.dumps(read[0])) < 10_000, "nor sent to another process"
