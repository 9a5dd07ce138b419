"""A backend of vLLM's interface for new weights, for machines without a GPU: tensors are broadcast over gloo.

It does what vLLM's backend `nccl` does with tensors that are not packed. Importing this registers it as `gloo`, on the
side of the trainer and on that of the engine. It is what `bench.transfer` compares runs with; no run uses it.
"""

# mypy: disallow-subclassing-any=False
from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

import torch
from torch import Tensor
from torch.distributed import BroadcastOptions, ProcessGroup
from vllm.distributed.utils import stateless_init_torch_distributed_process_group as join
from vllm.distributed.weight_transfer.base import (
    TrainerInitInfo,
    TrainerWeightTransferEngine,
    VLLMWeightSyncClient,
    WeightSource,
    WeightTransferEngine,
    WeightTransferInitInfo,
    WeightTransferUpdateInfo,
)
from vllm.distributed.weight_transfer.factory import WeightTransferEngineFactory, WeightTransferTrainerFactory
from vllm.model_executor.model_loader.reload import finalize_layerwise_reload, initialize_layerwise_reload

NAME = "gloo"


@dataclass
class Meeting(WeightTransferInitInfo):
    """Where the trainer, rank 0, and the engine, rank 1, meet on this machine."""

    port: int


@dataclass
class TrainerMeeting(TrainerInitInfo):
    """The trainer's side of `Meeting`."""

    backend: ClassVar[str] = NAME
    port: int


@dataclass
class Announced(WeightTransferUpdateInfo):
    """The tensors that follow."""

    names: list[str]
    dtypes: list[str]
    shapes: list[list[int]]


class Receiver(WeightTransferEngine[Meeting, Announced]):
    """The engine's side."""

    init_info_cls, update_info_cls = Meeting, Announced
    _group: ProcessGroup

    def init_transfer_engine(self, init_info: Meeting) -> None:
        """Meet the trainer."""
        self._group = _joined(1, init_info.port)

    def start_weight_update(self) -> None:
        """Expect the weights of the whole model."""
        initialize_layerwise_reload(self.model)

    def update_weights(self, update_info: dict[str, Any]) -> None:
        """Receive and load tensors; vLLM's own would wait for an accelerator."""
        self.receive_weights(self.parse_update_info(update_info))

    def receive_weights(self, update_info: Announced) -> None:
        """Receive and load tensors."""
        for name, dtype, shape in zip(update_info.names, update_info.dtypes, update_info.shapes, strict=True):
            tensor = torch.empty(shape, dtype=getattr(torch, dtype))
            _broadcast(self._group, tensor)
            self.model.load_weights([(name, tensor)])

    def finish_weight_update(self) -> None:
        """Use the weights; a tied head has a packed copy on CPU, which vLLM leaves as it was."""
        finalize_layerwise_reload(self.model, self.model_config)
        if self.model_config.hf_config.tie_word_embeddings:
            self.model.lm_head.quant_method.process_weights_after_loading(self.model.lm_head)

    def shutdown(self) -> None:
        """Leave the trainer."""
        del self._group


class Sender(TrainerWeightTransferEngine[TrainerMeeting]):
    """The trainer's side."""

    init_info_cls = TrainerMeeting
    _group: ProcessGroup

    @classmethod
    def trainer_init(
        cls, init_info: TrainerMeeting, *, client: VLLMWeightSyncClient, source: WeightSource | None = None
    ) -> Self:
        """Meet the engine."""
        made = cls(client=client, source=source)
        with ThreadPoolExecutor(1) as beside:
            meeting = beside.submit(client.init_weight_transfer_engine, asdict(Meeting(init_info.port)))
            made._group = _joined(0, init_info.port)
            meeting.result()
        return made

    def send_weights(self) -> None:
        """Send all weights of the source."""
        assert self.source is not None
        metadata = self.source.metadata()
        announced = Announced(
            [each.name for each in metadata],
            [str(each.dtype).removeprefix("torch.") for each in metadata],
            [list(each.shape) for each in metadata],
        )
        self.client.start_weight_update()
        with ThreadPoolExecutor(1) as beside:
            received = beside.submit(self.client.update_weights, asdict(announced))
            for _, tensor in self.source:
                _broadcast(self._group, tensor)
            received.result()
        self.client.finish_weight_update()


def _joined(rank: int, port: int) -> ProcessGroup:
    group: ProcessGroup = join("127.0.0.1", port, rank, 2, "gloo")
    return group


def _broadcast(group: ProcessGroup, tensor: Tensor) -> None:
    group.broadcast([tensor.detach().contiguous()], BroadcastOptions()).wait()


WeightTransferEngineFactory.register_engine(NAME, Receiver)
WeightTransferTrainerFactory.register_engine(NAME, Sender)
