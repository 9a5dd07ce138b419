"""Loads model folders, for engines and learning: full models, or adapters merged onto their base.

Raises `BadInput` for a folder that is unsafe or cannot be loaded. Importing this module imports torch.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from safetensors import SafetensorError, safe_open
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils.logging import disable_progress_bar

from training import bases
from training.engines.local.attention import BLOCKED
from training.errors import BadInput
from training.sections import Dtype

if TYPE_CHECKING:
    from torch import Tensor

DTYPES: dict[str, torch.dtype] = {"float32": torch.float32, "bfloat16": torch.bfloat16}
disable_progress_bar()  # a run's log is a file


def load_full(folder: Path, dtype: Dtype) -> PreTrainedModel:
    """Return the full model of a folder that `bases.verified` returned."""
    try:
        return AutoModelForCausalLM.from_pretrained(
            folder,
            dtype=DTYPES[dtype],
            attn_implementation=BLOCKED,
            use_safetensors=True,
            local_files_only=True,
            trust_remote_code=False,
        )
    except (SafetensorError, ValueError, KeyError, OSError) as error:
        raise BadInput(f"cannot be loaded: {error}", str(folder)) from error


def load_merged(model: str | Path, dtype: Dtype) -> PreTrainedModel:
    """Return the model with its adapters, if it has any, merged, in eval mode and without gradients."""
    folder = bases.verified(model)
    loaded = load_full(bases.base_of(folder), dtype)
    if bases.is_adapter(folder):
        from peft import PeftModel

        loaded = PeftModel.from_pretrained(loaded, folder).merge_and_unload()
    return loaded.requires_grad_(False).eval()


def load_tokenizer(model: str | Path) -> PreTrainedTokenizerBase:
    """Return the tokenizer of a model folder; raise `BadInput` if it has no chat template."""
    folder = bases.resolve(model)
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    if tokenizer.chat_template is None:
        raise BadInput("the tokenizer has no chat template, so conversations cannot be written for it", str(folder))
    return tokenizer


def folder_weights(model: str | Path) -> Iterator[tuple[str, Tensor]]:
    """Yield (Hugging Face parameter name, tensor) of a model folder with adapters merged."""
    folder = bases.verified(model)
    if bases.is_adapter(folder):
        yield from load_merged(folder, "float32").named_parameters()
        return
    for file in sorted(folder.glob("*.safetensors")):
        with safe_open(file, framework="pt") as tensors:
            for name in tensors.keys():  # noqa: SIM118 (not a dict)
                yield name, tensors.get_tensor(name)
