"""vLLM as an object with a `step` method: requests in, finished samples out, without threads or an event loop.

Importing this module imports vLLM, so the environment variables that vLLM reads must be set before.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from transformers import AutoConfig
from vllm import EngineArgs, SamplingParams
from vllm.inputs.engine import tokens_input
from vllm.lora.request import LoRARequest
from vllm.sampling_params import RequestOutputKind
from vllm.v1.engine.llm_engine import LLMEngine
from vllm.v1.outputs import LogprobsTensors
from vllm.v1.sample.logits_processor import AdapterLogitsProcessor

from training.bases import base_of, is_adapter, verified
from training.engines.base import Sample, SampleRequest, Weights
from training.engines.local.loading import folder_weights
from training.engines.trie import Trie
from training.errors import EngineError

if TYPE_CHECKING:
    from torch import Tensor


READ_TOKENS = 4096
"""Lower bound of the number of tokens in one step, over all requests."""

CHOICES = "choices"
"""The name under which a request's choices travel through vLLM."""

_ALIVE: set[VllmCore] = set()


class VllmCore:
    """One `LLMEngine`. `window` is the longest prompt + reply in tokens; `choices`: requests may have choices."""

    def __init__(self, model: str | Path, window: int, options: dict[str, Any], *, choices: bool = False) -> None:
        folder = verified(model)
        full = base_of(folder)
        longest = int(AutoConfig.from_pretrained(full, local_files_only=True).max_position_embeddings)
        self.window = min(window or longest, longest)
        with _process_left_alone():
            self._engine = LLMEngine.from_engine_args(
                EngineArgs(
                    model=str(full),
                    tokenizer=str(folder),
                    # of the sampling distribution: after the temperature (see _Cut for top-k and top-p)
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
                    logits_processors=[_Choices] if choices else None,
                    **options,
                )
            )
        self._shapes = {name: tuple(tensor.shape) for name, tensor in folder_weights(full)}
        self._requests: dict[str, SampleRequest] = {}
        self._adapters: dict[str, LoRARequest] = {}
        self._numbers = count(1)
        self._cut = _Cut(self._engine)
        self._scores = _Scores(self._engine)
        _ALIVE.add(self)
        if is_adapter(folder):
            self.reload(folder_weights(folder))

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
            skip_reading_prefix_cache=False,  # see _Scores
            ignore_eos=True,
            detokenize=False,
            output_kind=RequestOutputKind.FINAL_ONLY,
        )
        prompt = tokens_input([*prefix, *continuation])
        self._engine.add_request(name, prompt, params, lora_request=self._adapters.get(adapter))
        self._scores.add(name, len(prefix))

    def step(self) -> list[tuple[str, Sample | float]]:
        """Advance all requests by one token; return the finished ones."""
        done: list[tuple[str, Sample | float]] = []
        for output in self._engine.step():
            name = output.request_id
            if not output.finished:
                continue
            if name in self._scores:
                self._scores.pop(name)
                done.append((name, self._score(output)))
            elif name in self._requests:
                done.append((name, self._sample(output, self._requests.pop(name))))
        return done

    def abort(self, names: list[str]) -> None:
        """Abort requests whose callers are gone."""
        self._engine.abort_request(names)
        for name in names:
            self._requests.pop(name, None)
            self._scores.pop(name)
            self._cut.pop(name)

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
            raise EngineError("the prefix cache could not be emptied, so old weights would shine through")

    def reload(self, weights: Weights) -> None:
        """Replace all weights and clear the prefix cache; no request may be running."""
        source = folder_weights(weights) if isinstance(weights, Path) else weights
        self._engine.collective_rpc("reload_weights", kwargs={"weights_iterator": self._checked(source)})
        self._refresh_head()
        self._clear()

    def _refresh_head(self) -> None:
        """Repack the output head: if it is tied to the embeddings, vLLM does not update its packed copy on CPU."""
        if not self._engine.model_config.hf_config.tie_word_embeddings:
            return
        head = self._engine.model_executor.driver_worker.worker.model_runner.get_model().lm_head
        head.quant_method.process_weights_after_loading(head)

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

    def _sample(self, output: Any, request: SampleRequest) -> Sample:
        completion = output.outputs[0]
        tokens = tuple(completion.token_ids)
        logprobs = tuple(
            float(entry[token].logprob) for token, entry in zip(tokens, completion.logprobs or (), strict=True)
        )
        if request.sampling.temperature <= 0:
            logprobs = (0.0,) * len(tokens)  # a greedy token is certain
        cut = self._cut.pop(output.request_id)[-len(tokens) :]
        discarded = sum(cut) / len(cut) if cut else 0.0
        return Sample(tokens, logprobs, "stop" if completion.finish_reason == "stop" else "length", discarded)

    @staticmethod
    def _score(output: Any) -> float:
        rows = output.prompt_logprobs[1:]  # the first is vLLM's for the token that nothing precedes
        scored = zip(output.prompt_token_ids[-len(rows) :], rows, strict=True)
        return float(sum(row[token].logprob for token, row in scored))


