"""A seat played by an Engine: its context is one growing token trace, used unchanged for sampling and for learning.

Raises `EngineError` when sampling fails, the newest messages do not fit the window, or a legal move that a reply is
limited to is longer than a reply.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from training.engines.base import Engine, Sample, SampleRequest, Sampling
from training.engines.trie import Trie
from training.errors import BadInput, EngineError
from training.games import make
from training.players.base import Answer, Reply
from training.records import LEARNER, Action, Message, Observation, Probe, Scenario, Seat, Trace
from training.text.choices import MOST, count, replies
from training.text.messages import Chat, news
from training.text.template import ChatTokenizer
from training.text.tokens import TraceBuilder


class ModelPlayer:
    """One seat of one episode. `names` are the display names of all seats; `window` is the engine's, None = no bound.

    `policy` is the policy's name in the traces; only the learner's traces receive credit.
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
    ) -> None:
        self._engine = engine
        self._tokenizer = tokenizer
        self._sampling = sampling
        self._seat, self._names, self._policy = seat, names, policy
        self._builder = TraceBuilder(tokenizer, seat=seat, policy=policy, window=window, reserve=sampling.max_tokens)
        self._heard = 0
        self._cut = 0
        self._discarded = 0.0
        self._constrained = 0
        self._unlisted = 0

    async def act(self, seat: Seat, observation: Observation, seed: int) -> Reply:
        """Sample a reply to the new messages of `observation`; the trace already contains the earlier ones."""
        prompt = self._builder.prompt(self._news(observation))
        self._heard = len(observation.messages)
        choices = self._choices(observation.actions, seed) if self._sampling.constrain else ()
        sample = await self._sample(SampleRequest(prompt, self._sampling, seed, self._tokenizer.stop_ids, choices))
        self._cut += sample.finish == "length"
        self._discarded += sample.discarded
        text = self._builder.record(sample, Trie(choices) if choices else None)
        return Reply(text=text, tokens=sample.tokens)

    def _news(self, observation: Observation) -> list[Chat]:
        """Return what the trace does not contain yet."""
        return news(observation, self._heard, self._seat, self._names)

    async def _sample(self, request: SampleRequest) -> Sample:
        return await self._engine.sample(request)

    def _choices(self, actions: Sequence[Action], seed: int) -> tuple[tuple[int, ...], ...]:
        """Return the replies that decoding is limited to, none where it stays free; count them."""
        number = count(actions)
        if not 0 < number <= MOST:
            self._unlisted += number > MOST
            return ()
        self._constrained += 1
        try:
            return legal_replies(self._tokenizer, actions, self._sampling.max_tokens)
        except BadInput as error:  # in the middle of a run it ends this game alone
            raise EngineError(str(error)) from error

    async def believe(self, observation: Observation, probe: Probe) -> Answer | None:
        """Return the probability of each choice as the whole reply to the question, asked after the observation.

        The question is scored on a branch that leaves the seat's trace as it is. Probabilities of whole replies are
        normalised over the choices. Returns None if the question does not fit the window.
        """
        question = Message(author=None, text=probe.question)
        observation = Observation(messages=(*observation.messages, question))
        end = self._tokenizer.end_id
        replies = [[*self._tokenizer.encode(choice), end] for choice in probe.replies or probe.choices]
        prefix = self._builder.branch(self._news(observation), max(map(len, replies)) + 1)
        if prefix is None:
            return None
        scores = await self._engine.score(prefix, replies)
        highest = max(scores)
        weights = [math.exp(score - highest) for score in scores]
        shares = {choice: weight / sum(weights) for choice, weight in zip(probe.choices, weights, strict=True)}
        right = [at for at, choice in enumerate(probe.choices) if choice in probe.truth]
        if not right:
            return Answer(shares)
        likeliest = max(right, key=lambda at: scores[at])
        return Answer(shares, (*prefix, *replies[likeliest]), len(prefix), self._policy)

    def traces(self) -> tuple[Trace, ...]:
        """Return the seat's traces."""
        return self._builder.traces()

    def totals(self) -> Mapping[str, float]:
        """Return the number of replies cut at the maximum length, and the mass removed by top-p and top-k.

        Where replies are constrained, also the number of those that were, and of those with too many legal moves.
        """
        totals = {"cut": self._cut, "discarded": self._discarded}
        if self._sampling.constrain:
            totals |= {"constrained": self._constrained, "unlisted": self._unlisted}
        return totals


def check_choices(tokenizer: ChatTokenizer, sampling: Sampling, scenario: Scenario) -> None:
    """Raise `BadInput` if the first replies of a scenario are to be limited to its legal moves, and cannot."""
    if not sampling.constrain:
        return
    game = make(scenario)
    for seat in game.to_act() - {scenario.tool_seat}:
        actions = game.observe(seat).actions
        if 0 < count(actions) <= MOST:
            legal_replies(tokenizer, actions, sampling.max_tokens)


def legal_replies(tokenizer: ChatTokenizer, actions: Sequence[Action], longest: int) -> tuple[tuple[int, ...], ...]:
    """Return the tokens of every reply that performs one of `actions`, ended; raise `BadInput` for one too long."""
    listed = dict.fromkeys((*tokenizer.encode(tokenizer.neutral(text)), tokenizer.end_id) for text in replies(actions))
    if (needed := max(map(len, listed))) > longest:
        raise BadInput(f"a legal move takes {needed} tokens, more than {longest}: raise it", "sampling.max_tokens")
    return tuple(listed)
