"""Loads model folders, for engines and learning: full models, or adapters merged onto their base.

Raises `BadInput` for a folder that is unsafe or cannot be loaded. Importing this module imports torch.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from safetensors import SafetensorError, safe_open
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    GenerationConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils.logging import disable_progress_bar

from training import bases
from training.engines.local.attention import BLOCKED
from training.errors import BadInput
from training.sections import Dtype
from training.store import loads

if TYPE_CHECKING:
    from torch import Tensor

DTYPES: dict[str, torch.dtype] = {"float32": torch.float32, "bfloat16": torch.bfloat16}
disable_progress_bar()  # a run's log is a file


@contextmanager
def _readable(folder: Path) -> Iterator[None]:
    """Raise what files that cannot be read raise as `BadInput`."""
    try:
        yield
    except (SafetensorError, ValueError, KeyError, OSError) as error:
        raise BadInput(f"cannot be loaded: {error}", str(folder)) from error


def load_full(folder: Path, dtype: Dtype) -> PreTrainedModel:
    """Return the full model of a folder that `bases.verified` returned."""
    with _readable(folder):
        return AutoModelForCausalLM.from_pretrained(
            folder,
            dtype=DTYPES[dtype],
            attn_implementation=BLOCKED,
            use_safetensors=True,
            local_files_only=True,
            trust_remote_code=False,
        )


@torch.no_grad()
def build(folder: Path, dtype: Dtype) -> PreTrainedModel | None:
    """Return the full model of a folder as `load_full` does, but with its weights on the meta device.

    Buffers that no file has are there. None of a model whose weights are quantised, or whose buffers cannot be made
    without its weights: such a model can only be loaded as a whole.
    """
    with _readable(folder):
        config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        if getattr(config, "quantization_config", None) is not None:
            return None
        with torch.device("meta"):
            model: PreTrainedModel = AutoModelForCausalLM.from_config(
                config, dtype=DTYPES[dtype], attn_implementation=BLOCKED, trust_remote_code=False
            )
        if (folder / "generation_config.json").is_file():
            model.generation_config = GenerationConfig.from_pretrained(folder, local_files_only=True)
    return model.eval() if all(_make_buffers(model, name) for name, _ in model.named_non_persistent_buffers()) else None


def _make_buffers(model: PreTrainedModel, name: str) -> bool:
    """Compute a buffer that no file has, such as a table of positions, as Transformers does; return whether it could.

    Transformers fills all buffers of a module at once; NaN shows what it left out.
    """
    owner, last = model.get_submodule(name.rpartition(".")[0]), name.rpartition(".")[2]
    if owner._buffers[last].is_meta:  # noqa: SLF001 (`register_buffer` would make it one that is saved)
        for each in owner._non_persistent_buffers_set:  # noqa: SLF001
            buffer = owner._buffers[each]  # noqa: SLF001
            if buffer is not None:
                empty = torch.full_like(buffer, float("nan"), device="cpu") if buffer.is_floating_point() else buffer
                owner._buffers[each] = empty  # noqa: SLF001
        model._init_weights(owner)  # noqa: SLF001
    made = owner._buffers[last]  # noqa: SLF001
    return not made.is_meta and bool(made.isfinite().all())


class StoredTensors:
    """The tensors in the safetensors files of a model folder, with their `shapes` by name.

    Every read opens its file by itself, so that what was read before is not mapped into memory any more.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, Path] = {}
        self.shapes: dict[str, tuple[int, ...]] = {}
        with _readable(folder):
            for file in weight_files(folder):
                with safe_open(file, framework="pt") as tensors:
                    for name in tensors.keys():  # noqa: SIM118 (not a dict)
                        self._files[name] = file
                        self.shapes[name] = tuple(tensors.get_slice(name).get_shape())

    def rows(self, name: str, rows: slice) -> Tensor:
        """Return rows of a tensor; a number has none, and is returned."""
        with _readable(self._folder), safe_open(self._files[name], framework="pt") as tensors:
            part: Tensor = tensors.get_slice(name)[rows] if self.shapes[name] else tensors.get_tensor(name)
            return part


def weight_files(folder: Path) -> list[Path]:
    """Return the files of a full model's weights: one, those of an index, or all that there are."""
    single, index = folder / "model.safetensors", folder / "model.safetensors.index.json"
    if single.is_file():
        return [single]
    if index.is_file():
        names = sorted({str(name) for name in loads(index.read_text("utf-8"))["weight_map"].values()})
        if any(Path(name).name != name for name in names):
            raise ValueError(f"{index.name} names files of other folders")
        return [folder / name for name in names]
    return sorted(folder.glob("*.safetensors"))


def load_merged(model: str | Path, dtype: Dtype) -> PreTrainedModel:
    """Return the model with its adapters, if it has any, merged, in eval mode and without gradients."""
    folder = bases.verified(model)
    loaded = load_full(bases.base_of(folder), dtype)
    if bases.is_adapter(folder):
        from peft import PeftModel

        loaded = PeftModel.from_pretrained(loaded, folder).merge_and_unload()
    return loaded.requires_grad_(False).eval()


def load_tokenizer(model: str | Path) -> PreTrainedTokenizerBase:
    """Return the tokenizer of a model; raise `BadInput` if it has no chat template."""
    return read_tokenizer(bases.resolve(model))


def read_tokenizer(folder: Path) -> PreTrainedTokenizerBase:
    """Return the tokenizer of a folder that was checked; raise `BadInput` if it has no chat template."""
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
    for file in weight_files(folder):
        with safe_open(file, framework="pt") as tensors:
            for name in tensors.keys():  # noqa: SIM118 (not a dict)
                yield name, tensors.get_tensor(name)
