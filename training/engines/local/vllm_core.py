"""vLLM as an object with a `step` method: requests in, finished samples out, without threads or an event loop.

Importing this module imports vLLM, so the environment variables that vLLM reads must be set before.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from transformers import AutoConfig
from vllm import EngineArgs, SamplingParams, envs
from vllm.inputs.engine import tokens_input
from vllm.lora.request import LoRARequest
from vllm.sampling_params import RequestOutputKind
from vllm.v1.engine.llm_engine import LLMEngine

from training.bases import base_of, is_adapter, verified
from training.engines.base import Sample, SampleRequest, Weights
from training.engines.local.loading import folder_weights
from training.engines.local.shared_tensors import grouped, shared
from training.engines.local.vllm_worker import CHOICES, PREFIX, Choices, WorkerExtension
from training.errors import EngineError

if TYPE_CHECKING:
    from torch import Tensor


READ_TOKENS = 4096
"""Lower bound of the number of tokens in one step, over all requests."""

_ALIVE: set[VllmCore] = set()


class VllmCore:
    """One `LLMEngine`. `window` is the longest prompt + reply in tokens; `choices`: requests may have choices.

    `workers` are the ids of the processes that compute, where these are others than this one, and `gpu_bytes` the GPU
    memory that torch has taken in them.
    """

    def __init__(self, model: str | Path, window: int, options: dict[str, Any], *, choices: bool = False) -> None:
        folder = verified(model)
        full = base_of(folder)
        longest = int(AutoConfig.from_pretrained(full, local_files_only=True).max_position_embeddings)
        self.window = min(window or longest, longest)
        envs.disable_envs_cache()  # an engine before this one in the process was made with other variables
        with _process_left_alone():
            self._engine = LLMEngine.from_engine_args(
                EngineArgs(
                    model=str(full),
                    tokenizer=str(folder),
                    # of the sampling distribution: after the temperature (see DiscardedMasses for top-k and top-p)
                    logprobs_mode="processed_logprobs",
                    enable_prefix_caching=True,
                    disable_log_stats=True,
                    use_tqdm_on_load=False,
                    generation_config="vllm",
                    load_format="safetensors",
                    seed=0,
                    max_model_len=self.window,
                    max_num_batched_tokens=max(self.window, READ_TOKENS),
                    # only where it is needed: with one, every step waits for the tokens of the step before
                    logits_processors=[Choices] if choices else None,
                    worker_extension_cls=f"{WorkerExtension.__module__}.{WorkerExtension.__qualname__}",
                    **options,
                )
            )
        self._shapes = {name: tuple(tensor.shape) for name, tensor in folder_weights(full)}
        self._requests: dict[str, SampleRequest] = {}
        self._scored: set[str] = set()
        self._adapters: dict[str, LoRARequest] = {}
        self._version: int | None = None
        self._numbers = count(1)
        self.workers = tuple(pid for pid in self._of_workers("attach", os.getpid()) if pid != os.getpid())
        _limit_lookups(self._engine)
        _ALIVE.add(self)
        if is_adapter(folder):
            self.reload(folder_weights(folder))
        self._measure()

    def add(self, name: str, request: SampleRequest, room: int) -> None:
        """Queue a request for at most `room` tokens."""
        sampling, free = request.sampling, not request.choices
        stop = list(sampling.stop) if free else []
        params = SamplingParams(
            temperature=sampling.temperature,
            top_p=sampling.top_p if free else 1.0,
            top_k=sampling.top_k if free else 0,
            max_tokens=room,
            seed=request.seed,
            stop=stop,
            stop_token_ids=list(request.stop_token_ids),
            ignore_eos=True,
            detokenize=bool(stop),
            extra_args=None if free else {CHOICES: request.choices},
            logprobs=0,
            output_kind=RequestOutputKind.FINAL_ONLY,
        )
        adapter = self._adapters.get(request.adapter)
        self._engine.add_request(name, tokens_input(list(request.prompt)), params, lora_request=adapter)
        self._requests[name] = request

    def add_score(self, name: str, prefix: Sequence[int], continuation: Sequence[int], adapter: str) -> None:
        """Queue a request for the log-probability of `continuation` after `prefix`, which may be cached."""
        params = SamplingParams(
            max_tokens=1,
            temperature=1.0,
            prompt_logprobs=0,
            skip_reading_prefix_cache=False,  # see _limit_lookups
            ignore_eos=True,
            detokenize=False,
            extra_args={PREFIX: len(prefix)},
            output_kind=RequestOutputKind.FINAL_ONLY,
        )
        prompt = tokens_input([*prefix, *continuation])
        self._engine.add_request(name, prompt, params, lora_request=self._adapters.get(adapter))
        self._scored.add(name)

    def step(self) -> list[tuple[str, Sample | float]]:
        """Advance all requests by one token; return the finished ones."""
        finished = [output for output in self._engine.step() if output.finished]
        discarded = self._pop_discarded([output.request_id for output in finished])
        done: list[tuple[str, Sample | float]] = []
        for output in finished:
            name = output.request_id
            if name in self._scored:
                self._scored.remove(name)
                done.append((name, self._score(output)))
            elif name in self._requests:
                done.append((name, self._sample(output, self._requests.pop(name), discarded.get(name, []))))
        return done

    def abort(self, names: list[str]) -> None:
        """Abort requests whose callers are gone."""
        self._engine.abort_request(names)
        self._pop_discarded(names)
        for name in names:
            self._requests.pop(name, None)
            self._scored.discard(name)

    def load_adapters(self, adapters: Mapping[str, Path]) -> None:
        """Replace all adapters and clear the prefix cache; no request may be running."""
        for old in self._adapters.values():
            self._engine.remove_lora(old.lora_int_id)
        self._adapters = {}
        for name, folder in adapters.items():
            number = next(self._numbers)  # vLLM knows an adapter by its number, and never reads a known one again
            self._adapters[name] = LoRARequest(f"{name}#{number}", number, str(folder))
            if not self._engine.add_lora(self._adapters[name]):
                raise EngineError(f"vLLM did not take the adapter in {folder}")
        self._clear()

    def _clear(self) -> None:
        if not self._engine.reset_prefix_cache():
            raise EngineError("the prefix cache could not be emptied: it has keys and values of older weights")

    def reload(self, weights: Weights, version: int | None = None) -> None:
        """Replace all weights and clear the prefix cache; no request may be running."""
        source = folder_weights(weights) if isinstance(weights, Path) else weights
        self._of_workers("begin_weights")
        for group in grouped(self._checked(source)):
            if self.workers:
                with shared(group) as tensors:
                    self._of_workers("take_weights", tensors)
            else:
                self._of_workers("take_weights", group)
        self._of_workers("end_weights")
        self._clear()
        self._measure()
        self._version = version

    def _of_workers(self, method: str, *arguments: Any) -> list[Any]:
        """Call a method of all workers; return what each returns. See `WorkerExtension`."""
        return self._engine.collective_rpc(method, args=arguments)

    def _pop_discarded(self, names: list[str]) -> dict[str, list[float]]:
        """Return, and delete, the masses that top-k and top-p removed from those requests that have either."""
        cut = [name for name in names if name in self._requests and _is_cut(self._requests[name])]
        masses: dict[str, list[float]] = self._of_workers("pop_discarded", cut)[0] if cut else {}
        return masses

    def _measure(self) -> None:
        self.gpu_bytes = sum(self._of_workers("reserved_gpu_bytes")) if self.workers else 0

    def shutdown(self) -> None:
        """Free vLLM's resources. The last engine of a process also frees the shared state."""
        _ALIVE.discard(self)
        client = self._engine.engine_core
        if _ALIVE:
            client._finalizer.detach()  # noqa: SLF001 (it would take the shared state down)
            client.engine_core.model_executor.shutdown()
            client.engine_core.scheduler.shutdown()
        else:
            client.shutdown()

    def _checked(self, source: Any) -> Iterator[tuple[str, Tensor]]:
        """Yield the weights; raise `EngineError` for an unknown parameter, and at the end if one is missing."""
        missing = dict(self._shapes)
        for name, tensor in source:
            if missing.pop(name, None) != tuple(tensor.shape):
                raise EngineError(f"{name} {tuple(tensor.shape)} is not a parameter of this model")
            yield name, tensor
        if missing:
            raise EngineError(f"no weights came for {', '.join(sorted(missing)[:3])}")

    def _sample(self, output: Any, request: SampleRequest, discarded: list[float]) -> Sample:
        completion = output.outputs[0]
        tokens = tuple(completion.token_ids)
        logprobs = tuple(
            float(entry[token].logprob) for token, entry in zip(tokens, completion.logprobs or (), strict=True)
        )
        if request.sampling.temperature <= 0:
            logprobs = (0.0,) * len(tokens)  # a greedy token is certain
        masses = discarded[-len(tokens) :]
        finish: Literal["stop", "length"] = "stop" if completion.finish_reason == "stop" else "length"
        return Sample(tokens, logprobs, finish, sum(masses) / len(masses) if masses else 0.0, self._version)

    @staticmethod
    def _score(output: Any) -> float:
        rows = output.prompt_logprobs[1:]  # the first is vLLM's for the token that nothing precedes
        scored = zip(output.prompt_token_ids[-len(rows) :], rows, strict=True)
        return float(sum(row[token].logprob for token, row in scored))


