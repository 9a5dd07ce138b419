"""A seat played by an Engine: its context is one growing token trace, used unchanged for sampling and for learning.

Raises `EngineError` when sampling fails or the newest messages do not fit the window.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from training.engines.base import Engine, SampleRequest, Sampling
from training.players.base import Reply
from training.records import LEARNER, Message, Observation, Probe, Seat, Trace
from training.text.messages import news
from training.text.template import ChatTokenizer
from training.text.tokens import TraceBuilder


class ModelPlayer:
    """One seat of one episode. `names` are the display names of all seats; `window` is the engine's, None = no bound.

    `policy` is the policy's name in the traces; only the learner's traces receive credit. `version` returns the
    training step of the engine's weights, None = not recorded.
    """

    def __init__(
        self,
        engine: Engine,
        tokenizer: ChatTokenizer,
        sampling: Sampling,
        *,
        seat: Seat,
        names: Sequence[str],
        policy: str = LEARNER,
        window: int | None = None,
        version: Callable[[], int] | None = None,
    ) -> None:
        self._engine = engine
        self._tokenizer = tokenizer
        self._sampling = sampling
        self._seat, self._names = seat, names
        self._builder = TraceBuilder(tokenizer, seat=seat, policy=policy, window=window, reserve=sampling.max_tokens)
        self._version = version
        self._heard = 0
        self._cut = 0
        self._discarded = 0.0

    async def act(self, seat: Seat, observation: Observation, seed: int) -> Reply:
        """Sample a reply to the new messages of `observation`; the trace already contains the earlier ones."""
        prompt = self._builder.prompt(news(observation, self._heard, self._seat, self._names))
        self._heard = len(observation.messages)
        stop_ids = self._tokenizer.stop_ids
        version = self._version() if self._version else None
        sample = await self._engine.sample(SampleRequest(prompt, self._sampling, seed, stop_ids))
        self._cut += sample.finish == "length"
        self._discarded += sample.discarded
        return Reply(text=self._builder.record(sample, version), tokens=sample.tokens)

    async def believe(self, observation: Observation, probe: Probe) -> Mapping[str, float] | None:
        """Return the probability of each choice as the whole reply to the question, asked after the observation.

        The question is scored on a temporary branch of the seat's trace. Probabilities of whole replies are normalised
        over the choices. Returns None if the question does not fit the window.
        """
        question = Message(author=None, text=probe.question)
        observation = Observation(messages=(*observation.messages, question))
        end = self._tokenizer.end_id
        replies = [[*self._tokenizer.encode(choice), end] for choice in probe.choices]
        prefix = self._builder.branch(
            news(observation, self._heard, self._seat, self._names), max(map(len, replies)) + 1
        )
        if prefix is None:
            return None
        scores = await self._engine.score(prefix, replies)
        highest = max(scores)
        weights = [math.exp(score - highest) for score in scores]
        return {choice: weight / sum(weights) for choice, weight in zip(probe.choices, weights, strict=True)}

    def traces(self) -> tuple[Trace, ...]:
        """Return the seat's traces."""
        return self._builder.traces()

    def totals(self) -> Mapping[str, float]:
        """Return the number of replies cut at the maximum length, and the mass removed by top-p and top-k."""
        return {"cut": self._cut, "discarded": self._discarded}
