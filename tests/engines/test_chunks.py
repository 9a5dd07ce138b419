"""Weights in chunks are the weights, whatever their sizes; what is missing raises."""

import numpy as np
import pytest
import torch

from training.engines.chunks import cut, joined
from training.errors import EngineError


def tensors():
    generator = torch.Generator().manual_seed(0)
    return {
        "none": torch.zeros(0, 3),
        "whole": torch.randn(3, 4, generator=generator),
        "large": torch.randn(7, 9, generator=generator).bfloat16(),
        "turned": torch.randn(4, 6, generator=generator).t(),
        "number": torch.tensor(2.5),
    }


@pytest.mark.parametrize("size", [1, 7, 50, 48, 10_000])
def test_what_is_cut_and_joined_is_unchanged(size):
    chunks = list(cut(tensors().items(), size))
    assert all(sum(len(piece.data) for piece in chunk) <= size for chunk in chunks)
    # 3 * 4 * 4 + 7 * 9 * 2 + 4 * 6 * 4 + 4 bytes
    assert sum(len(piece.data) for chunk in chunks for piece in chunk) == 274
    assert len(chunks) == -(-274 // size)
    back = dict(joined(chunks))
    assert list(back) == list(tensors())
    for name, tensor in tensors().items():
        assert back[name].dtype == tensor.dtype
        assert torch.equal(back[name], tensor)


def test_a_tensor_that_was_not_cut_is_not_copied():
    weight = torch.ones(4)
    [[piece]] = cut([("w", weight)])
    assert np.shares_memory(piece.data, weight.numpy())
    [(_, back)] = joined([[piece]])
    assert back.data_ptr() == weight.data_ptr()


def test_missing_bytes_raise():
    chunks = list(cut([("w", torch.ones(4))], 6))
    with pytest.raises(EngineError, match="the last bytes of w did not come"):
        list(joined(chunks[:-1]))
    with pytest.raises(EngineError, match="the first bytes of w did not come"):
        list(joined(chunks[1:]))
