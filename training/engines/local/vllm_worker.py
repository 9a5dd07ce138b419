"""What runs beside vLLM's model runner, in every worker of an engine: choices, observed sampling, scores, new weights.

vLLM adds `WorkerExtension` to the class of its workers, and `VllmCore` calls its methods by name. An engine on one GPU
has one worker, in its own process; the workers of a split model (`tensor_parallel`) are processes of their own, which
all do the same on their parts. Importing this module imports vLLM.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from vllm.config import set_current_vllm_config
from vllm.model_executor.model_loader.reload import finalize_layerwise_reload, initialize_layerwise_reload
from vllm.v1.outputs import LogprobsTensors
from vllm.v1.sample.logits_processor import AdapterLogitsProcessor

from training.cluster.worker import gpu_bytes
from training.engines.local.shared_tensors import SharedTensors
from training.engines.trie import Trie

if TYPE_CHECKING:
    from torch import Tensor
    from vllm import SamplingParams

CHOICES = "choices"
"""The name under which a request's choices travel through vLLM."""
PREFIX = "prefix"
"""The name under which the number of tokens that a score does not count travels through vLLM."""
POLL_S = 0.5
"""Seconds between two looks at whether the process of the engine is there."""
GRACE_S = 5.0
"""Seconds that vLLM has to end a worker by itself, when that process is gone."""
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 (where Linux shows its names)


class WorkerExtension:
    """Methods of vLLM's worker, which has `model_runner`, `rank` and `vllm_config`."""

    model_runner: Any
    rank: int
    vllm_config: Any

    def attach(self, engine: int) -> int:
        """Observe the sampler and the scores of prompts; return the process id. `engine` is that of the engine."""
        if os.getpid() != engine:
            _unlink_shared_memory()
            threading.Thread(target=_end_with, args=(engine,), name="end-with-engine", daemon=True).start()
        if self.rank == 0:  # what the others sample is the same, and not returned
            self.discarded_masses = DiscardedMasses(self.model_runner)
            observe_scores(self.model_runner)
        return os.getpid()

    def pop_discarded(self, names: list[str]) -> dict[str, list[float]]:
        """Return, and delete, the masses that top-k and top-p removed from requests with these names."""
        return self.discarded_masses.pop(names) if self.rank == 0 else {}

    def begin_weights(self) -> None:
        """Expect new weights of the whole model, in parts."""
        with set_current_vllm_config(self.vllm_config):
            initialize_layerwise_reload(self.model_runner.get_model())

    def take_weights(self, weights: Iterable[tuple[str, Tensor]] | SharedTensors) -> None:
        """Load whole tensors, by their names in Hugging Face's model; each worker takes its part of them."""
        tensors = weights.read() if isinstance(weights, SharedTensors) else weights
        with set_current_vllm_config(self.vllm_config):
            self.model_runner.get_model().load_weights(tensors)

    def end_weights(self) -> None:
        """Use the new weights."""
        runner, config = self.model_runner, self.vllm_config.model_config
        model = runner.get_model()
        with set_current_vllm_config(self.vllm_config):
            finalize_layerwise_reload(model, config)
        runner.reset_lora_state()
        runner.reset_encoder_cache()
        runner.reset_mm_cache()
        if config.hf_config.tie_word_embeddings:  # vLLM does not update the packed copy of such a head on CPU
            model.lm_head.quant_method.process_weights_after_loading(model.lm_head)

    def reserved_gpu_bytes(self) -> int:
        """Return the GPU memory that torch has taken in this process, in bytes."""
        return gpu_bytes()


class Choices(AdapterLogitsProcessor):
    """Excludes the tokens that continue no choice, before the temperature: what is left is renormalised by vLLM.

    vLLM's own structured output does not fit: it allows every tokenization of a choice, and does not report which
    tokens were allowed, which the trainer must know.
    """

    def is_argmax_invariant(self) -> bool:
        """Greedy requests have choices, too."""
        return False

    def new_req_logits_processor(self, params: SamplingParams) -> Any:
        """Return the restriction of a request's logits, None for one without choices."""
        choices = (params.extra_args or {}).get(CHOICES)
        return partial(_restricted, Trie(choices)) if choices else None


