"""The learner's ranks: processes that each hold a shard of the weights and read a part of every step.

Weights, gradients and optimizer state are sharded by FSDP2 (`torch.distributed.fsdp.fully_shard`), over NCCL on GPUs
and gloo on CPUs. All ranks get the same items and cut them into the same micro-batches, of which rank r takes r,
r + world and so on. What a rank sums over its micro-batches is summed over the ranks, so that one rank and many compute
the same update. A single process is `ALONE`, which shards nothing and has nobody to sum with.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from types import MethodType
from typing import TYPE_CHECKING, Any, TypeVar

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard, register_fsdp_forward_method
from torch.distributed.tensor import DTensor, Shard

from training.errors import BadInput, OutsideError, ParleyError, boundary

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

T = TypeVar("T")
TIMEOUT_S = 600.0
"""Longest wait for another rank, in one collective call."""
READ = "last_hidden_state"
"""The method of a sharded model that `hidden_states` calls: its weights are gathered while it runs."""


class DistContext:
    """This process among the learner's ranks. `rank` counts from 0 to `world` - 1."""

    def __init__(self, rank: int = 0, world: int = 1, mesh: DeviceMesh | None = None) -> None:
        self.rank, self.world, self._mesh = rank, world, mesh

    @property
    def first(self) -> bool:
        """Whether this rank is the one that reports what all ranks know alike."""
        return self.rank == 0

    @property
    def many(self) -> bool:
        """Whether there are other ranks."""
        return self.world > 1

    def close(self) -> None:
        """Leave the process group; does nothing alone."""
        if self._mesh is not None and dist.is_initialized():
            dist.destroy_process_group()

    # --- work ---

    def deal(self, batches: Sequence[T]) -> list[tuple[T, bool]]:
        """Return this rank's micro-batches, as many as every other rank's: (micro-batch, whether it counts).

        Each gathers weights from all ranks, so a rank without work of its own computes the last one, which does not
        count, so that the collectives match.
        """
        rounds = -(-len(batches) // self.world)
        mine = [number * self.world + self.rank for number in range(rounds)]
        return [(batches[min(place, len(batches) - 1)], place < len(batches)) for place in mine]

    # --- agreement and sums ---

    @contextmanager
    def together(self) -> Iterator[None]:
        """Let a `ParleyError` of one rank be raised by all, at the end of the block.

        No collective call may follow in the block where it is raised: the other ranks would wait in it.
        """
        failure: ParleyError | None = None
        try:
            yield
        except ParleyError as error:
            failure = error
        if self.many and self._any(failure is not None):
            failures = self.gather(None if failure is None else _described(failure))
            rank, described = next((rank, each) for rank, each in enumerate(failures) if each is not None)
            failure = failure if rank == self.rank else _raised(described)
        if failure is not None:
            raise failure

    def _any(self, here: bool) -> bool:
        flag = torch.tensor(int(here))
        dist.all_reduce(flag, op=dist.ReduceOp.MAX)
        return bool(flag)

    def sum(self, tensor: Tensor) -> Tensor:
        """Return the sum over all ranks, in place."""
        if self.many:
            dist.all_reduce(tensor)
        return tensor

    def count(self, number: int) -> int:
        """Return the sum of a number over all ranks."""
        return int(self.sum(torch.tensor(number)))

    def gather(self, value: T) -> list[T]:
        """Return what every rank has, in order, on every rank.

        It must be JSON, since ranks do not know who sends them something: a pickle could run code.
        """
        if not self.many:
            return [value]
        data = json.dumps(value).encode()
        sizes = [torch.zeros(1, dtype=torch.int64) for _ in range(self.world)]
        dist.all_gather(sizes, torch.tensor([len(data)]))
        padded = torch.zeros(max(map(int, sizes)), dtype=torch.uint8)
        padded[: len(data)] = torch.frombuffer(bytearray(data), dtype=torch.uint8)
        parts = [torch.empty_like(padded) for _ in sizes]
        dist.all_gather(parts, padded)
        return [json.loads(part[: int(size)].numpy().tobytes()) for part, size in zip(parts, sizes, strict=True)]

    def broadcast(self, data: bytes, sender: int) -> bytes:
        """Return the bytes that the rank `sender` has on every rank; what the others have is ignored."""
        if not self.many:
            return data
        size = torch.tensor([len(data)])
        dist.broadcast(size, sender)
        if not int(size):
            return b""
        sends = self.rank == sender
        buffer = (
            torch.frombuffer(bytearray(data), dtype=torch.uint8) if sends else torch.empty(int(size), dtype=torch.uint8)
        )
        dist.broadcast(buffer, sender)
        return buffer.numpy().tobytes()

    def totals(self, parts: Mapping[str, float], largest: Sequence[str] = ()) -> dict[str, float]:
        """Return the sums by name over all ranks; of the names in `largest` the largest number."""
        joined: dict[str, float] = {}
        for each in self.gather(dict(parts)):
            for name, number in each.items():
                if name not in joined:
                    joined[name] = number
                else:
                    joined[name] = max(joined[name], number) if name in largest else joined[name] + number
        return joined

    # --- weights ---

    def shard(self, model: PreTrainedModel, *, bfloat16: bool = False) -> None:
        """Shard a model's weights over the ranks, layer by layer; nothing alone. `bfloat16`: gathered in it."""
        if self._mesh is None:
            return
        policy = MixedPrecisionPolicy(*((torch.bfloat16, torch.float32) if bfloat16 else ()))
        backbone: Any = model.base_model
        for layer in backbone.layers:
            fully_shard(layer, mesh=self._mesh, mp_policy=policy)
        fully_shard(model, mesh=self._mesh, mp_policy=policy)
        setattr(model, READ, MethodType(_last_hidden_state, model))
        register_fsdp_forward_method(model, READ)

    def senders(self, here: bool) -> tuple[int, tuple[int, ...]]:
        """Return the first rank that has something, and the ranks that do not have it."""
        everywhere = self.gather(here)
        return everywhere.index(True), tuple(rank for rank, each in enumerate(everywhere) if not each)

    @torch.no_grad()
    def read(
        self,
        target: Tensor,
        source: Callable[[slice], Tensor] | None,
        sender: int = 0,
        receivers: Sequence[int] = (),
    ) -> None:
        """Copy what `source` returns for this rank's rows into `target`; all ranks do so for the same tensors in order.

        The rank `sender` reads for the `receivers` too, whose `source` is None.
        """
        shard, rows = local_rows(target, self.rank)
        if source is not None and shard.numel():
            shard.copy_(source(rows))
        if self.rank == sender and source is not None:
            for rank in receivers:
                dist.send(source(local_rows(target, rank)[1]).to(target.dtype).cpu().contiguous(), rank)
        elif self.rank in receivers:
            arrived = torch.empty(shard.shape, dtype=shard.dtype)
            dist.recv(arrived, sender)
            shard.copy_(arrived)


ALONE = DistContext()


def _described(error: ParleyError) -> dict[str, str]:
    """An error as JSON."""
    fields = {"why": error.why, "where": error.where} if isinstance(error, BadInput) else {"why": str(error)}
    return {"kind": type(error).__name__, **fields}


def _raised(described: Mapping[str, str]) -> ParleyError:
    """The error that another rank described; of a kind that this one does not know, an `OutsideError`."""
    kinds: list[type[ParleyError]] = [ParleyError]
    for kind in kinds:  # which grows
        kinds += kind.__subclasses__()
    known = next((kind for kind in kinds if kind.__name__ == described["kind"]), OutsideError)
    return known(*(described[name] for name in ("why", "where") if name in described))


def _last_hidden_state(model: PreTrainedModel, **inputs: Any) -> Tensor:
    states: Tensor = model.base_model(use_cache=False, **inputs).last_hidden_state
    return states


def hidden_states(model: PreTrainedModel, **inputs: Any) -> Tensor:
    """Return the last hidden states of a model, sharded or not.

    The head and the embeddings of a sharded model stay gathered until the backward pass, or `release`.
    """
    read = getattr(model, READ, None)
    states: Tensor = _last_hidden_state(model, **inputs) if read is None else read(**inputs)
    return states


def release(model: PreTrainedModel) -> None:
    """Drop what is gathered of a sharded model, so that its parameters are the shards again."""
    if isinstance(model, FSDPModule):
        model.reshard()


def whole(tensor: Tensor) -> Tensor:
    """Return a tensor, gathered from all ranks if it is sharded: then every rank must call this."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def local_rows(tensor: Tensor, rank: int | None = None) -> tuple[Tensor, slice]:
    """Return this rank's part of a tensor, and which rows it is, or another rank's rows.

    A tensor that is not sharded is whole on every rank. Rows are dealt in equal parts; the last ranks have fewer.
    """
    if not isinstance(tensor, DTensor):
        return tensor, slice(None)
    (placement,) = tensor.placements
    assert placement == Shard(0), "FSDP shards rows"
    size = -(-tensor.shape[0] // tensor.device_mesh.size())
    first = size * (tensor.device_mesh.get_local_rank() if rank is None else rank)
    return tensor.to_local(), slice(first, first + size)


def join(
    rank: int,
    world: int,
    address: str,
    device: str,
    timeout_s: float = TIMEOUT_S,
    listener: socket.socket | None = None,
) -> DistContext:
    """Return this process's rank after all `world` ranks have met at `address`; raise `OutsideError` if they do not.

    It is HOST:PORT, where the `listener` of rank 0 listens, which is taken over, or a file that does not exist yet,
    where ranks on one machine meet: these use the loopback interface alone.
    """
    backend = "cpu:gloo,cuda:nccl" if device.startswith("cuda") else "gloo"
    limit = timedelta(seconds=timeout_s)
    file = address.startswith("/")
    if file:
        for library in ("GLOO", "NCCL"):
            os.environ.setdefault(f"{library}_SOCKET_IFNAME", "lo")
    with boundary(into=OutsideError):
        if file:
            dist.init_process_group(backend, f"file://{address}", timeout=limit, rank=rank, world_size=world)
        else:
            host, _, port = address.rpartition(":")
            taken = None if listener is None else listener.detach()
            store = dist.TCPStore(  # type: ignore[attr-defined]  # documented, but not in torch's list of exports
                host.strip("[]"), int(port), world, rank == 0, limit, master_listen_fd=taken
            )
            dist.init_process_group(backend, store=store, timeout=limit, rank=rank, world_size=world)
        return DistContext(rank, world, init_device_mesh(device.partition(":")[0], (world,)))