class _Choices(AdapterLogitsProcessor):
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


class _Cut:
    """Computes log-probabilities before top-k and top-p, and records the probability mass that they remove per token.

    vLLM's own are renormalised over what is left. The sampler's `forward` is wrapped: what it returns beside the
    sampled tokens is replaced by log softmax(logits / T) over the whole vocabulary.
    """

    def __init__(self, engine: LLMEngine) -> None:
        self._runner = engine.model_executor.driver_worker.worker.model_runner
        self._masses: dict[str, list[float]] = {}
        sampler = self._runner.sampler.topk_topp_sampler
        self._inner = sampler.forward
        sampler.forward = self._forward

    def pop(self, name: str) -> list[float]:
        """Return the masses of a request and delete them."""
        return self._masses.pop(name, [])

    def _forward(self, logits: Tensor, generators: Any, k: Tensor | None, p: Tensor | None) -> tuple[Tensor, Any]:
        if k is None and p is None:
            result: tuple[Tensor, Any] = self._inner(logits, generators, k, p)
            return result
        whole = logits.log_softmax(dim=-1, dtype=torch.float32)
        sampled, filtered = self._inner(logits, generators, k, p)
        kept_mass = (whole - filtered).gather(1, sampled.long().view(-1, 1)).exp().view(-1).tolist()
        for internal, mass in zip(self._runner.input_batch.req_ids, kept_mass, strict=True):
            self._masses.setdefault(_own_name(internal), []).append(max(0.0, 1.0 - mass))
        return sampled, whole


class _Scores:
    """The requests for scores: they begin from the prefix cache, and only what follows the prefix is returned.

    vLLM computes log-probabilities of a prompt's tokens only where it reads the token before, so by default requests
    for them skip the cache. Here the lookup is limited to the prefix without its last token: everything that follows is
    read, even if it is cached. vLLM's rows for the tokens of the prefix, some of which it never computed, are dropped.
    """

    def __init__(self, engine: LLMEngine) -> None:
        self._prefixes: dict[str, int] = {}  # their lengths
        manager = engine.engine_core.engine_core.scheduler.kv_cache_manager
        runner = engine.model_executor.driver_worker.worker.model_runner
        self._find, self._compute = manager.get_computed_blocks, runner._get_prompt_logprobs_dict  # noqa: SLF001
        manager.get_computed_blocks, runner._get_prompt_logprobs_dict = self._computed_blocks, self._computed  # noqa: SLF001

    def __contains__(self, name: str) -> bool:
        return name in self._prefixes

    def add(self, name: str, prefix: int) -> None:
        """Register a request whose first `prefix` tokens are not scored."""
        self._prefixes[name] = prefix

    def pop(self, name: str) -> None:
        """Forget a request; do nothing if it asks for no score."""
        self._prefixes.pop(name, None)

    def _computed_blocks(self, request: Any) -> Any:
        prefix = self._prefixes.get(_own_name(request.request_id))
        return self._find(request if prefix is None else _Beginning(request, prefix))

    def _computed(self, *args: Any) -> dict[str, LogprobsTensors]:
        tables = self._compute(*args)  # row i has the log-probability of token i + 1
        return {
            internal: LogprobsTensors(*(part[self._prefixes[_own_name(internal)] - 1 :] for part in table[:3]))
            for internal, table in tables.items()
        }


class _Beginning:
    """The first `num_tokens` tokens of vLLM's request. A lookup in the prefix cache finds fewer than that."""

    def __init__(self, request: Any, num_tokens: int) -> None:
        self._request, self.num_tokens = request, num_tokens

    def __getattr__(self, name: str) -> Any:
        return getattr(self._request, name)


def _own_name(internal: str) -> str:
    """Return our name of a request: vLLM's internal one is ours, a dash and eight characters."""
    return internal.rpartition("-")[0]


@contextmanager
def _process_left_alone() -> Iterator[None]:
    """Restore the global state that vLLM's start changes: random states and torch.set_num_threads."""
    states = random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002 (the global one)
    set_threads = torch.set_num_threads
    try:
        yield
    finally:
        torch.set_num_threads = set_threads
        random.setstate(states[0])
        np.random.set_state(states[1])  # noqa: NPY002
        torch.set_rng_state(states[2])
