"""Engines without a model: one returns scripted replies, one samples from a table with exact log-probabilities.

They replace models in tests, examples and benchmarks. Both raise `EngineError` for a request that they cannot answer.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from training.engines.adapters import check_known
from training.engines.base import Sample, SampleRequest, Weights
from training.engines.trie import trie_of
from training.errors import EngineError

Script = Callable[[SampleRequest], Sequence[int]]


class ScriptedEngine:
    """Answers each request with the tokens that `script` returns for it, or with the next reply of an iterable.

    A scripted reply is certain, so its log-probabilities are 0. It ends at `max_tokens`, or after a stop token; of a
    request with choices it must be one of them.
    """

    def __init__(self, script: Script | Iterable[Sequence[int]]) -> None:
        self.requests = 0
        self.closed = False
        self.version: int | None = None
        if callable(script):
            self._script: Script = script
        else:
            replies = iter(script)
            self._script = lambda request: self._next(replies)

    def _next(self, replies: Iterable[Sequence[int]]) -> Sequence[int]:
        for reply in replies:
            return reply
        raise EngineError(f"the script has no reply to request {self.requests}")

    async def sample(self, request: SampleRequest) -> Sample:
        """Return the scripted continuation."""
        self.requests += 1
        check_known(request.adapter)
        await asyncio.sleep(0)  # other tasks run, as they do with a real engine
        tokens = tuple(self._script(request))
        if trie_of(request) is not None and tokens not in request.choices:
            raise EngineError(f"the script's reply to request {self.requests} is none of the choices")
        stop = next((at for at, token in enumerate(tokens) if token in request.stop_token_ids), None)
        if stop is not None and stop < request.sampling.max_tokens:
            return Sample(tokens[: stop + 1], (0.0,) * (stop + 1), "stop", version=self.version)
        tokens = tokens[: request.sampling.max_tokens]
        return Sample(tokens, (0.0,) * len(tokens), "length", version=self.version)

    async def score(self, prefix: Sequence[int], continuations: Sequence[Sequence[int]]) -> list[float]:
        """Raise `EngineError`: a script has no probabilities."""
        raise EngineError("a scripted engine cannot score")

    async def load_weights(self, weights: Weights, version: int | None = None) -> None:
        """Take the version of the weights alone."""
        self.version = version

    async def close(self) -> None:
        """Record that the engine was closed."""
        self.closed = True


class BigramEngine:
    """A policy whose next token depends on the last one: `logits[last]` are the logits, so every log-prob is exact.

    `logits` has shape (V, V). `load_weights` takes the tensor named `logits`, or a folder with it in
    `model.safetensors`.
    """

    def __init__(self, logits: NDArray[np.floating]) -> None:
        self.logits = _square(np.asarray(logits, dtype=np.float64))
        self.version: int | None = None

    async def sample(self, request: SampleRequest) -> Sample:
        """Sample token by token from softmax(logits / temperature), truncated by top-k and top-p, or among choices."""
        check_known(request.adapter)
        await asyncio.sleep(0)
        trie = trie_of(request)
        last = self._last(request.prompt)
        generator = np.random.default_rng(request.seed)
        tokens: list[int] = []
        logprobs: list[float] = []
        discarded: list[float] = []
        finish: Literal["stop", "length"] = "length"
        while len(tokens) < request.sampling.max_tokens:
            if trie is None:
                policy = self._policy(last, request.sampling.temperature)
                truncated = _cut(policy, request.sampling.top_k, request.sampling.top_p)
            else:
                policy = truncated = self._policy(last, request.sampling.temperature, trie.allowed(tokens))
            last = int(generator.choice(len(truncated), p=truncated / truncated.sum()))
            tokens.append(last)
            logprobs.append(float(np.log(policy[last])))
            discarded.append(float(1 - truncated.sum()))
            if last in request.stop_token_ids:
                finish = "stop"
                break
        mean = sum(discarded) / len(discarded) if discarded else 0.0
        return Sample(tuple(tokens), tuple(logprobs), finish, mean, self.version)

    async def score(self, prefix: Sequence[int], continuations: Sequence[Sequence[int]]) -> list[float]:
        """Return the exact log p(continuation | prefix)."""
        scores = []
        for continuation in continuations:
            path = [self._last(prefix), *continuation]
            pairs = itertools.pairwise(path)
            scores.append(float(sum(np.log(self._policy(last, 1.0)[token]) for last, token in pairs)))
        return scores

    async def load_weights(self, weights: Weights, version: int | None = None) -> None:
        """Replace the table."""
        if isinstance(weights, Path):
            from safetensors.numpy import load_file

            tensors = load_file(weights / "model.safetensors")
        else:
            tensors = {name: np.asarray(tensor) for name, tensor in weights}
        if "logits" not in tensors:
            raise EngineError(f"no tensor named logits among {', '.join(sorted(tensors)) or 'the weights'}")
        self.logits = _square(np.asarray(tensors["logits"], dtype=np.float64))
        self.version = version

    async def close(self) -> None:
        """Do nothing: there are no resources to free."""

    def _last(self, tokens: Sequence[int]) -> int:
        if not tokens or not all(0 <= token < len(self.logits) for token in tokens):
            raise EngineError(f"a prompt needs at least one token, each in [0, {len(self.logits)})")
        return tokens[-1]

    def _policy(self, last: int, temperature: float, allowed: Sequence[int] = ()) -> NDArray[np.float64]:
        """Return the probabilities of the next token, of all tokens or of those that are `allowed`, (V,)."""
        logits = self.logits[last]
        if allowed:
            logits = np.full_like(logits, -np.inf)
            logits[list(allowed)] = self.logits[last][list(allowed)]
        if temperature == 0:
            greedy: NDArray[np.float64] = np.eye(len(logits))[int(logits.argmax())]
            return greedy
        scaled = logits / temperature
        weights: NDArray[np.float64] = np.exp(scaled - scaled.max())
        return weights / weights.sum()


def _square(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    if logits.ndim != 2 or logits.shape[0] != logits.shape[1]:
        raise EngineError(f"the table of logits must be square, not {logits.shape}")
    return logits


def _cut(policy: NDArray[np.float64], top_k: int, top_p: float) -> NDArray[np.float64]:
    """Return `policy` with 0 outside top-k (0 = off) and top-p (1 = off); the likeliest token always stays."""
    order = np.argsort(-policy, kind="stable")
    keep = np.ones(len(policy), dtype=bool)
    if top_k:
        keep[order[top_k:]] = False
    before = np.cumsum(policy[order]) - policy[order]
    keep[order[before >= top_p]] = False
    keep[order[0]] = True
    return np.where(keep, policy, 0.0)
