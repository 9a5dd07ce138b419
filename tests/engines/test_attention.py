"""Blocks of causal attention and packed rows, against PyTorch's own kernel in float32."""

from __future__ import annotations

import inspect
from types import SimpleNamespace

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.attention.varlen import varlen_attn
from torch.nn.functional import scaled_dot_product_attention
from transformers import AutoModel, LlamaConfig, MistralConfig, Qwen2Config, Qwen3Config

from tests.toy_models import write_random_llama
from training.engines.local import attention as attention_module
from training.engines.local.attention import BLOCKED, QUERIES, Segments, attention, blocked
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


LENGTHS = (5, 1, 200, 33)
MODULE = SimpleNamespace(num_key_value_groups=2, is_causal=True, training=False)


def row():
    generator = torch.Generator().manual_seed(2)
    return [torch.randn((1, heads, 239, 16), generator=generator, requires_grad=True) for heads in (6, 3, 3)]


def apart(tensors, lengths, masks=None):
    """Every segment by PyTorch's kernel, (1, T, heads, D)."""
    outputs, first = [], 0
    for number, length in enumerate(lengths):
        part = [tensor[:, :, first : first + length] for tensor in tensors]
        mask = torch.ones(length, length).tril().bool()
        if masks and masks[number] is not None:
            mask = torch.cat((mask[: length - masks[number].shape[2]], masks[number][0, 0]))
        outputs.append(scaled_dot_product_attention(*part, attn_mask=mask, enable_gqa=True))
        first += length
    return torch.cat(outputs, dim=2).transpose(1, 2)


@pytest.mark.parametrize("autocast", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_each_segment_of_a_packed_row_attends_to_itself(masked, autocast):
    mask = torch.rand(1, 1, 40, 200, generator=torch.Generator().manual_seed(0)) < 0.5
    mask[..., 0] = True
    masks = (None, None, mask, None) if masked else None
    mine, theirs = row(), row()
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        ours, _ = attention(MODULE, *mine, None, segments=Segments.of(LENGTHS, masks))
    expected = apart(theirs, LENGTHS, masks)
    near = {"atol": 2e-2, "rtol": 2e-2} if autocast else {"atol": 1e-5, "rtol": 1e-5}
    torch.testing.assert_close(ours.float(), expected, **near)
    weights = torch.randn(ours.shape, generator=torch.Generator().manual_seed(1))
    (ours * weights).sum().backward()
    (expected * weights).sum().backward()
    for a, b in zip(mine, theirs, strict=True):
        torch.testing.assert_close(a.grad, b.grad, atol=10 * near["atol"], rtol=10 * near["rtol"])


def as_if_varlen(query, key, value, cu_seq_q, cu_seq_k, max_q, max_k, **options):
    """PyTorch's `varlen_attn` as it is documented, for causal attention."""
    inspect.signature(varlen_attn).bind(query, key, value, cu_seq_q, cu_seq_k, max_q, max_k, **options)
    assert options.pop("window_size") == (-1, 0), "causal, as documented"
    assert options.pop("enable_gqa")
    assert options == {"scale": 0.25}
    assert cu_seq_q.dtype == torch.int32
    assert cu_seq_q.tolist() == cu_seq_k.tolist() == [0, 5, 6, 206, 239]
    assert max_q == max_k == 200
    bounds = zip(cu_seq_q.tolist(), cu_seq_q.tolist()[1:], strict=False)
    parts = [[tensor[first:last].transpose(0, 1) for tensor in (query, key, value)] for first, last in bounds]
    outputs = [scaled_dot_product_attention(*part, is_causal=True, enable_gqa=True) for part in parts]
    return torch.cat(outputs, dim=1).transpose(0, 1)


def test_the_call_for_gpus_has_the_values_of_the_segments(monkeypatch):
    monkeypatch.setattr(attention_module, "varlen_attn", as_if_varlen)
    segments = Segments.of(LENGTHS)
    ours = attention_module._varlen(*row(), segments, 0.25)
    torch.testing.assert_close(ours, apart(row(), LENGTHS), atol=1e-5, rtol=1e-5)


def test_half_precision_on_a_gpu_is_one_call(monkeypatch):
    """Tensors without data stand in for those on a GPU; PyTorch's operator accepts what it is called with."""
    calls = []
    monkeypatch.setattr(attention_module, "varlen_attn", lambda *a, **k: calls.append(a) or varlen_attn(*a, **k))
    with FakeTensorMode():
        tensors = [torch.empty((1, heads, 239, 16), dtype=torch.bfloat16, device="cuda") for heads in (6, 3, 3)]
        bounds = torch.empty(len(LENGTHS) + 1, dtype=torch.int32, device="cuda")
        output, _ = attention(MODULE, *tensors, None, segments=Segments(LENGTHS, (None,) * 4, bounds))
        assert output.shape == (1, 239, 6, 16)
        assert (output.device.type, output.dtype) == ("cuda", torch.bfloat16)
    assert len(calls) == 1


SMALL = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 300,
}


@pytest.mark.parametrize(
    "config",
    [
        LlamaConfig(**SMALL),
        Qwen2Config(**SMALL),
        Qwen3Config(**SMALL, head_dim=16),
        MistralConfig(**SMALL, sliding_window=8),
    ],
    ids=lambda config: config.model_type,
)
def test_models_pass_the_segments_on(config):
    torch.manual_seed(0)
    model = AutoModel.from_config(config, attn_implementation=BLOCKED).eval()
    ids = torch.randint(3, 300, (1, 60), generator=torch.Generator().manual_seed(1))
    lengths = (20, 9, 31)
    positions = torch.cat([torch.arange(length) for length in lengths])[None]
    segments = Segments.of(lengths)
    options = {"position_ids": positions, "attention_mask": torch.ones_like(ids), "use_cache": False}
    packed = model(input_ids=ids, segments=segments, **options).last_hidden_state
    alone = [model(input_ids=part, use_cache=False).last_hidden_state for part in ids.split(lengths, dim=1)]
    torch.testing.assert_close(packed, torch.cat(alone, dim=1), atol=1e-5, rtol=1e-5)


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
