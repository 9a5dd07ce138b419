"""New weights for an engine in another process: as runs send them, beside vLLM's own interface for them.

Both sides send the same weights, in float32, to a vLLM engine on a core of its own, which then samples with them. Runs
cut them into chunks, which the engine reads from Ray's store. vLLM's interface broadcasts one tensor after another
(`bench.gloo_transfer`; its own backends need GPUs). The engine loads them by the same functions of vLLM.
"""

from __future__ import annotations

import asyncio
import os
import socket
from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bench.alternate import Reading, alternate
from bench.clock import now
from bench.recorded_conversations import conditions
from bench.several_engines import line
from training import bases
from training.cluster import processes
from training.cluster.supervisor import ProcessOptions
from training.engines.base import SampleRequest, Sampling
from training.engines.pool import EnginePool

if TYPE_CHECKING:
    from transformers import PreTrainedModel

__all__ = ["line", "measure"]

CORE = 1
"""Of the engines; the sender is not kept from it, but has the other one free."""
PROMPT, REPLY = range(10, 42), 16
OPTIONS: dict[str, Any] = {"window": 256, "max_running": 4, "cache_gib": 0.25}


def measure(arguments: Namespace) -> dict[str, Any]:
    """Return the comparison."""
    folder = str(bases.resolve(arguments.model))
    model = changed(folder)
    size = sum(parameter.nbytes for parameter in model.parameters())
    with processes.start(gpus=0):
        ours, theirs = Ours(folder, model), Theirs(folder, model)
        compared = alternate(lambda: ours.send(size), lambda: theirs.send(size), arguments.rounds)
        replies = [ours.reply(), theirs.reply()]
        ours.close()
    if replies[0] != replies[1]:
        raise RuntimeError(f"the engines have other weights: {replies}")
    return {
        "unit": "MB per second",
        "sides": {"a": "chunks in Ray's store", "b": "vLLM's interface with a gloo backend, tensor by tensor"},
        **compared,
        "bytes": size,
        "seed": arguments.seed,
        "conditions": conditions(arguments, 1),
    }


def changed(folder: str) -> PreTrainedModel:
    """Return a model whose layers are in another order, so that an engine with the old weights replies otherwise."""
    import torch

    from training.engines.local.loading import load_merged

    torch.set_num_threads(1)
    model = load_merged(folder, "float32")
    first, *_, last = model.base_model.layers
    weights = [{name: tensor.clone() for name, tensor in layer.state_dict().items()} for layer in (first, last)]
    for layer, other in zip((last, first), weights, strict=True):
        layer.load_state_dict(other)
    return model


class Ours:
    """A pool with one engine, as in a run; the sender is this process."""

    def __init__(self, folder: str, model: PreTrainedModel) -> None:
        self._model = model
        self._loop = asyncio.new_event_loop()
        self._pool = EnginePool("vllm", folder, ProcessOptions(threads=1, cores=((CORE,),)), **OPTIONS)

    def send(self, size: int) -> Reading:
        """Send all weights."""
        began = now()
        self._loop.run_until_complete(self._pool.load_weights(self._model.named_parameters()))
        return Reading(size / 1e6 / (now() - began))

    def reply(self) -> list[int]:
        """Return the tokens of a reply, the likeliest each."""
        request = SampleRequest(list(PROMPT), Sampling(max_tokens=REPLY, temperature=1.0, top_k=1), seed=0)
        return list(self._loop.run_until_complete(self._pool.sample(request)).tokens)

    def close(self) -> None:
        """End the engine."""
        self._loop.run_until_complete(self._pool.close())
        self._loop.close()


class Theirs:
    """An engine that gets weights by vLLM's interface from this process."""

    def __init__(self, folder: str, model: PreTrainedModel) -> None:
        import ray
        from vllm.distributed.weight_transfer.base import ModuleSource
        from vllm.distributed.weight_transfer.clients import RayVLLMWeightSyncClient
        from vllm.distributed.weight_transfer.factory import WeightTransferTrainerFactory

        from bench.gloo_transfer import TrainerMeeting

        kind: Any = ray.remote(VllmActor)
        self._ray, self._actor = ray, kind.options(num_cpus=0).remote(folder)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        client = RayVLLMWeightSyncClient(self._actor)
        self._sender = WeightTransferTrainerFactory.trainer_init(
            TrainerMeeting(port, rank=0), client=client, source=ModuleSource(model)
        )

    def send(self, size: int) -> Reading:
        """Send all weights."""
        began = now()
        self._sender.send_weights()
        return Reading(size / 1e6 / (now() - began))

    def reply(self) -> list[int]:
        """Return the tokens of the same reply."""
        tokens: list[int] = self._ray.get(self._actor.reply.remote(list(PROMPT), REPLY))
        return tokens


class VllmActor:
    """vLLM in a process of its own, with the methods that its client for Ray calls."""

    def __init__(self, folder: str) -> None:
        from training.engines.local.vllm import LOOPBACK, SETTINGS

        os.sched_setaffinity(0, {CORE})
        os.environ.update({**SETTINGS, **LOOPBACK, "OMP_NUM_THREADS": "1"})
        import torch
        from vllm import LLM
        from vllm.config import WeightTransferConfig

        from bench import gloo_transfer

        torch.set_num_threads(1)
        self._llm = LLM(
            folder,
            dtype="float32",
            enforce_eager=True,
            max_model_len=OPTIONS["window"],
            max_num_seqs=OPTIONS["max_running"],
            kv_cache_memory_bytes=int(OPTIONS["cache_gib"] * 2**30),
            weight_transfer_config=WeightTransferConfig(backend=gloo_transfer.NAME),
        )

    def init_weight_transfer_engine(self, request: Any) -> None:
        """See vLLM's `EngineClient`."""
        self._llm.collective_rpc("init_weight_transfer_engine", args=(request.init_info,))

    def start_weight_update(self) -> None:
        """See vLLM's `EngineClient`."""
        self._llm.collective_rpc("start_weight_update")

    def update_weights(self, request: Any) -> None:
        """See vLLM's `EngineClient`."""
        self._llm.collective_rpc("update_weights", args=(request.update_info,))

    def finish_weight_update(self) -> None:
        """See vLLM's `EngineClient`."""
        self._llm.collective_rpc("finish_weight_update")
        self._llm.reset_prefix_cache()

    def reply(self, prompt: Sequence[int], count: int) -> list[int]:
        """Return the likeliest reply."""
        from vllm import SamplingParams, TokensPrompt

        sampling = SamplingParams(max_tokens=count, temperature=0.0, ignore_eos=True)
        [output] = self._llm.generate([TokensPrompt(prompt_token_ids=list(prompt))], sampling, use_tqdm=False)
        return list(output.outputs[0].token_ids)
