"""Models on disk and in memory: load a base or checkpoint, add adapters, read merged weights, save.

A folder contains a full Hugging Face model, or a PEFT adapter that names its base. Loading raises `BadInput` for a
folder that is unsafe or incomplete, or whose adapters do not match the configuration. Importing this module imports
torch; PEFT is imported where adapters are made or loaded.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from training import bases
from training.engines.chunks import Chunk, cut
from training.engines.local.loading import DTYPES, StoredTensors, build, load_full, read_tokenizer
from training.errors import BadInput
from training.learn import filling
from training.learn.filling import Source
from training.learn.ranks import ALONE, DistContext, release, whole
from training.learn.tensor_files import Outline, TensorWriter
from training.sections import Dtype, LoraConfig

if TYPE_CHECKING:
    from peft import LoraConfig as PeftLora
    from peft import PeftModel
    from peft.tuners.lora import LoraLayer
    from torch import Tensor

log = logging.getLogger(__name__)
ADAPTER = "default"
UNUSUAL = ("final_logit_softcapping", "logit_scale", "logits_scaling")
"""Model settings that change the logits after the head."""


@dataclass(slots=True)
class Unfilled:
    """A model that has no weights yet, unless it could only be loaded as a whole: then `whole`. `source` has them.

    `source` is None on a rank where the model's files are not. The layers of `model` may get adapters before `fill`.
    """

    model: PreTrainedModel | PeftModel
    tokenizer: PreTrainedTokenizerBase
    source: Source | None
    whole: bool = False

    def fill(
        self, device: str = "cpu", group: DistContext = ALONE, *, bfloat16: bool = False
    ) -> PreTrainedModel | PeftModel:
        """Return the model in eval mode with its weights on a device, sharded over ranks: see `DistContext.shard`."""
        inner = plain(self.model)
        if self.whole:
            inner.to(device)
            group.shard(inner, bfloat16=bfloat16)
        else:
            filling.replace(inner, filling.without_placeholder)
            filling.fill(inner, self.source, device, group, bfloat16=bfloat16)
        return self.model.eval()


def load(
    model: str | Path,
    dtype: Dtype = "float32",
    lora: LoraConfig | None = None,
    device: str = "cpu",
) -> tuple[PreTrainedModel | PeftModel, PreTrainedTokenizerBase]:
    """Return (model, tokenizer) of a registered name or folder, in eval mode.

    With `lora` the model is a PeftModel, and only its adapters (float32) require gradients. An adapter folder keeps its
    adapters, whose rank must be `lora.rank`. Without `lora`, adapters are merged and every weight requires gradients.
    New adapters draw from torch's global generator.
    """
    skeleton = unfilled(model, dtype, lora)
    return skeleton.fill(device), skeleton.tokenizer


def unfilled(
    model: str | Path, dtype: Dtype = "float32", lora: LoraConfig | None = None, group: DistContext = ALONE
) -> Unfilled:
    """Return the model of a registered name or folder before its weights are read; see `load` for `lora`."""
    with filling.located(model, group) as (folder, here):
        tokenizer = read_tokenizer(folder)
        if not bases.is_adapter(folder):
            skeleton = _unfilled(folder, dtype, tokenizer, here, group)
            if lora is not None:
                skeleton.model = adapt(skeleton.model, lora)
            return skeleton
        with filling.located(bases.base_name(folder), group) as (base, base_here):
            skeleton = _unfilled(base, dtype, tokenizer, base_here, group, changes=_changes_more(folder))
            return _with_adapters(skeleton, folder, dtype, lora)


def _unfilled(
    folder: Path,
    dtype: Dtype,
    tokenizer: PreTrainedTokenizerBase,
    here: bool,
    group: DistContext,
    *,
    changes: bool = False,
) -> Unfilled:
    """Return a full model before its weights are read, or as a whole where ranks cannot read a part of it.

    `changes`: adapters change more of it than single weights.
    """
    with group.together():
        stored = StoredTensors(folder) if here else None
        model = None if changes else build(folder, dtype)
        if model is not None and stored is not None and not filling.matches(model, stored.shapes):
            model = None
    if all(group.gather(model is not None)):
        assert model is not None
        filling.replace(model, filling.placeholder)
        return Unfilled(model, tokenizer, stored)
    if not all(group.gather(here)):
        raise BadInput("a model of this kind must be on every machine of the run", str(folder))
    if group.many:
        log.warning("%s is loaded as a whole by every rank: its files are not named and shaped as its layers", folder)
    loaded = load_full(folder, dtype)
    return Unfilled(loaded, tokenizer, filling.InMemory(loaded), whole=True)


def adapt(model: PreTrainedModel | PeftModel, lora: LoraConfig) -> PeftModel:
    """Return the model with new adapters. Only they require gradients; they draw from torch's global generator.

    Raises `BadInput` for targets that the model does not have.
    """
    from peft import get_peft_model

    try:
        return get_peft_model(model, _peft(lora), adapter_name=ADAPTER)
    except ValueError as error:  # PEFT raises it for names that match no layer
        raise BadInput(str(error), "lora.targets") from error


def _changes_more(folder: Path) -> bool:
    """Return whether adapters are more than a sum for each weight of linear layers, which needs the whole model."""
    from peft import PeftConfig

    config = PeftConfig.from_pretrained(str(folder))
    more = ("use_dora", "lora_bias", "modules_to_save", "target_parameters", "trainable_token_indices")
    plain_sums = (
        config.peft_type == "LORA"
        and not any(getattr(config, name, None) for name in more)
        and getattr(config, "bias", "none") == "none"
        and not isinstance(getattr(config, "init_lora_weights", True), str)
    )
    return not plain_sums or not all(".lora_A." in name or ".lora_B." in name for name in StoredTensors(folder).shapes)


def _with_adapters(skeleton: Unfilled, folder: Path, dtype: Dtype, lora: LoraConfig | None) -> Unfilled:
    """Return a model with the adapters of a folder: kept with `lora`, else merged."""
    from peft import PeftModel

    model = PeftModel.from_pretrained(skeleton.model, folder, adapter_name=ADAPTER, is_trainable=lora is not None)
    if lora is not None:
        rank = model.peft_config[ADAPTER].r
        if rank != lora.rank:
            raise BadInput(f"the checkpoint's adapters have rank {rank}, not {lora.rank}: use its rank", "lora.rank")
        skeleton.model = model
        return skeleton
    if skeleton.whole:
        skeleton.model = model.merge_and_unload().requires_grad_(True)
        skeleton.source = filling.InMemory(skeleton.model)
        return skeleton
    layers = _adapter_layers(plain(model)).items()
    deltas = {f"{name}.weight": partial(layer.get_delta_weight, ADAPTER) for name, layer in layers}
    skeleton.model = model.unload().requires_grad_(True)
    if skeleton.source is not None:
        skeleton.source = filling.Merged(skeleton.source, deltas, DTYPES[dtype])
    return skeleton


def _peft(lora: LoraConfig) -> PeftLora:
    from peft import LoraConfig as PeftLora

    return PeftLora(
        r=lora.rank,
        lora_alpha=lora.alpha,
        lora_dropout=lora.dropout,
        target_modules=list(lora.targets) or "all-linear",
        task_type="CAUSAL_LM",
    )


def has_adapters(model: PreTrainedModel | PeftModel) -> TypeGuard[PeftModel]:
    """Return whether a model is a PeftModel; before PEFT has been imported none is."""
    peft = sys.modules.get("peft")
    return peft is not None and isinstance(model, peft.PeftModel)


def plain(model: PreTrainedModel | PeftModel) -> PreTrainedModel:
    """Return the Hugging Face model inside a PeftModel; its adapter layers stay in place."""
    return model.get_base_model() if has_adapters(model) else model


def refuse_unusual_logits(model: PreTrainedModel) -> None:
    """Raise `BadInput` for a model that changes its logits after the output head."""
    if unusual := [name for name in UNUSUAL if getattr(model.config, name, None) not in (None, 1.0)]:
        raise BadInput(f"models with {', '.join(unusual)} cannot be trained here", "model.base")


def refuse_unpackable(model: PreTrainedModel) -> None:
    """Raise `BadInput` for a model whose layers would mix the sequences of a packed row."""
    if getattr(model, "_is_stateful", False) or not getattr(model, "_supports_attention_backend", False):
        raise BadInput(f"{model.config.model_type} models cannot be trained here: sequences share a row", "model.base")


@torch.no_grad()
def merged_weights(
    model: PreTrainedModel | PeftModel, dtype: torch.dtype | None = None
) -> Iterator[tuple[str, Tensor]]:
    """Yield (Hugging Face parameter name, detached tensor) with adapters merged, one layer at a time.

    Sums are computed in float32 and returned in `dtype`, by default that of the weights; tied ones come once. Tensors
    without an adapter share memory with the model: copy them to keep them beyond the next update. Of several ranks all
    must iterate: each tensor is gathered when it is yielded.
    """
    for name, parameter, layer in _adapted(model):
        if layer is None:
            yield name, whole(parameter.detach().to(dtype or parameter.dtype))
        else:
            delta = layer.get_delta_weight(ADAPTER).float()
            merged = (parameter.float() + delta).to(parameter.dtype)
            yield name, whole(merged.to(dtype or parameter.dtype))


def merged_outlines(model: PreTrainedModel | PeftModel) -> dict[str, Outline]:
    """Return what `merged_weights` yields in outline."""
    return {name: Outline.of(parameter) for name, parameter, _ in _adapted(model)}


def _adapted(model: PreTrainedModel | PeftModel) -> Iterator[tuple[str, Tensor, LoraLayer | None]]:
    """Yield (name, weight, what adapts it) of every weight, tied ones once."""
    inner = plain(model)
    release(inner)
    layers = _adapter_layers(inner) if has_adapters(model) else {}
    for name, parameter in inner.named_parameters():
        owner, _, kind = name.partition(".base_layer.")
        if kind:
            yield f"{owner}.{kind}", parameter, layers.get(owner) if kind == "weight" else None
        elif ".lora_" not in name:
            yield name, parameter, None


def _adapter_layers(model: PreTrainedModel) -> dict[str, LoraLayer]:
    from peft.tuners.lora import LoraLayer

    return {name: layer for name, layer in model.named_modules() if isinstance(layer, LoraLayer)}


def save(
    model: PreTrainedModel | PeftModel,
    tokenizer: PreTrainedTokenizerBase,
    folder: Path,
    info: bases.ModelInfo,
    *,
    adapter_only: bool = False,
    beat: Callable[[], None] | None = None,
) -> None:
    """Write a loadable model into the existing `folder`: weights, config, tokenizer, chat template, card, provenance.

    Adapters are merged unless `adapter_only`, which needs a PeftModel on the base named by `info.parent`. The caller
    makes the folder atomic (`store.atomic_directory`). `beat` is called after every chunk of full weights.
    """
    save_files(model, tokenizer, folder, info, adapter_only=adapter_only)
    if not adapter_only:
        save_weights(merged_outlines(model), cut(merged_weights(model)), folder, beat)


def save_files(
    model: PreTrainedModel | PeftModel,
    tokenizer: PreTrainedTokenizerBase,
    folder: Path,
    info: bases.ModelInfo,
    *,
    adapter_only: bool,
) -> None:
    """Write everything but full weights, see `save`; of several ranks all must call it."""
    if adapter_only:
        if not has_adapters(model):
            raise BadInput("only a model with adapters can be saved as an adapter", "checkpoint")
        model.peft_config[ADAPTER].base_model_name_or_path = info.parent or info.base
        release(plain(model))
        state = {name: whole(tensor) for name, tensor in model.state_dict().items() if ".lora_" in name}
        # embeddings are never adapted; to find that out by itself, PEFT would query the hub
        model.save_pretrained(folder, selected_adapters=[ADAPTER], save_embedding_layers=False, state_dict=state)
    else:
        inner = plain(model)
        inner.config.save_pretrained(folder)
        if inner.generation_config is not None:
            inner.generation_config.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    bases.write_info(folder, info.model_copy(update={"parameters": count(model)}))


def save_weights(
    outlines: Mapping[str, Outline], chunks: Iterable[Chunk], folder: Path, beat: Callable[[], None] | None = None
) -> None:
    """Write full weights as safetensors while they arrive."""
    with TensorWriter(beat) as writer:
        writer.add_model(folder, outlines)
        writer.write(chunks)


def count(model: PreTrainedModel | PeftModel) -> int:
    """Return the model's number of parameters without adapters; tied parameters count once."""
    return sum(p.numel() for name, p in plain(model).named_parameters() if ".lora_" not in name)
