"""Checkpoints: a Hugging Face model folder plus the trainer's state, written atomically and without pickle.

`trainer/state.safetensors` holds tensors (optimizer, value heads, generators), `trainer/state.json` everything else.
Reading a folder that is incomplete or changed, or that lacks the trainer's state, raises `BadInput`.
"""

from __future__ import annotations

import json
import logging
import random
import shutil
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from training.bases import STATE, ModelInfo
from training.engines.chunks import Chunk, cut
from training.errors import BadInput
from training.learn import models
from training.learn.ranks import ALONE, DistContext
from training.learn.state_reader import StateReader
from training.learn.tensor_files import Outline, TensorFile, TensorWriter, outlines_of
from training.rundir import AttemptDir
from training.store import MANIFEST, atomic_directory, looks_complete, verify_directory, write_json

if TYPE_CHECKING:
    from peft import PeftModel
    from torch import Tensor
    from torch.optim import Optimizer
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

log = logging.getLogger(__name__)
OLDER = "older_{:06d}.safetensors"
"""The file of the weights after an earlier step."""


@dataclass(frozen=True, slots=True)
class TrainerState:
    """The state that a trainer needs, besides the model, to resume exactly.

    `older` are earlier versions of the merged weights, which are still to sample games, by the step after which they
    were: each call returns their chunks again.
    """

    step: int
    data: dict[str, Any] = field(default_factory=dict)
    tensors: Mapping[str, Tensor] = field(default_factory=dict)
    older: Mapping[int, Callable[[], Iterable[Chunk]]] = field(default_factory=dict)


def write(
    folder: Path,
    model: PreTrainedModel | PeftModel,
    tokenizer: PreTrainedTokenizerBase,
    info: ModelInfo,
    state: TrainerState,
    *,
    adapter_only: bool = False,
    beat: Callable[[], None] | None = None,
) -> None:
    """Write the checkpoint `folder` atomically; do nothing if it is complete already."""

    def save(inside: Path) -> None:
        models.save(model, tokenizer, inside, info, adapter_only=adapter_only, beat=beat)

    write_with(folder, save, state, beat=beat)


def write_with(
    folder: Path,
    save: Callable[[Path], None],
    state: TrainerState,
    outlines: Mapping[str, Outline] | None = None,
    chunks: Iterable[Chunk] = (),
    beat: Callable[[], None] | None = None,
) -> None:
    """Write the checkpoint `folder` atomically, its model by `save`; do nothing if it is complete already.

    `outlines` are those of further tensors of the state, which arrive in `chunks`. `beat` is called after every chunk
    of the state.
    """
    if _complete(folder):
        return
    with atomic_directory(folder) as inside:
        save(inside)
        (inside / STATE).mkdir()
        _write_tensors(inside / STATE / "state.safetensors", state.tensors, outlines or {}, chunks, beat)
        for step, weights in state.older.items():
            _write_tensors(inside / STATE / OLDER.format(step), {}, outlines_of(weights()), weights(), beat)
        write_json(inside / STATE / "state.json", {"version": 1, "step": state.step, "data": state.data})


def _write_tensors(
    path: Path,
    tensors: Mapping[str, Tensor],
    outlines: Mapping[str, Outline],
    chunks: Iterable[Chunk],
    beat: Callable[[], None] | None,
) -> None:
    """Write a file of tensors that are here, and of others that arrive in chunks."""
    with TensorWriter(beat) as writer:
        writer.add(path, {name: Outline.of(tensor) for name, tensor in tensors.items()} | dict(outlines))
        writer.write(cut(tensors.items()))
        writer.write(chunks)


def read(folder: Path, group: DistContext = ALONE) -> TrainerState:
    """Return the trainer's state of a complete checkpoint; its tensors are read when they are asked for.

    Several ranks, `group`, call this at once: the first compares the hashes, and what one raises is raised by all.
    """
    with group.together():
        if group.first:
            verify_directory(folder)
        elif not looks_complete(folder):
            raise BadInput("the checkpoint is not on this machine, or is incomplete", str(folder))
        manifest = json.loads((folder / MANIFEST).read_text("utf-8"))
        if f"{STATE}/state.json" not in manifest["files"]:
            raise BadInput("the folder holds a model, but no trainer state to resume from", str(folder))
        data = json.loads((folder / STATE / "state.json").read_text("utf-8"))
        tensors = TensorFile(folder / STATE / "state.safetensors")
    return TrainerState(step=data["step"], data=data["data"], tensors=tensors)


def older(folder: Path) -> dict[int, Path]:
    """Return the files of weights after earlier steps that a checkpoint has, by step."""
    files = (folder / STATE).glob(OLDER.replace("{:06d}", "*"))
    return {int(file.stem.removeprefix("older_")): file for file in files}


