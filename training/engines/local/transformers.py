"""The engine for machines without vLLM: batched sampling with a Transformers model, in this process and event loop.

Requests that wait are decoded together; rows that finish leave, and once as many requests wait as rows are running,
the batch is rebuilt with both. Continuations that wait are scored together whenever no row is being decoded. All
decisions depend on the order of requests alone, never on time, so the same requests in the same order give the same
bits (with one thread). Failures raise `EngineError`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from training.engines.adapters import check_adapters, check_known
from training.engines.base import EngineOptions, Sample, SampleRequest, Weights
from training.engines.local.adapters import Adapters
from training.engines.local.draw import Settings, draw, restrict
from training.engines.local.kv import PrefixStore, RowCache, Shape
from training.engines.local.likelihood import ScoreQuery, summed_logprobs
from training.engines.local.loading import folder_weights, load_merged, load_tokenizer
from training.engines.trie import Trie, trie_of
from training.errors import BadInput, EngineError, boundary

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedConfig

SETTLE = 20
"""Iterations of the event loop without a new request after which a batch starts."""
READ_TOKENS = 4096
"""Prompt tokens per forward pass, over all rows; bounds the memory of long prompts."""


@dataclass(slots=True)
class _Row:
    """One request in progress. `tokens` = prompt + sampled."""

    request: SampleRequest
    future: asyncio.Future[Sample]
    room: int
    uniform: Tensor
    tokens: list[int]
    trie: Trie | None
    logprobs: list[float] = field(default_factory=list)
    discarded: float = 0.0

    def sampled(self) -> list[int]:
        return self.tokens[len(self.request.prompt) :]


@dataclass(slots=True, eq=False)
class _ScoreRequest:
    """One request for scores in progress."""

    prefix: list[int]
    continuations: list[list[int]]
    adapter: str
    future: asyncio.Future[list[float]]


class TransformersEngine:
    """An `Engine` over a Hugging Face causal language model with full attention."""

    def __init__(self, model: str | Path, options: EngineOptions | None = None) -> None:
        options = options or EngineOptions()
        with boundary(into=EngineError):
            self._model = load_merged(model, options.dtype).to(options.device)
            self._tokenizer = load_tokenizer(model)
        longest = int(self._model.config.max_position_embeddings)
        self.window = min(options.window or longest, longest)
        check_attention(self._model.config, self.window)
        self._max_running = options.max_running
        self._adapters = Adapters(self._model) if options.adapters else None
        self._most, self._known = options.adapters, frozenset[str]()
        self._shape = Shape.of(self._model.config)
        self._store = PrefixStore(int(options.cache_gib * 2**30))
        self._waiting: list[_Row] = []
        self._to_score: list[_ScoreRequest] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._busy = asyncio.Lock()
        self._runner: asyncio.Task[None] | None = None
        self._loading = 0
        self._broken = ""
        self._version: int | None = None
        self.steps = 0  # forward passes; others see by it that the engine makes progress

    async def sample(self, request: SampleRequest) -> Sample:
        """Sample one continuation; see `Engine.sample`."""
        self._enter()
        check_known(request.adapter, self._known)
        trie = trie_of(request)
        room = min(request.sampling.max_tokens, self.window - len(request.prompt))
        if not request.prompt or room < max([1, *map(len, request.choices)]):
            raise EngineError(f"a prompt of {len(request.prompt)} tokens leaves no room in a window of {self.window}")
        generator = torch.Generator().manual_seed(request.seed)
        uniform = torch.rand(room, generator=generator, dtype=torch.float64)
        future: asyncio.Future[Sample] = asyncio.get_running_loop().create_future()
        row = _Row(request, future, room, uniform, list(request.prompt), trie)
        if self._append_forced(row):
            return await future  # a single choice
        self._waiting.append(row)
        self._start()
        return await future

    async def score(
        self, prefix: Sequence[int], continuations: Sequence[Sequence[int]], adapter: str = ""
    ) -> list[float]:
        """Return summed log-probabilities of `continuations`; see `AdapterEngine.score`."""
        self._enter()
        check_known(adapter, self._known)
        if not prefix:
            raise EngineError("a continuation can only be scored after at least one token")
        longest = max(map(len, continuations), default=0)
        if not longest:
            return [0.0] * len(continuations)
        if len(prefix) + longest > self.window:
            raise EngineError(f"{len(prefix)} + {longest} tokens do not fit a window of {self.window}")
        future: asyncio.Future[list[float]] = asyncio.get_running_loop().create_future()
        self._to_score.append(_ScoreRequest(list(prefix), [list(tokens) for tokens in continuations], adapter, future))
        self._start()
        return await future

    async def load_weights(self, weights: Weights, version: int | None = None) -> None:
        """Replace the weights after the running requests have ended; names and shapes must be the model's."""
        self._enter()
        if self._adapters:
            raise EngineError("an engine with adapters keeps its weights")
        async with self._alone():
            self._broken = "the weights are incomplete, for the last ones did not load"
            with boundary(into=EngineError):
                self._load(weights)
            self._broken = ""
            self._version = version

    async def load_adapters(self, adapters: Mapping[str, Path]) -> None:
        """Replace the adapters after the running requests have ended; see `AdapterEngine.load_adapters`."""
        self._enter()
        check_adapters(adapters, self._most)
        async with self._alone():
            if self._adapters:
                with boundary(into=EngineError):
                    self._adapters.load(adapters)
            self._known = frozenset(adapters)

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        """Wait until no request runs, and let none begin; what was read is forgotten."""
        self._loading += 1
        try:
            async with self._busy:
                self._store.clear()
                yield
        finally:
            self._loading -= 1

    async def close(self) -> None:
        """Fail all waiting requests and free the model."""
        self._broken = "the engine is closed"
        futures: list[asyncio.Future[Any]] = [row.future for row in self._waiting]
        futures += [request.future for request in self._to_score]
        for future in futures:
            if not future.done():
                future.set_exception(EngineError("the engine was closed"))
        self._waiting.clear()
        self._to_score.clear()
        if self._runner is not None and self._loop is asyncio.get_running_loop():
            await self._runner
        self._store.clear()
        self._model = None

    def _enter(self) -> None:
        """Raise `EngineError` for a closed or broken engine; discard the state of an event loop that has ended."""
        if self._broken:
            raise EngineError(self._broken)
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._busy, self._runner, self._loading = loop, asyncio.Lock(), None, 0
            self._waiting.clear()
            self._to_score.clear()

    def _start(self) -> None:
        if self._runner is None or self._runner.done():
            self._runner = asyncio.create_task(self._run())

    async def _run(self) -> None:
        """Serve until no request waits."""
        while self._waiting or self._to_score:
            await self._settle()
            async with self._busy:
                self._score_waiting()
                rows: list[_Row] = []
                while rows := self._admit(rows):
                    try:
                        with boundary(into=EngineError):
                            rows = await self._decode(rows)
                    except EngineError as error:
                        for row in rows:
                            if not row.future.done():
                                row.future.set_exception(EngineError(str(error)))
                        rows = []
                    await self._settle()
                    self._score_waiting()

    def _score_waiting(self) -> None:
        """Answer the requests for scores; none while new weights wait."""
        if self._loading or not self._to_score:
            return
        requests, self._to_score = [each for each in self._to_score if not each.future.done()], []
        queries = [
            ScoreQuery.of(each.prefix, each.continuations, self._store.find(each.prefix, each.adapter))
            for each in requests
        ]
        order = sorted(range(len(requests)), key=lambda at: -len(queries[at]))
        for part in alike([len(queries[at]) for at in order]) if requests else ():
            try:
                with boundary(into=EngineError), self._under([requests[at].adapter for at in order[part]]):
                    answers = summed_logprobs(self._model, [queries[at] for at in order[part]])
                self.steps += 1
            except EngineError as error:
                for at in order[part]:
                    requests[at].future.set_exception(EngineError(str(error)))
            else:
                for at, answer in zip(order[part], answers, strict=True):
                    requests[at].future.set_result(answer)

    def _admit(self, rows: list[_Row]) -> list[_Row]:
        """Return the running rows and as many waiting ones as may join."""
        joining = self._waiting[: self._room(len(rows))]
        del self._waiting[: len(joining)]
        return [row for row in (*rows, *joining) if not row.future.done()]

    def _room(self, running: int) -> int:
        """Return how many waiting rows may join now; none while new weights wait for the running rows to end."""
        return 0 if self._loading else min(len(self._waiting), self._max_running - running)

    async def _settle(self) -> None:
        """Run the event loop until all ready coroutines have made their requests."""
        quiet, before = 0, len(self._waiting) + len(self._to_score)
        while quiet < SETTLE:
            await asyncio.sleep(0)
            count = len(self._waiting) + len(self._to_score)
            quiet = quiet + 1 if count == before else 0
            before = count

    async def _decode(self, rows: list[_Row]) -> list[_Row]:
        """Decode until the rows have ended or waiting ones should join; return the unfinished rows."""
        rows, cache, logits = self._prefill(rows)
        settings = self._settings(rows)
        while True:
            uniform = torch.stack([row.uniform[len(row.logprobs)] for row in rows]).to(logits.device)
            if any(row.trie for row in rows):
                logits = restrict(logits, [row.trie.allowed(row.sampled()) if row.trie else None for row in rows])
            tokens, logprobs, discarded = draw(logits, settings, uniform)
            if not bool(logprobs.isfinite().all()):
                raise EngineError("the model's log-probabilities are not finite")
            running = []
            for index, (row, *drawn) in enumerate(
                zip(rows, tokens.tolist(), logprobs.tolist(), discarded.tolist(), strict=True)
            ):
                if not (self._append(row, *drawn) or self._append_forced(row)):
                    running.append(index)
                else:
                    self._remember(row, cache, index)
            await asyncio.sleep(0)  # callers of finished requests may make new ones meanwhile
            if self._room(len(running)) >= len(running):
                for index in running:
                    self._remember(rows[index], cache, index)
                return [rows[index] for index in running]
            if len(running) < len(rows):
                cache.keep(running)
                rows = [rows[index] for index in running]
                settings = self._settings(rows)
            new = [row.tokens[length:] for row, length in zip(rows, cache.lengths, strict=True)]
            logits = self._forward(new, cache, slice(None), [row.request.adapter for row in rows])

    def _append(self, row: _Row, token: int, logprob: float, discarded: float) -> bool:
        """Append a sampled token to its row; if that ends the row, answer its request and return True."""
        row.tokens.append(token)
        row.logprobs.append(logprob)
        row.discarded += discarded
        stopped = token in row.request.stop_token_ids
        if not stopped and row.request.sampling.stop and row.trie is None:
            text = self._tokenizer.decode(row.sampled(), skip_special_tokens=True)
            stopped = any(stop in text for stop in row.request.sampling.stop)
        if not (stopped or len(row.logprobs) == row.room):
            return row.future.done()  # the caller gave up
        if not row.future.done():
            count = len(row.logprobs)
            row.future.set_result(
                Sample(
                    tuple(row.sampled()),
                    tuple(row.logprobs),
                    "stop" if stopped else "length",
                    row.discarded / count,
                    self._version,
                )
            )
        return True

    def _append_forced(self, row: _Row) -> bool:
        """Append the tokens that alone may follow, which cost no pass of their own; return True if they end the row."""
        while row.trie is not None and len(allowed := row.trie.allowed(row.sampled())) == 1:
            if self._append(row, allowed[0], 0.0, 0.0):
                return True
        return False

    def _remember(self, row: _Row, cache: RowCache, index: int) -> None:
        """Store the keys and values of a row: all tokens except the last sampled one and forced ones after it."""
        self._store.put(row.tokens[: cache.lengths[index]], cache.row(index), row.request.adapter)

    def _settings(self, rows: list[_Row]) -> Settings:
        device = self._model.device
        return Settings(
            torch.tensor([row.request.sampling.temperature for row in rows], device=device),
            torch.tensor([0 if row.trie else row.request.sampling.top_k for row in rows], device=device),
            torch.tensor(
                [1.0 if row.trie else row.request.sampling.top_p for row in rows], device=device, dtype=torch.float64
            ),
        )

    def _prefill(self, rows: list[_Row]) -> tuple[list[_Row], RowCache, Tensor]:
        """Compute each row's tokens that are not stored; return rows, cache and the next tokens' logits [B, V].

        Rows with similar numbers of new tokens are computed together to reduce padding; rows return in that order.
        """
        matches = [(row, self._store.find(row.tokens, row.request.adapter)) for row in rows]
        matches.sort(key=lambda pair: _length(pair[1]) - len(pair[0].tokens))
        rows, stored = [row for row, _ in matches], [entry for _, entry in matches]
        new = [row.tokens[_length(entry) :] for row, entry in matches]
        capacity = max(len(row.tokens) + row.room - len(row.logprobs) for row in rows)
        cache = RowCache(self._shape, stored, capacity, self._model.get_input_embeddings().weight)
        names = [row.request.adapter for row in rows]
        parts = alike([len(tokens) for tokens in new])
        logits = [self._forward(new[part], cache, part, names[part]) for part in parts]
        return rows, cache, torch.cat(logits)

    @torch.no_grad()
    def _forward(self, new: list[list[int]], cache: RowCache, rows: slice, adapters: list[str]) -> Tensor:
        """Compute the new tokens of some rows, aligned at their ends, in pieces; return the last logits [R, V]."""
        device = self._model.device
        width = max(len(tokens) for tokens in new)
        ids = torch.tensor([[0] * (width - len(tokens)) + tokens for tokens in new], device=device)
        ends = [length + len(tokens) for length, tokens in zip(cache.lengths[rows], new, strict=True)]
        places = torch.arange(-width, 0, device=device) + torch.tensor(ends, device=device).unsqueeze(1)
        starts = torch.tensor(cache.lengths[rows], device=device).unsqueeze(1)
        positions = torch.where(places < starts, -1, places)
        piece = max(1, READ_TOKENS // len(new))
        logits = ids
        for at in range(0, width, piece):
            part = slice(at, min(at + piece, width))
            mask = cache.open(rows, positions[:, part], max(ends))
            with self._under(adapters):
                logits = self._model(
                    input_ids=ids[:, part],
                    position_ids=positions[:, part].clamp(min=0),
                    attention_mask=mask,
                    past_key_values=cache.cache,
                    use_cache=True,
                    logits_to_keep=1,
                ).logits
        cache.lengths[rows] = ends
        self.steps += 1
        return logits[:, -1]

    def _under(self, adapters: list[str]) -> AbstractContextManager[None]:
        """Let the rows of the next batch have these adapters."""
        return self._adapters.rows(adapters) if self._adapters else nullcontext()

    @torch.no_grad()
    def _load(self, weights: Weights) -> None:
        source = folder_weights(weights) if isinstance(weights, Path) else weights
        missing = dict(self._model.named_parameters())
        parameters = dict(self._model.named_parameters(remove_duplicate=False))
        for name, tensor in source:
            target = parameters.get(name)
            if target is None or target.shape != tensor.shape:
                raise EngineError(f"{name} {tuple(tensor.shape)} is not a parameter of this model")
            target.copy_(tensor)
            missing.pop(name, None)
        if missing:
            raise EngineError(f"no weights came for {', '.join(sorted(missing)[:3])}")


def check_attention(config: PreTrainedConfig, window: int) -> None:
    """Raise `BadInput` unless every token of a sequence of `window` tokens attends to all tokens before it.

    Configurations without `layer_types` (Mistral, Phi-3, Qwen3-MoE) state one attention window for all layers.
    """
    if layer_types := getattr(config, "layer_types", None):
        if set(layer_types) != {"full_attention"}:
            raise BadInput(f"attention of kind {', '.join(sorted(set(layer_types)))} needs the vllm engine", "engine")
        return
    for name in ("sliding_window", "attention_chunk_size"):
        width = getattr(config, name, None)
        if width and width < window:
            raise BadInput(f"{name} {width} is below the window of {window} tokens: use the vllm engine", "engine")


def _length(entry: Tensor | None) -> int:
    return 0 if entry is None else entry.shape[3]


def alike(lengths: Sequence[int]) -> list[slice]:
    """Cut rows, the longest first, into batches below `READ_TOKENS` tokens with at most half of them padding."""
    starts = [0]
    for at, length in enumerate(lengths):
        longest = lengths[starts[-1]]
        if 2 * length < longest or (at - starts[-1] + 1) * longest > max(READ_TOKENS, longest):
            starts.append(at)
    return [slice(start, stop) for start, stop in zip(starts, [*starts[1:], len(lengths)], strict=True)]
