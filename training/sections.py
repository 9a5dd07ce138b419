"""Sections of a configuration that several kinds of run share: which weights are trained, and the cold start.

Plain pydantic, so that the site can build forms from them without importing torch.
"""

from __future__ import annotations

import json
import math
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, ValidationInfo

from training.reading import Record

Dtype = Literal["float32", "bfloat16"]
Decay = Annotated[float, Field(ge=0, lt=1)]
Text = Annotated[str, Field(max_length=200)]
Names = Annotated[tuple[Text, ...], Field(max_length=100)]
MOST_STEPS = 100_000
"""Most steps of a run, and most of whatever is counted in steps."""


class LoraConfig(Record):
    """Low-rank adapters on the linear layers; everything else stays frozen."""

    rank: Annotated[int, Field(ge=1, le=512, description="Rank of the adapters")] = 32
    alpha: Annotated[float, Field(gt=0, le=1e6, description="Scale: the update is multiplied by alpha / rank")] = 64.0
    dropout: Annotated[float, Field(ge=0, lt=1, description="Dropout before the adapters")] = 0.0
    targets: Annotated[
        Names, Field(description="Names of the layers to adapt; empty = every linear layer but the head")
    ] = ()


def _off(value: object, info: ValidationInfo) -> object:
    """Return None for `false`. Data from JSON is validated as JSON, where a list stands for a tuple."""
    if value is False:
        return None
    if info.mode == "json" and isinstance(value, dict):
        return LoraConfig.model_validate_json(json.dumps(value), strict=True)
    return value


MaybeLora = Annotated[LoraConfig | None, BeforeValidator(_off)]
"""Adapters, or none; TOML has no null, so `false` means none as well."""


class SftConfig(Record):
    """Cold start: supervised learning on conversations; what each seat said are the targets, all else is context."""

    epochs: Annotated[int, Field(ge=1, le=100, description="Passes over the data")] = 1
    max_steps: Annotated[
        int, Field(ge=0, le=10**9, description="Stop after this many updates; 0 = after the epochs")
    ] = 0
    tokens_per_batch: Annotated[
        int, Field(ge=64, le=2**24, description="Tokens per forward pass, padding included; this limits memory use")
    ] = 2048
    batches_per_step: Annotated[
        int, Field(ge=1, le=10**6, description="Gradient accumulation: forward passes per update")
    ] = 4
    max_length: Annotated[
        int,
        Field(
            ge=16,
            le=2**20,
            description="Longest trace in tokens; a longer conversation continues without its oldest messages",
        ),
    ] = 2048
    lr: Annotated[float, Field(gt=0, le=10, description="Peak learning rate")] = 2e-4
    schedule: Annotated[
        Literal["constant", "linear", "cosine"], Field(description="Learning rate schedule after warm-up")
    ] = "cosine"
    warmup: Annotated[
        float, Field(ge=0, lt=1, description="Share of the steps in which the learning rate warms up")
    ] = 0.03
    betas: Annotated[tuple[Decay, Decay], Field(description="Betas of AdamW")] = (0.9, 0.95)
    weight_decay: Annotated[float, Field(ge=0, le=100, description="Weight decay of AdamW")] = 0.0
    max_grad_norm: Annotated[float, Field(gt=0, le=1e12, description="Gradient clipping: the largest norm")] = 1.0
    lora: Annotated[MaybeLora, Field(description="LoRA adapters; none = all weights are trained")] = LoraConfig()
    dtype: Annotated[Dtype, Field(description="bfloat16: frozen weights and computation; updates stay in float32")] = (
        "float32"
    )
    save_every: Annotated[
        int, Field(ge=0, le=10**9, description="Updates between checkpoints; 0 = only at the end")
    ] = 0
    keep: Annotated[int, Field(ge=1, le=MOST_STEPS, description="Number of newest checkpoints that are kept")] = 2

    def rate(self, step: int, steps: int) -> float:
        """Return the learning rate of update `step` (from 0) of `steps`."""
        rising = round(self.warmup * steps)
        if step < rising:
            return self.lr * (step + 1) / rising
        share = (step - rising) / max(1, steps - rising)
        if self.schedule == "linear":
            return self.lr * (1 - share)
        if self.schedule == "cosine":
            return self.lr * 0.5 * (1 + math.cos(math.pi * share))
        return self.lr