def prune(attempt: AttemptDir, keep: int, protected: Collection[int] = ()) -> None:
    """Delete an attempt's complete checkpoints except the newest `keep` and those of the `protected` steps.

    What cannot be deleted is reported in the log and tried again the next time: on NFS a folder stays while another
    process, such as one that uploads it, reads a file in it.
    """
    for folder in [folder for step, folder in attempt.checkpoints()[:-keep] if step not in protected]:
        (folder / MANIFEST).unlink()  # first: an interrupted deletion must not leave a complete checkpoint
    for folder in attempt.checkpoint(0).parent.glob("step_*"):
        if not (folder / MANIFEST).exists():
            shutil.rmtree(folder, ignore_errors=True)
            if folder.exists():
                log.warning("%s could not be deleted as a whole; it is tried again after the next checkpoint", folder)


def _complete(folder: Path) -> bool:
    try:
        verify_directory(folder)
    except (BadInput, ValueError, KeyError):
        return False
    return True


def pack_optimizer(optimizer: Optimizer, name: str = "optimizer") -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return an optimizer's state as (JSON data, tensors); `name` is the prefix of the tensors' names."""
    state = optimizer.state_dict()
    data: dict[str, Any] = {"groups": state["param_groups"], "numbers": {}}
    tensors = {}
    for index, entries in state["state"].items():
        for entry, value in entries.items():
            if isinstance(value, torch.Tensor):
                tensors[f"{name}.{index}.{entry}"] = value
            else:
                data["numbers"].setdefault(str(index), {})[entry] = value
    return data, tensors


def unpack_optimizer(
    optimizer: Optimizer,
    data: Mapping[str, Any],
    tensors: Mapping[str, Tensor],
    name: str = "optimizer",
    group: DistContext = ALONE,
    beat: Callable[[], None] | None = None,
) -> None:
    """Restore the state of `pack_optimizer`; the optimizer must have the same parameter groups.

    Of several ranks, `group`, each reads the rows of its shards, and calls `beat` after each tensor. A second group of
    parameters, which earlier checkpoints have for the value heads, is ignored.
    """
    groups = list(data["groups"])[: len(optimizer.param_groups)]
    sizes = [[len(each["params"]) for each in part] for part in (groups, optimizer.param_groups)]
    if sizes[0] != sizes[1]:
        why = f"{sizes[0]} parameters by group, not {sizes[1]}"
        raise BadInput(f"the checkpoint's optimizer does not fit this configuration: {why}", "learn")
    parameters = dict(
        zip(
            (index for each in groups for index in each["params"]),
            (parameter for each in optimizer.param_groups for parameter in each["params"]),
            strict=True,
        )
    )
    state = {int(index): dict(entries) for index, entries in data["numbers"].items() if int(index) in parameters}
    reader = StateReader(tensors, group, beat)
    for tensor_name in tensors:
        kind, _, rest = tensor_name.partition(".")
        index, _, entry = rest.partition(".")
        if kind == name and int(index) in parameters:
            state.setdefault(int(index), {})[entry] = reader.read_like(tensor_name, parameters[int(index)])
    optimizer.load_state_dict({"state": state, "param_groups": groups})


def seed_generators(seed: int) -> None:
    """Seed Python's, NumPy's and torch's global generators."""
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002  (libraries draw from it)
    torch.manual_seed(seed)


def pack_generators() -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return the states of Python's, NumPy's and torch's global generators as (JSON data, tensors)."""
    version, numbers, gauss = random.getstate()
    name, keys, position, has_gauss, cached = np.random.get_state(legacy=True)  # noqa: NPY002  (libraries draw from it)
    data = {"python": [version, list(numbers), gauss], "numpy": [str(name), int(position), int(has_gauss), cached]}
    tensors = {
        "generator.torch": torch.get_rng_state(),
        "generator.numpy": torch.from_numpy(np.asarray(keys).astype(np.int64)),
    }
    if torch.cuda.is_available():
        for device, state in enumerate(torch.cuda.get_rng_state_all()):
            tensors[f"generator.cuda.{device}"] = state
    return data, tensors


def unpack_generators(data: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
    """Restore the states of `pack_generators`."""
    version, numbers, gauss = data["python"]
    random.setstate((version, tuple(numbers), gauss))
    name, position, has_gauss, cached = data["numpy"]
    keys = tensors["generator.numpy"].numpy().astype(np.uint32)
    np.random.set_state((name, keys, position, has_gauss, cached))  # noqa: NPY002  (as above)
    torch.set_rng_state(tensors["generator.torch"])
    devices = [tensors[name] for name in sorted(tensors) if name.startswith("generator.cuda.")]
    if devices and torch.cuda.device_count() == len(devices):
        torch.cuda.set_rng_state_all(devices)
