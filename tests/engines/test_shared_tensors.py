"""Tensors in memory that several processes read: they arrive as they are, and nothing of them is left."""

import multiprocessing
from pathlib import Path

import pytest
import torch

from training.engines.local.shared_tensors import grouped, shared

TENSORS = [
    ("half", torch.arange(6, dtype=torch.bfloat16).reshape(2, 3)),
    ("number", torch.tensor(2.5)),
    ("nothing", torch.empty(0, 4)),
    ("turned", torch.arange(12.0).reshape(3, 4).t()),
    ("learned", torch.nn.Parameter(torch.ones(5))),
]


def mapped():
    """Whether this process has such memory."""
    return "/memfd:weights" in Path("/proc/self/maps").read_text()


def test_what_is_read_is_what_was_shared_and_stays_after_it():
    with shared(TENSORS) as tensors:
        read = tensors.read()
        assert mapped()
    assert [name for name, _ in read] == [name for name, _ in TENSORS]
    for (_, tensor), (_, original) in zip(read, TENSORS, strict=True):
        assert tensor.dtype == original.dtype
        assert torch.equal(tensor, original)
    with pytest.raises(FileNotFoundError):
        tensors.read()
    del read, tensor
    assert not mapped()


def test_what_one_reader_writes_no_other_sees():
    with shared(TENSORS) as tensors:
        first, second = tensors.read(), tensors.read()
        first[0][1].zero_()
        assert torch.equal(second[0][1], TENSORS[0][1])
        assert torch.equal(tensors.read()[0][1], TENSORS[0][1])


def _sum(tensors, answers):
    answers.send([float(tensor.sum()) for _, tensor in tensors.read()])


def test_another_process_reads_them():
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    with shared(TENSORS) as tensors:
        process = context.Process(target=_sum, args=(tensors, there))
        process.start()
        assert here.recv() == [15.0, 2.5, 0.0, 66.0, 5.0]
        process.join()
    assert not mapped()


def test_an_error_leaves_nothing():
    before = len([*Path("/proc/self/fd").iterdir()])
    with pytest.raises(RuntimeError, match="no more"), shared(TENSORS):
        raise RuntimeError("no more")
    assert len([*Path("/proc/self/fd").iterdir()]) == before
    assert not mapped()


def test_groups_are_no_larger_than_asked_but_for_single_tensors():
    sizes = [40, 50, 20, 100, 300, 60]  # bytes
    tensors = [(str(size), torch.zeros(size, dtype=torch.uint8)) for size in sizes]
    groups = [[name for name, _ in group] for group in grouped(tensors, 100)]
    assert groups == [["40", "50"], ["20"], ["100"], ["300"], ["60"]]
    assert list(grouped([], 100)) == []
