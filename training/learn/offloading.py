"""Activations in the memory of the machine between the forward and the backward pass, instead of on the GPU.

Each is copied to pinned memory on the stream of the forward pass, and back when the backward pass needs it: the copies
do not overlap with its kernels. Parameters, and copies of them in another number format, stay where they are.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks

if TYPE_CHECKING:
    from torch import Tensor

Packed = tuple[torch.device | None, "Tensor"]


class Offloaded(saved_tensors_hooks):
    """A context whose operations keep on the machine what has one of the `sizes`, in tokens, as a dimension."""

    def __init__(self, sizes: Collection[int]) -> None:
        super().__init__(lambda tensor: _pack(tensor, sizes), _unpack)


def _pack(tensor: Tensor, sizes: Collection[int]) -> Packed:
    if isinstance(tensor, nn.Parameter) or not any(size in sizes for size in tensor.shape):
        return None, tensor
    return tensor.device, to_host(tensor)


def _unpack(packed: Packed) -> Tensor:
    device, tensor = packed
    return tensor if device is None else tensor.to(device, non_blocking=True)


def to_host(tensor: Tensor) -> Tensor:
    """Return a copy in the memory of the machine; what is there already is not copied."""
    if tensor.device.type == "cpu":
        return tensor.detach()
    host = torch.empty_like(tensor, device="cpu", pin_memory=True)
    return host.copy_(tensor.detach())
