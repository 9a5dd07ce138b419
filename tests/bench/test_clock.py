"""Where the time goes: parts by hand, and both sides of the comparison on a model of a few thousand weights."""

import pytest
import torch
from torch import nn

from bench.alternate import Reading, alternate, where
from bench.clock import Clock, watched
from bench.learning import Update, item, trl_trainer
from tests.toy_models import write_random_llama

LEARNING = {"rest", "data", "forward", "head", "backward", "optimizer"}
DATA = [([5 + n, 6, 7, 8], [9, 10, 11 + n]) for n in range(4)]


@pytest.fixture
def ticks():
    """A time that stands still until it is moved by hand."""
    return [100.0]


@pytest.fixture
def clock(ticks):
    return Clock(lambda: ticks[0])


def waits(clock, ticks, part, seconds, inner=lambda: None):
    def call():
        ticks[0] += seconds
        inner()
        ticks[0] += seconds

    return clock.timed(call, part)


def test_a_part_is_taken_from_what_it_is_within(clock, ticks):
    ticks[0] += 50  # before the start
    clock.start()
    ticks[0] += 1
    waits(clock, ticks, "head", 2, waits(clock, ticks, "forward", 10))()
    waits(clock, ticks, "forward", 100)()
    assert clock.stop() == {"rest": 1, "head": 4, "forward": 220}
    clock.start()
    assert clock.stop() == {"rest": 0}


def test_sampling_is_not_divided(clock, ticks):
    inner = waits(clock, ticks, "head", 10, waits(clock, ticks, "forward", 100))
    waits(clock, ticks, "data", 1, waits(clock, ticks, "sampling", 2, inner))()
    assert clock.stop() == {"rest": 0, "data": 2, "sampling": 4 + 20 + 200}


def test_a_call_that_fails_ends_its_part(clock, ticks):
    def fails():
        ticks[0] += 2
        raise ValueError

    with pytest.raises(ValueError):
        clock.timed(fails, "head")()
    ticks[0] += 1
    assert clock.stop() == {"head": 2, "rest": 1}


def test_only_within_the_block_is_anything_timed():
    before, layer = torch.autograd.backward, nn.Linear(2, 2)
    optimizer = torch.optim.AdamW(layer.parameters())

    def learn():
        clock.start()
        layer(torch.ones(1, 2)).sum().backward()
        nn.utils.clip_grad_norm_(layer.parameters(), 1.0)
        optimizer.step()
        return set(clock.stop())

    clock = Clock()
    with watched(clock, (layer, "forward", "forward")):
        assert learn() == {"rest", "forward", "backward", "optimizer"}
    assert learn() == {"rest"}
    assert torch.autograd.backward is before


def test_our_update_reports_its_parts(tmp_path):
    ours = Update(write_random_llama(tmp_path / "model"), "float32")
    seconds = ours.step([item(prompt, completion, n) for n, (prompt, completion) in enumerate(DATA)])
    assert set(ours.parts) == LEARNING
    assert all(part > 0 for part in ours.parts.values())
    assert sum(ours.parts.values()) == seconds


@pytest.mark.slow
def test_the_step_of_trl_reports_the_same_parts(tmp_path):
    pytest.importorskip("trl")
    theirs = trl_trainer(DATA, write_random_llama(tmp_path / "model"), "float32", 2)
    for _ in range(2):
        seconds = theirs.step()
        assert set(theirs.parts) == LEARNING | {"sampling"}
        assert all(part > 0 for part in theirs.parts.values())
        assert sum(theirs.parts.values()) == seconds


def test_the_medians_of_parts_are_reported():
    left = iter([9.0, 1.0, 3.0, 2.0])
    comparison = alternate(lambda: Reading(1, {"all": 8}, {"head": next(left)}), lambda: Reading(1, {}, {"head": 5}), 3)
    assert (comparison["a"]["parts"], comparison["a"]["seconds"]) == ({"head": 2.0}, {"all": 8})
    assert where(comparison) == "  a: head 2.00 s\n  b: head 5.00 s"
