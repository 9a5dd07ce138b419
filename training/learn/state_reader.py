"""The tensors of a checkpoint's state on their way into memory: each rank reads the rows of its shards, no more.

Ranks on machines without the file get their rows from the first rank that has it. `BadInput`: no rank has it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import torch
from torch.distributed.tensor import DTensor

from training.errors import BadInput
from training.learn.ranks import ALONE, DistContext
from training.learn.tensor_files import Outline, TensorFile

if TYPE_CHECKING:
    from torch import Tensor


class StateReader:
    """Reads tensors by name. Of several ranks, each calls the same methods for the same names in the same order.

    `tensors` are those of a file, or of a mapping that every rank has in memory. `beat` is called after each tensor.
    """

    def __init__(
        self, tensors: Mapping[str, Tensor], group: DistContext = ALONE, beat: Callable[[], None] | None = None
    ) -> None:
        self._tensors, self._group, self._beat = tensors, group, beat
        self._here = not isinstance(tensors, TensorFile) or tensors.path.is_file()
        if not any(group.gather(self._here)):
            assert isinstance(tensors, TensorFile)
            why = "no learner rank can read it: nodes need the run directory at the same path as the driver's"
            raise BadInput(why, str(tensors.path))
        self._sender, self._receivers = group.senders(self._here)

    def outline(self, name: str) -> Outline | None:
        """Return the type and shape of a tensor; None if there is no such tensor."""
        if isinstance(self._tensors, TensorFile):
            return self._tensors.outlines.get(name)
        return Outline.of(self._tensors[name]) if name in self._tensors else None

    def fill(self, target: Tensor, name: str) -> None:
        """Copy a tensor, or this rank's rows of it where `target` is sharded, into `target`, which has its shape."""
        self._group.read(target, self._rows(name) if self._here else None, self._sender, self._receivers)
        if self._beat is not None:
            self._beat()

    def read_like(self, name: str, parameter: Tensor) -> Tensor:
        """Return a new tensor, sharded if the parameter that it belongs to is; numbers are whole on every rank.

        Raises `BadInput` where it has another shape than the parameter.
        """
        outline = self.outline(name)
        assert outline is not None
        if not outline.shape:
            target = torch.empty((), dtype=outline.dtype)
        elif outline.shape != tuple(parameter.shape):
            raise BadInput(f"the checkpoint does not fit this configuration: {name}", "learn")
        elif isinstance(parameter, DTensor):
            target = torch.zeros_like(parameter, dtype=outline.dtype).detach()
        else:
            target = torch.empty(outline.shape, dtype=outline.dtype, device=parameter.device)
        self.fill(target, name)
        return target

    def _rows(self, name: str) -> Callable[[slice], Tensor]:
        tensors = self._tensors
        if isinstance(tensors, TensorFile):
            return lambda rows: tensors.rows(name, rows)
        return lambda rows: tensors[name][rows] if tensors[name].dim() else tensors[name]
