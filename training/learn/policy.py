"""The trained model: Hugging Face weights (all, or adapters), value heads on its hidden state, log-probabilities.

Log-probabilities are those of softmax(logits / temperature) over the whole vocabulary, computed only at asked
positions and in chunks, so that memory is bounded by the chunk and not by the length of a batch. Raises `BadInput` for
a model whose logits are not simply its head on its hidden state.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import torch
from peft import PeftModel
from torch import nn

from training import bases
from training.errors import BadInput
from training.learn import models
from training.learn.head import logprobs
from training.run_sections import LearnSection
from training.seeding import derive

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


class Policy:
    """The model being trained, its value heads, and the model it started from as reference.

    `heads` are linear, in float32, and start at zero.
    """

    def __init__(
        self,
        model: PreTrainedModel | PeftModel,
        tokenizer: PreTrainedTokenizerBase,
        heads: Sequence[str],
        learn: LearnSection,
        *,
        temperature: float,
        reference: PreTrainedModel | None = None,
    ) -> None:
        self.model, self.tokenizer, self.learn, self.temperature = model, tokenizer, learn, temperature
        self.inner = models.plain(model)
        models.refuse_unusual_logits(self.inner)
        config: Any = self.inner.config
        self.device: torch.device = self.inner.device
        self.heads = nn.ModuleDict({name: nn.Linear(config.hidden_size, 1) for name in heads}).to(self.device)
        for parameter in self.heads.parameters():
            nn.init.zeros_(parameter)
        self._reference = reference
        if learn.recompute:
            self.inner.gradient_checkpointing_enable({"use_reentrant": False})
            self.inner.train()  # recomputing is a mode of training; no model here has dropout
            self.inner.enable_input_require_grads()

    @property
    def trained(self) -> dict[str, nn.Parameter]:
        """The policy's own trained parameters by name, without the heads."""
        return {name: p for name, p in self.model.named_parameters() if p.requires_grad}

    @contextmanager
    def as_reference(self) -> Iterator[PreTrainedModel]:
        """The model the run started from: adapters off, or the frozen copy."""
        if isinstance(self.model, PeftModel):
            with self.model.disable_adapter():
                yield self.inner
        elif self._reference is not None:
            yield self._reference
        else:
            raise BadInput("no copy of the starting model was kept", "learn.kl")

    def hidden(self, ids: Tensor, model: PreTrainedModel | None = None) -> Tensor:
        """Return the last hidden states, (B, L, H). Padding stands on the right, where no token looks: no mask."""
        with self._precision():
            states: Tensor = (model or self.inner).base_model(input_ids=ids, use_cache=False).last_hidden_state
        return states

    def _precision(self) -> AbstractContextManager[object]:
        return torch.autocast(self.device.type, torch.bfloat16) if self.learn.autocast else nullcontext()

    def value(self, head: str, hidden: Tensor) -> Tensor:
        """Return the head's values at hidden states (…, H), as (…)."""
        found: Tensor = self.heads[head](hidden.float()).squeeze(-1)
        return found

    def logprobs(
        self, hidden: Tensor, targets: Tensor, *, entropy_grad: bool = False, model: PreTrainedModel | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return (log-probability of `targets`, entropy), both (N,), from hidden states (N, H) *before* the targets."""
        return logprobs(
            (model or self.inner).get_output_embeddings(),
            hidden,
            targets,
            temperature=self.temperature,
            chunk=self.learn.logits_chunk,
            dtype=torch.bfloat16 if self.learn.autocast else None,
            entropy_grad=entropy_grad,
        )

    def tensors(self) -> dict[str, Tensor]:
        """Return what a checkpoint's model folder does not hold exactly: the value heads, and adapters if any."""
        found = {f"heads.{name}": tensor for name, tensor in self.heads.state_dict().items()}
        if isinstance(self.model, PeftModel):
            found |= {f"adapter.{name}": p.detach() for name, p in self.trained.items()}
        return found

    @torch.no_grad()
    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Put `tensors` back; a missing or differently shaped one raises `BadInput`."""
        for name, own in self.tensors().items():
            if name not in tensors or tensors[name].shape != own.shape:
                raise BadInput(f"the checkpoint does not fit this configuration: {name}", "learn.lora")
            own.copy_(tensors[name])


def load(
    base: str,
    heads: Sequence[str],
    learn: LearnSection,
    *,
    seed: int,
    temperature: float,
    device: str,
    weights: str | None = None,
) -> Policy:
    """Return the policy that starts from `base`: new adapters on its merged weights, or all of its weights.

    `weights` is a checkpoint folder whose full weights the policy takes instead; `base` then stays the reference.
    """
    full = learn.lora is None
    dtype = "float32" if full else learn.dtype  # updates of bfloat16 weights would be lost to rounding
    model, tokenizer = models.load(weights if full and weights else base, dtype, None, device)
    reference = None
    if learn.lora is not None:
        torch.manual_seed(derive(seed, "adapters"))
        model = models.adapt(model, learn.lora).eval()  # merged: no adapters yet
    elif learn.kl != "none":
        reference = models.load(base, dtype, None, device)[0].requires_grad_(False)
    return Policy(model, tokenizer, heads, learn, temperature=temperature, reference=reference)


def saves_adapter_only(base: str, learn: LearnSection) -> bool:
    """Return whether a checkpoint can be adapters alone: there are some, on a base that every machine knows by name."""
    return learn.lora is not None and bases.find(base) is not None
