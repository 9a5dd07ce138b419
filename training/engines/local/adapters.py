"""LoRA adapters by name beside one model: each row of a batch has its own, or none.

Only plain LoRA on linear layers is served like this (`lora_rank`); an adapter of any other kind is merged into a copy
of the model. Importing this imports torch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import safe_open
from torch import nn

from training.engines.adapters import check_lora
from training.errors import BadInput

if TYPE_CHECKING:
    from torch import Tensor

START = "base_model.model."
"""What PEFT puts before the names of a model's parameters."""


@dataclass(frozen=True, slots=True)
class _Pair:
    """The factors of one layer's adapter; what it adds to the layer's output is `up(down(x))`."""

    down: Tensor
    up: Tensor


class Adapters:
    """The adapters of one model, which stays as it is; `rows` says which of them the rows of the next batch have."""

    def __init__(self, model: nn.Module) -> None:
        self._pairs: dict[str, dict[str, _Pair]] = {}  # by layer and adapter
        self._rows: dict[str, Tensor] | str = ""
        self._layers = {name: module for name, module in model.named_modules() if isinstance(module, nn.Linear)}
        for name, layer in self._layers.items():
            layer.register_forward_hook(partial(self._add, name))

    def load(self, adapters: Mapping[str, Path]) -> None:
        """Have these adapters and no others; raise `BadInput` for one that is no plain LoRA of this model."""
        loaded: dict[str, dict[str, _Pair]] = {}
        for name, folder in adapters.items():
            for layer, pair in self._read(folder):
                loaded.setdefault(layer, {})[name] = pair
        self._pairs = loaded

    @contextmanager
    def rows(self, names: Sequence[str]) -> Iterator[None]:
        """Let the rows of a batch have these adapters; an empty name is the model itself."""
        different = dict.fromkeys(names)
        if len(different) == 1:
            self._rows = names[0]
        else:
            self._rows = {
                name: torch.tensor([at for at, each in enumerate(names) if each == name]) for name in different if name
            }
        try:
            yield
        finally:
            self._rows = ""

    def _add(self, layer: str, module: nn.Linear, inputs: tuple[Any, ...], output: Tensor) -> Tensor:
        pairs, rows = self._pairs.get(layer), self._rows
        if not rows or not pairs:
            return output
        (states,) = inputs
        if isinstance(rows, str):
            pair = pairs.get(rows)
            return output if pair is None else output + (states @ pair.down) @ pair.up
        for name, at in rows.items():
            if (pair := pairs.get(name)) is not None:
                here = at.to(output.device)
                output = output.index_add(0, here, (states[here] @ pair.down) @ pair.up)
        return output

    def _read(self, folder: Path) -> Iterator[tuple[str, _Pair]]:
        lora = check_lora(folder)
        with safe_open(folder / "adapter_model.safetensors", framework="pt") as tensors:
            names = set(tensors.keys())
            for name in sorted(names):
                layer, _, part = name.removeprefix(START).partition(".lora_A")
                if not part:
                    continue
                if layer not in self._layers:
                    raise BadInput(f"{layer} is no layer of this model", str(folder))
                weight = self._layers[layer].weight
                down = tensors.get_tensor(name).to(weight)
                up = tensors.get_tensor(name.replace(".lora_A", ".lora_B")).to(weight) * lora.scale
                if down.shape[1] != weight.shape[1] or up.shape[0] != weight.shape[0]:
                    raise BadInput(f"the adapter of {layer} has other sizes than the layer", str(folder))
                yield layer, _Pair(down.t().contiguous(), up.t().contiguous())