def _restricted(trie: Trie, sampled: list[int], logits: Tensor) -> Tensor:
    """Return the logits (V,) with -inf outside the tokens that may follow `sampled`.

    A reply may be computed one token beyond its end, which vLLM drops.
    """
    allowed = trie.allowed(sampled)
    if not allowed:
        return logits
    restricted = torch.full_like(logits, -torch.inf)
    restricted[list(allowed)] = logits[list(allowed)]
    return restricted


class DiscardedMasses:
    """Computes log-probabilities before top-k and top-p, and records the probability mass that they remove per token.

    vLLM's own are renormalised over what is left. The sampler's `forward` is wrapped: what it returns beside the
    sampled tokens is replaced by log softmax(logits / T) over the whole vocabulary.
    """

    def __init__(self, runner: Any) -> None:
        self._runner = runner
        self._masses: dict[str, list[float]] = {}  # by vLLM's name of the request
        sampler = runner.sampler.topk_topp_sampler
        self._inner = sampler.forward
        sampler.forward = self._forward

    def pop(self, names: Iterable[str]) -> dict[str, list[float]]:
        """Return the masses of requests by name, and delete them."""
        wanted = set(names)
        ended = {internal: own_name(internal) for internal in self._masses if own_name(internal) in wanted}
        masses = {name: self._masses.pop(internal) for internal, name in ended.items()}
        # where steps overlap, a request that has ended may have been sampled once more since
        self._masses = {name: each for name, each in self._masses.items() if name in self._runner.requests}
        return masses

    def _forward(self, logits: Tensor, generators: Any, k: Tensor | None, p: Tensor | None) -> tuple[Tensor, Any]:
        if k is None and p is None:
            result: tuple[Tensor, Any] = self._inner(logits, generators, k, p)
            return result
        whole = logits.log_softmax(dim=-1, dtype=torch.float32)
        sampled, filtered = self._inner(logits, generators, k, p)
        kept_mass = (whole - filtered).gather(1, sampled.long().view(-1, 1)).exp().view(-1).tolist()
        batch = self._runner.input_batch
        for internal, mass in zip(batch.req_ids, kept_mass, strict=True):
            if internal in batch.top_k_reqs or internal in batch.top_p_reqs:
                self._masses.setdefault(internal, []).append(max(0.0, 1.0 - mass))
        return sampled, whole


def observe_scores(runner: Any) -> None:
    """Drop the log-probabilities of the tokens that a score does not count, some of which were not computed.

    See `vllm_core._limit_lookups`.
    """
    compute = runner._get_prompt_logprobs_dict  # noqa: SLF001 (nothing else computes them)

    def counted(*args: Any) -> dict[str, LogprobsTensors]:
        tables = compute(*args)  # row i has the log-probability of token i + 1
        prefixes = {name: runner.requests[name].sampling_params.extra_args[PREFIX] for name in tables}
        return {
            name: LogprobsTensors(*(part[prefixes[name] - 1 :] for part in table[:3])) for name, table in tables.items()
        }

    runner._get_prompt_logprobs_dict = counted  # noqa: SLF001


def _unlink_shared_memory() -> None:
    """Remove the names of the memory by which workers on CPU exchange tensors; all have mapped it when one is called.

    vLLM would leave it behind when they are killed.
    """
    for file in SHARED_MEMORY.glob(f"{os.environ.get('VLLM_DIST_IDENT', 'none')}-*-cpushm_*"):
        file.unlink(missing_ok=True)


def _end_with(parent: int) -> None:
    """End this process some seconds after its parent, if it hangs: a worker waits without end for one that is gone."""
    while os.getppid() == parent:
        time.sleep(POLL_S)
    time.sleep(GRACE_S)
    os._exit(1)


def own_name(internal: str) -> str:
    """Return our name of a request: vLLM's internal one is ours, a dash and eight characters."""
    return internal.rpartition("-")[0]
