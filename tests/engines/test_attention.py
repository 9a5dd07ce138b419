"""Blocks of causal attention, against PyTorch's own kernel in float32."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from tests.toy_models import write_random_llama
from training.engines.local.attention import QUERIES, attention, blocked
from training.engines.local.loading import load_merged


def tensors(length):
    generator = torch.Generator().manual_seed(length)
    shapes = ((2, 6, length, 16), (2, 3, length, 16), (2, 3, length, 16))  # six heads on three groups of keys
    return [torch.randn(shape, generator=generator, requires_grad=True) for shape in shapes]


@pytest.mark.parametrize("length", [1, 7, QUERIES, QUERIES + 1, 3 * QUERIES - 5])
def test_values_and_gradients_are_those_of_the_whole(length):
    mine, theirs = tensors(length), tensors(length)
    weights = torch.randn(2, 6, length, 16, generator=torch.Generator().manual_seed(1))
    ours = blocked(mine[0] * 16**-0.5, *mine[1:])
    expected = scaled_dot_product_attention(*theirs, is_causal=True, enable_gqa=True)
    torch.testing.assert_close(ours, expected, atol=1e-5, rtol=1e-5)
    (ours * weights).sum().backward()
    (expected * weights).sum().backward()
    for a, b in zip(mine, theirs, strict=True):
        torch.testing.assert_close(a.grad, b.grad, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("masked", [1, 40])
def test_a_mask_of_the_last_queries_leaves_those_before_them_causal(masked):
    length, generator = 150, torch.Generator().manual_seed(3)
    mine, theirs = tensors(length), tensors(length)
    tail = torch.rand(2, 1, masked, length, generator=generator) < 0.5
    tail[..., 0] = True
    whole = torch.ones(length, length).tril().bool().repeat(2, 1, 1, 1)
    whole[:, :, length - masked :] = tail
    module = SimpleNamespace(num_key_value_groups=2, is_causal=True, training=False)
    ours, _ = attention(module, *mine, tail)
    expected = scaled_dot_product_attention(*theirs, attn_mask=whole, enable_gqa=True).transpose(1, 2)
    torch.testing.assert_close(ours, expected, atol=1e-5, rtol=1e-5)
    weights = torch.randn(ours.shape, generator=generator)
    (ours * weights).sum().backward()
    (expected * weights).sum().backward()
    for a, b in zip(mine, theirs, strict=True):
        torch.testing.assert_close(a.grad, b.grad, atol=1e-5, rtol=1e-4)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_random_llama(tmp_path_factory.mktemp("attention") / "toy", scale=0.1)


def logprobs(model, ids, **options):
    with torch.no_grad():
        return model(input_ids=ids, **options).logits.float().log_softmax(-1)


def test_a_model_in_bfloat16_errs_no_more_than_with_the_kernel(folder):
    ids = torch.randint(3, 200, (2, 300), generator=torch.Generator().manual_seed(0))
    exact = logprobs(load_merged(folder, "float32"), ids)
    model = load_merged(folder, "bfloat16")
    errors = {}
    for name in (model.config._attn_implementation, "sdpa"):
        model.set_attn_implementation(name)
        errors[name] = (logprobs(model, ids) - exact).abs().mean()
    assert len(errors) == 2
    ours, kernel = errors.values()
    assert 0 < ours < 1.2 * kernel


def test_padding_on_the_left_is_masked(folder):
    """A mask goes to PyTorch's kernel: what stands before the first token changes nothing."""
    model = load_merged(folder, "bfloat16")
    ids = torch.randint(3, 200, (1, 40), generator=torch.Generator().manual_seed(2))
    padded = torch.cat([torch.full((1, 10), 5), ids], dim=1)
    mask = torch.cat([torch.zeros(1, 10, dtype=torch.long), torch.ones(1, 40, dtype=torch.long)], dim=1)
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    alone = logprobs(model, ids)
    beside = logprobs(model, padded, attention_mask=mask, position_ids=positions)[:, 10:]
    torch.testing.assert_close(beside, alone, atol=0.1, rtol=0.05)