def _is_cut(request: SampleRequest) -> bool:
    """Whether top-k or top-p limit what is sampled."""
    sampling = request.sampling
    return not request.choices and (sampling.top_k > 0 or sampling.top_p < 1)


def _limit_lookups(engine: LLMEngine) -> None:
    """Let requests for scores begin from the prefix cache.

    vLLM computes log-probabilities of a prompt's tokens only where it reads the token before, so by default requests
    for them skip the cache. Here the lookup is limited to the prefix without its last token: everything that follows is
    read, even if it is cached. vLLM's rows for the tokens of the prefix, some of which it never computed, are dropped
    by its workers.
    """
    manager = engine.engine_core.engine_core.scheduler.kv_cache_manager
    find = manager.get_computed_blocks

    def limited(request: Any) -> Any:
        prefix = (request.sampling_params.extra_args or {}).get(PREFIX)
        return find(request if prefix is None else _Beginning(request, prefix))

    manager.get_computed_blocks = limited


class _Beginning:
    """The first `num_tokens` tokens of vLLM's request. A lookup in the prefix cache finds fewer than that."""

    def __init__(self, request: Any, num_tokens: int) -> None:
        self._request, self.num_tokens = request, num_tokens

    def __getattr__(self, name: str) -> Any:
        return getattr(self._request, name)


@contextmanager
def _process_left_alone() -> Iterator[None]:
    """Restore the global state that vLLM's start changes: random states, torch's threads, and how they are set."""
    states = random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002 (the global one)
    set_threads, threads = torch.set_num_threads, torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads = set_threads
        set_threads(threads)
        random.setstate(states[0])
        np.random.set_state(states[1])  # noqa: NPY002
        torch.set_rng_state(states[2])
