"""The trained model: Hugging Face weights (all, or adapters), its critic, log-probabilities.

Log-probabilities are those of softmax(logits / temperature) over the whole vocabulary, or over the tokens that decoding
was limited to. They are computed only at the requested positions and in chunks, so that the chunk bounds the memory and
not the length of a batch. Raises `BadInput` for a model that changes its logits after the output head.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import torch

from training import bases
from training.errors import BadInput
from training.learn import filling, models, ranks
from training.learn.checkpoint import read
from training.learn.critic import Critic
from training.learn.head import logprobs
from training.learn.offloading import Offloaded
from training.learn.ranks import ALONE, DistContext
from training.learn.state_reader import StateReader
from training.run_sections import LearnSection
from training.seeding import derive

if TYPE_CHECKING:
    from pathlib import Path

    from peft import PeftModel
    from torch import Tensor, nn
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from training.learn.choices import Choices
    from training.learn.rows import Layout

log = logging.getLogger(__name__)


class Policy:
    """The model being trained, its critic (one value head for each of `heads`), and the reference of the KL.

    Of several ranks, `group`, each has a shard of the weights, and `model` is sharded already; every method that reads
    or copies them is called on all.
    """

    def __init__(
        self,
        model: PreTrainedModel | PeftModel,
        tokenizer: PreTrainedTokenizerBase,
        heads: Sequence[str],
        learn: LearnSection,
        *,
        temperature: float,
        base: str = "",
        seed: int = 0,
        group: DistContext = ALONE,
    ) -> None:
        self.model, self.tokenizer, self.learn, self.temperature = model, tokenizer, learn, temperature
        self.inner, self.ranks = models.plain(model), group
        models.refuse_unusual_logits(self.inner)
        models.refuse_unpackable(self.inner)
        config: Any = self.inner.config
        self.device: torch.device = self.inner.device
        self.critic = Critic(heads, config.hidden_size, learn, derive(seed, "critic")).to(self.device)
        self._base = base
        self._start = self._frozen(base) if base and learn.lora is None and learn.keeps_reference else None
        self._reference: PreTrainedModel | None = None
        self._adapters: dict[str, Tensor] = {}
        if learn.recompute:
            self.inner.gradient_checkpointing_enable({"use_reentrant": False})
            self.inner.train()  # recomputing is a mode of training; no model here has dropout
            self.inner.enable_input_require_grads()
        adapters = self.trained if models.has_adapters(model) else {}
        self._untrained = {name: parameter.detach().clone() for name, parameter in adapters.items()}

    @property
    def trained(self) -> dict[str, nn.Parameter]:
        """The policy's trained parameters by name, without the critic's; of several ranks the shards."""
        ranks.release(self.inner)
        return {name: p for name, p in self.model.named_parameters() if p.requires_grad}

    @contextmanager
    def as_start(self) -> Iterator[PreTrainedModel]:
        """Yield the model that the run started from: the model without adapters, or the frozen copy."""
        if models.has_adapters(self.model):
            with self.model.disable_adapter():
                yield self.inner
        elif self._start is not None:
            yield self._start
        else:
            raise BadInput("no copy of the starting model was kept", "learn.kl")

    @contextmanager
    def as_reference(self) -> Iterator[PreTrainedModel]:
        """Yield the model from which the KL divergence is measured: that of `refer`, or what the run started from."""
        if self._adapters:
            self._swap_adapters()
            try:
                yield self.inner
            finally:
                self._swap_adapters()
        elif self._reference is not None:
            yield self._reference
        else:
            with self.as_start() as start:
                yield start

    def refer(self, checkpoint: Path | None) -> None:
        """Measure the KL divergence from a checkpoint of this run from now on; None = from what the run started from.

        Of a policy with adapters it is the adapters that are kept. Without adapters it is a copy of all weights, which
        takes the place of the starting model's where nothing else reads that.
        """
        self._reference, self._adapters = None, {}
        if models.has_adapters(self.model):
            if checkpoint is not None:
                reader = StateReader(read(checkpoint, self.ranks).tensors, self.ranks)
                self._adapters = {name: parameter.detach().clone() for name, parameter in self.trained.items()}
                for name, target in self._adapters.items():
                    reader.fill(target, f"adapter.{name}")
            return
        reads = self.learn.reads_reference
        if self.learn.critic.features != "start" and (checkpoint is not None or not reads):
            self._start = None
        elif self._start is None:
            self._start = self._frozen(self._base)
        if checkpoint is not None and reads:
            self._reference = self._frozen(checkpoint)

    def _frozen(self, model: str | Path) -> PreTrainedModel:
        skeleton = models.unfilled(model, "float32", None, self.ranks)
        skeleton.model.requires_grad_(False)
        return models.plain(skeleton.fill(str(self.device), self.ranks, bfloat16=self.learn.autocast))

    @torch.no_grad()
    def _swap_adapters(self) -> None:
        """Exchange the values of the policy's adapters with those of the reference."""
        for name, parameter in self.trained.items():
            kept = parameter.detach().clone()
            parameter.copy_(self._adapters[name])
            self._adapters[name] = kept

    def hidden(self, ids: Tensor, model: PreTrainedModel | None = None, layout: Layout | None = None) -> Tensor:
        """Return the last hidden states, (B, L, H), of a packed row (B = 1), or of rows that are a sequence each."""
        more: dict[str, Any] = {}
        if layout is not None:  # without a mask, Transformers would make one of T × T from the positions
            more = {"position_ids": layout.positions, "attention_mask": torch.ones_like(ids)}
            more["segments"] = layout.segments
        with self._precision(), self._kept(ids):
            return ranks.hidden_states(model or self.inner, input_ids=ids, **more)

    def _precision(self) -> AbstractContextManager[object]:
        return torch.autocast(self.device.type, torch.bfloat16) if self.learn.autocast else nullcontext()

    def _kept(self, ids: Tensor) -> AbstractContextManager[object]:
        """Return the context in which a pass keeps what its backward pass needs."""
        offloads = self.learn.offload_activations and torch.is_grad_enabled()
        return Offloaded((ids.shape[-1], ids.numel())) if offloads else nullcontext()

    def features(self, ids: Tensor, hidden: Tensor, layout: Layout | None = None) -> Tensor:
        """Return the critic's input, (B, L, H): the hidden states of the policy, or of the starting model."""
        if self.learn.critic.features == "policy":
            return hidden
        with torch.no_grad(), self.as_start() as model:
            return self.hidden(ids, model, layout)

    def no_states(self) -> tuple[Tensor, Tensor]:
        """Return features (0, H) and targets (0,): what a rank has read of a head that its part has nothing of."""
        config: Any = self.inner.config
        return torch.zeros((0, config.hidden_size), device=self.device), torch.zeros(0, device=self.device)

    def logprobs(
        self,
        hidden: Tensor,
        targets: Tensor,
        *,
        choices: Choices | None = None,
        entropy_grad: bool = False,
        model: PreTrainedModel | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Return (log-probability of `targets`, entropy), both (N,), from hidden states (N, H) *before* the targets.

        At the rows of `choices` both are of the policy renormalised over the allowed ids.
        """
        return logprobs(
            (model or self.inner).get_output_embeddings(),
            hidden,
            targets,
            temperature=self.temperature,
            chunk=self.learn.logits_chunk,
            dtype=torch.bfloat16 if self.learn.autocast else None,
            entropy_grad=entropy_grad,
            choices=choices,
        )

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors that a checkpoint stores beside the model folder: the critic, and unmerged adapters.

        Those of adapters are the shards of this rank.
        """
        tensors: dict[str, Tensor] = {f"critic.{name}": tensor for name, tensor in self.critic.state_dict().items()}
        if models.has_adapters(self.model):
            tensors |= {f"adapter.{name}": p.detach() for name, p in self.trained.items()}
        return tensors

    @torch.no_grad()
    def restart(self) -> None:
        """Take the weights that the run started from; value heads stay as they are."""
        if models.has_adapters(self.model):
            for name, parameter in self.trained.items():
                parameter.copy_(self._untrained[name])
        else:
            self._copy(self._base)

    @torch.no_grad()
    def go_back(self, checkpoint: Path) -> None:
        """Take all weights of a checkpoint of this run; adapters and value heads are left to `restore`."""
        if not models.has_adapters(self.model):
            self._copy(checkpoint)

    def _copy(self, model: str | Path) -> None:
        """Take all weights of a model."""
        ranks.release(self.inner)
        filling.refill(self.inner, models.unfilled(model, "float32", None, self.ranks).source, self.ranks)

    @torch.no_grad()
    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore `tensors`; raise `BadInput` if one is missing or has another shape.

        Value heads of checkpoints that predate the critic read other features, so the critic then starts untrained.
        """
        reader = StateReader(tensors, self.ranks)
        former = any(name.startswith("heads.") for name in tensors)
        if former:
            log.warning("the checkpoint has value heads of an earlier version: the critic starts at the mean return")
        for name, target in self.tensors().items():
            part = name.partition(".")[0]
            if former and part == "critic":
                continue
            outline = reader.outline(name)
            if outline is None or outline.shape != tuple(target.shape):
                field = "learn.critic" if part == "critic" else "learn.lora"
                raise BadInput(f"the checkpoint does not fit this configuration: {name}", field)
            reader.fill(target, name)


def load(
    base: str,
    heads: Sequence[str],
    learn: LearnSection,
    *,
    seed: int,
    temperature: float,
    device: str,
    weights: str | None = None,
    group: DistContext = ALONE,
) -> Policy:
    """Return the policy that starts from `base`: it trains new adapters on the merged weights, or all weights.

    `weights` is a checkpoint folder from which the policy loads its full weights; `base` stays the reference.
    """
    full = learn.lora is None
    dtype = "float32" if full else learn.dtype  # bfloat16 weights would lose small updates to rounding
    skeleton = models.unfilled(weights if full and weights else base, dtype, None, group)
    if learn.lora is not None:
        torch.manual_seed(derive(seed, "adapters"))
        skeleton.model = models.adapt(skeleton.model, learn.lora)  # merged: no adapters yet
    model = skeleton.fill(device, group, bfloat16=learn.autocast)
    return Policy(model, skeleton.tokenizer, heads, learn, temperature=temperature, base=base, seed=seed, group=group)


def saves_adapter_only(base: str, learn: LearnSection) -> bool:
    """Return whether a checkpoint holds adapters only: the policy has adapters, and the base is a registered name."""
    return learn.lora is not None and bases.find(base) is not None
