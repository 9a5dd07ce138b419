"""A seat whose action is drawn among the legal ones, by the model's probabilities, before its text is sampled.

A reply that performs an action begins with the action's tag. The probability of an action is that of this beginning,
relative to those of all actions that the seat is offered. Raises `EngineError` as `ModelPlayer` does.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from training.engines.base import Engine, Sample, SampleRequest, Sampling
from training.errors import EngineError
from training.games.actions import tag
from training.players.base import Reply
from training.players.model import ModelPlayer
from training.records import Action, Observation, Seat
from training.seeding import rng
from training.text.template import ChatTokenizer

Logprobs = Mapping[str, float]
"""The log-probability of each action's beginning, in nats, by the action's name."""


def opening(action: Action) -> str:
    """Return how a reply begins that performs an action: its whole tag, or the opening one of an action with text."""
    return f"<{action.name}>" if action.args else tag(action, {})


def probabilities(logprobs: Logprobs, temperature: float = 1.0) -> dict[str, float]:
    """Return softmax(log p / temperature) over the actions; at temperature 0 the likeliest is certain."""
    highest = max(logprobs.values())
    if temperature == 0:
        likeliest = max(logprobs, key=lambda name: logprobs[name])
        return {name: float(name == likeliest) for name in logprobs}
    weights = {name: math.exp((value - highest) / temperature) for name, value in logprobs.items()}
    total = sum(weights.values())
    return {name: weight / total for name, weight in weights.items()}


class ActionScorer:
    """Scores the actions after a prompt by one model; players that share it ask the engine once for each prompt."""

    def __init__(self, engine: Engine, tokenizer: ChatTokenizer) -> None:
        self._engine, self._tokenizer = engine, tokenizer
        self._asked: dict[tuple[int, ...], asyncio.Future[dict[str, float]]] = {}

    async def __call__(self, prompt: Sequence[int], actions: Sequence[Action]) -> Logprobs:
        """Return log p(beginning | prompt) of each action at temperature 1, summed over the beginning's tokens."""
        key = tuple(prompt)
        if key not in self._asked:
            self._asked[key] = asyncio.ensure_future(self._score(key, actions))
        return await self._asked[key]

    async def _score(self, prompt: Sequence[int], actions: Sequence[Action]) -> dict[str, float]:
        scores = await self._engine.score(prompt, [self._tokenizer.encode(opening(action)) for action in actions])
        return {action.name: score for action, score in zip(actions, scores, strict=True)}


class LimitedPlayer(ModelPlayer):
    """A `ModelPlayer` whose replies are always one legal action, and end where the action's tag closes.

    `order` has the names of the actions among which each reply is drawn, the last entry those of all later replies.
    Where a seat is offered none of them, and without an `order`, it draws among all that it is offered. `on_first` is
    called with the log-probabilities of all offered actions before the first reply.
    """

    def __init__(
        self,
        engine: Engine,
        tokenizer: ChatTokenizer,
        sampling: Sampling,
        *,
        order: Sequence[Collection[str]] = (),
        scorer: ActionScorer | None = None,
        on_first: Callable[[Logprobs], None] = lambda logprobs: None,
        **places: Any,
    ) -> None:
        super().__init__(engine, tokenizer, sampling, **places)
        self._order = order or ((),)
        self._scorer = scorer or ActionScorer(engine, tokenizer)
        self._on_first = on_first
        self._offered: Sequence[Action] = ()

    async def act(self, seat: Seat, observation: Observation, seed: int) -> Reply:
        """Draw an action and sample its text; see `ModelPlayer.act`."""
        self._offered = observation.actions
        return await super().act(seat, observation, seed)

    async def _sample(self, request: SampleRequest) -> Sample:
        logprobs = await self._scorer(request.prompt, self._offered)
        if not self._builder.replies:
            self._on_first(logprobs)
        action = self._drawn(logprobs, request)
        head = tuple(self._tokenizer.encode(opening(action)))
        if not action.args:
            return _certain((*head, self._tokenizer.end_id))
        return await self._completed(request, action, head)

    def _drawn(self, logprobs: Logprobs, request: SampleRequest) -> Action:
        """Return the action that the request's seed draws, at the sampling temperature."""
        wanted = self._order[min(self._builder.replies, len(self._order) - 1)]
        allowed = {name: value for name, value in logprobs.items() if name in wanted} or logprobs
        chances = probabilities(allowed, request.sampling.temperature)
        [name] = rng(request.seed, "action").choices(list(chances), list(chances.values()))
        return next(action for action in self._offered if action.name == name)

    async def _completed(self, request: SampleRequest, action: Action, head: tuple[int, ...]) -> Sample:
        """Sample the rest of a reply that begins with `head`; its tag is closed where the model does not close it."""
        closing = f"</{action.name}>"
        tail = (*self._tokenizer.encode(closing), self._tokenizer.end_id)
        sampling = request.sampling
        room = sampling.max_tokens - len(head) - len(tail)
        if room < 1:
            raise EngineError(
                f"max_tokens, {sampling.max_tokens}, leaves no room between {opening(action)} and {closing}"
            )
        limited = sampling.model_copy(update={"max_tokens": room, "stop": (*sampling.stop, closing)})
        rest = await self._engine.sample(replace(request, prompt=[*request.prompt, *head], sampling=limited))
        if closing in self._tokenizer.decode(rest.tokens):
            return replace(rest, tokens=head + rest.tokens, logprobs=(0.0,) * len(head) + rest.logprobs)
        count = len(rest.tokens) - (rest.tokens[-1] in request.stop_token_ids)
        logprobs = (0.0,) * len(head) + rest.logprobs[:count] + (0.0,) * len(tail)
        return replace(rest, tokens=head + rest.tokens[:count] + tail, logprobs=logprobs, finish="stop")


def _certain(tokens: tuple[int, ...]) -> Sample:
    """Return a reply that was not sampled."""
    return Sample(tokens, (0.0,) * len(tokens), "stop")
