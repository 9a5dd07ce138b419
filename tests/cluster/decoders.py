"""Small decoders of the three families, with sizes that no two parts share, as models and as shapes."""

from __future__ import annotations

from typing import Any

from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from training.cluster.shapes import ModelShape
from training.engines.local.attention import BLOCKED

CLASSES: dict[str, tuple[Any, Any]] = {
    "llama": (LlamaConfig, LlamaForCausalLM),
    "qwen2": (Qwen2Config, Qwen2ForCausalLM),
    "qwen3": (Qwen3Config, Qwen3ForCausalLM),
}


def decoder(family: str, *, layers: int = 3, **changes: Any) -> PreTrainedModel:
    """Return a model: hidden 120, MLP 304, 6 heads of 16 in 2 groups, 2048 tokens.

    In bfloat16 `attn_implementation="sdpa"` keeps what a packed row keeps on a GPU, in one call.
    """
    config, model = CLASSES[family]
    sizes = {"hidden_size": 120, "intermediate_size": 304, "num_attention_heads": 6, "num_key_value_heads": 2}
    sizes |= {"head_dim": 16, "vocab_size": 2048, "num_hidden_layers": layers, "tie_word_embeddings": True}
    made: PreTrainedModel = model(config(**{"attn_implementation": BLOCKED, **sizes, **changes}))
    return made.eval()


def shape(family: str, *, layers: int = 3) -> ModelShape:
    """Return the shape of `decoder`, typed by hand."""
    return ModelShape(
        name=family,
        layers=layers,
        hidden=120,
        intermediate=304,
        heads=6,
        kv_heads=2,
        head_dim=16,
        vocabulary=2048,
        tied=True,
        window=32768,
        attention_bias=family == "qwen2",
        head_norms=family == "qwen3",
    )


TINY = ModelShape("tiny", 3, 128, 320, 4, 2, 32, 2048, tied=True, window=4096)
"""The shape of `tiny`, whose numbers are worked by hand in the tests: a layer has 172,288 parameters."""
