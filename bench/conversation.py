"""Conversations an hour, sampled and learned from: Parley beside TRL's two ways to train on conversations.

The same model, games, turns a seat and token limits; adapters of one rank, the clipped objective, no KL, no critic.
`per_turn`: TRL's GRPO with every turn a sample of its own, its prompt being what Parley's player had sent; TRL samples
the turns all at once, which no real conversation could. `multi_turn`: TRL's own way, `rollout_func` with `env_mask`;
it plays Parley's games in step, each turn of all conversations one call of the trainer's model. Both sample with
Transformers, as TRL 1.16 does where its vLLM is not at hand; Parley samples with whatever engine it chooses. Where the
time goes is told in the parts of `bench.learning`, beside sampling, credit and (Parley alone) the weights' hand-over.
"""

from __future__ import annotations

import asyncio
import time
from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from bench.alternate import Reading, alternate, where
from bench.learning import Update
from bench.recorded_conversations import Ask, Talks, conditions, use_threads
from bench.trl_side import Grpo, per_pass
from training.engines.base import Sample, SampleRequest, Weights
from training.learn import sync
from training.learn.batch import Item
from training.methods.omar import OmarConfig
from training.players.model import ModelPlayer
from training.records import LEARNER, Episode, Scenario, ScoredEpisode, Seat, Trace
from training.rollout import Job, RolloutPolicy, collect

if TYPE_CHECKING:
    from torch import Tensor

METHOD = OmarConfig(advantage="group_relative")
"""The form of credit without a critic, as GRPO has none."""


def main(arguments: Namespace) -> dict[str, Any]:
    """Return both comparisons."""
    threads = use_threads(arguments.threads)
    talks = Talks(arguments, arguments.conversations, arguments.conversations)
    update = Update(talks.folder, arguments.dtype)
    episodes, _ = talks.play()  # the recorded turns of TRL's first way, and the lengths of its second
    asked = [ask for scenario in talks.scenarios for ask in talks.asked[scenario.id]]

    def ours() -> Reading:
        return _ours(talks, update)

    per_turn = _per_turn(talks, update, arguments, asked)
    multi_turn = _multi_turn(talks, update, arguments, episodes)
    held = len(talks.scenarios)
    found = {
        "per_turn": alternate(ours, lambda: _theirs(per_turn, held * per_turn.share), arguments.rounds),
        "multi_turn": alternate(ours, lambda: _theirs(multi_turn.grpo, held), arguments.rounds),
    }
    talks.close()
    return {
        "measurement": "conversation",
        "unit": "conversations an hour",
        "sides": {"a": "Parley: sample, learn, hand over the weights", "b": "TRL's GRPO training step"},
        **found,
        "ratio": {name: one["ratio"] for name, one in found.items()},
        "work": {"conversations": held, "turns": len(asked), "tokens": sum(count for _, count in asked)},
        "calls": {"multi_turn b, each step": multi_turn.calls},
        "engine": talks.name,
        "conditions": conditions(arguments, threads),
    }


def _theirs(grpo: Grpo, conversations: float) -> Reading:
    """One training step of TRL's, which learns from so many conversations."""
    seconds = grpo.step()
    return Reading(3600 * conversations / seconds, {"step": seconds}, grpo.parts)


def _ours(talks: Talks, update: Update) -> Reading:
    """One training step: play, credit, update, sync."""
    episodes, sampling = talks.play()
    began = time.perf_counter()
    learning = update.step(_credited(episodes))
    crediting = time.perf_counter() - began - learning
    began = time.perf_counter()
    talks.loop.run_until_complete(sync.push(update.policy, talks.engine))
    syncing = time.perf_counter() - began
    seconds = {"sampling": sampling, "credit": crediting, "learning": learning, "sync": syncing}
    parts = {"sampling": sampling, "credit": crediting, **update.parts, "sync": syncing}
    return Reading(3600 * len(episodes) / sum(seconds.values()), seconds, parts)


def _credited(episodes: Sequence[Episode]) -> list[Item]:
    """Return the items of an update; the rewards differ by seat, so that no advantage is zero."""
    method, items = METHOD.build(), []
    for number, episode in enumerate(episodes):
        if episode.error:
            raise RuntimeError(f"a conversation failed: {episode.error.message}")
        passed = [True] * len(episode.turns)
        scored = ScoredEpisode(episode, {0: 0.0, 1: 1.0}, [0.0] * len(episode.turns), passed)
        (credit,) = method.credit([scored])
        for trace, given in zip(episode.traces, credit.traces, strict=True):
            if given is not None:
                items.append(Item(trace, (number, trace.seat), given))
    return items


class _PerTurn(Grpo):
    """TRL's first way; `share` is the part of all recorded turns that one step takes."""

    share = 1.0


def _per_turn(talks: Talks, update: Update, arguments: Namespace, asked: Sequence[Ask]) -> _PerTurn:
    """Turns in pairs that share a prompt, for GRPO needs groups; every second recorded prompt, from the first on."""
    prompts = [talks.chat.tokenizer.decode(list(prompt), **PLAIN) for prompt, _ in asked[::2]]
    longest = max(len(prompt) for prompt, _ in asked) + arguments.tokens
    samples = 2 * len(prompts)
    made = _PerTurn(
        talks.folder,
        arguments.dtype,
        prompts,
        samples=samples,
        completion=arguments.tokens,
        per_pass=per_pass(samples, longest, update.learn.tokens_per_batch),
        group=2,
    )
    made.share = samples / len(asked)
    return made


PLAIN = {"skip_special_tokens": False, "clean_up_tokenization_spaces": False}


class _MultiTurn:
    """TRL's second way: its `rollout_func` holds the conversations with the model that is being trained."""

    def __init__(self, talks: Talks) -> None:
        self.talks = talks
        self.grpo: Grpo
        self.calls: list[int] = []
        """Of each step, how often the model was asked; with whole batches as often as a conversation has turns."""

    def rollout(self, prompts: list[Any], trainer: Any) -> dict[str, Any]:
        """Hold all conversations; return every seat's part as one sample with a mask over what it did not say."""
        engine = Generate(trainer.accelerator.unwrap_model(trainer.model))

        def player(scenario: Scenario, seat: Seat) -> ModelPlayer:
            return ModelPlayer(engine, self.talks.chat, self.talks.sampling, seat=seat, names=scenario.seats)

        jobs = [Job(number, scenario, (LEARNER, LEARNER)) for number, scenario in enumerate(self.talks.scenarios)]
        episodes = asyncio.run(collect(jobs, {LEARNER: player}, lanes=len(jobs), rules=RolloutPolicy()))
        self.calls.append(engine.calls)
        cut = [_cut(_whole(episode, seat)) for episode in episodes for seat in (0, 1)]
        keys = ("prompt_ids", "completion_ids", "env_mask", "logprobs")
        return {key: [list(parts[place]) for parts in cut] for place, key in enumerate(keys)}


def _multi_turn(talks: Talks, update: Update, arguments: Namespace, episodes: Sequence[Episode]) -> _MultiTurn:
    made = _MultiTurn(talks)
    longest = max(len(trace.tokens) for episode in episodes for trace in episode.traces)
    samples = 2 * len(talks.scenarios)
    made.grpo = Grpo(
        talks.folder,
        arguments.dtype,
        ["x"] * samples,
        samples=samples,
        completion=longest,
        per_pass=per_pass(samples, longest, update.learn.tokens_per_batch),
        rollout=made.rollout,
    )
    return made


def _whole(episode: Episode, seat: Seat) -> Trace:
    """Return a seat's longest trace: its whole part, unless a conversation branched."""
    own = [trace for trace in episode.traces if trace.seat == seat and any(trace.mask)]
    if episode.error or not own:
        raise RuntimeError(f"a seat said nothing: {episode.error}")
    return max(own, key=lambda trace: len(trace.tokens))


def _cut(trace: Trace) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[float, ...]]:
    """Return (prompt, completion, mask, log-probabilities) of a trace: the completion begins at its first reply."""
    first = trace.mask.index(1)
    return trace.tokens[:first], trace.tokens[first:], trace.mask[first:], trace.logprobs[first:]


class Generate:
    """An engine over `model.generate`: what is asked in one moment is one padded batch, as in TRL's own generation."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self.calls = 0
        self._waiting: list[tuple[SampleRequest, asyncio.Future[Sample]]] = []
        self._task: asyncio.Task[None] | None = None

    async def sample(self, request: SampleRequest) -> Sample:
        """Wait until everybody who could ask has asked, then sample together."""
        future: asyncio.Future[Sample] = asyncio.get_running_loop().create_future()
        self._waiting.append((request, future))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._flush())
        task = self._task
        both: set[asyncio.Future[Any]] = {future, task}
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        if not future.done():
            task.result()  # raises what the model raised
        return future.result()

    async def score(self, prefix: Sequence[int], continuations: Sequence[Sequence[int]]) -> list[float]:
        """Not measured here."""
        raise RuntimeError("this engine only samples")

    async def load_weights(self, weights: Weights) -> None:
        """Its weights are the trainer's own."""

    async def close(self) -> None:
        """It holds nothing."""

    async def _flush(self) -> None:
        while self._waiting:
            for _ in range(20):
                await asyncio.sleep(0)
            batch, self._waiting = self._waiting, []
            replies = self._generate([request for request, _ in batch])
            for (_, future), tokens in zip(batch, replies, strict=True):
                future.set_result(Sample(tokens, (0.0,) * len(tokens), "stop"))

    @torch.no_grad()
    def _generate(self, requests: Sequence[SampleRequest]) -> list[tuple[int, ...]]:
        self.calls += 1
        longest = max(len(request.prompt) for request in requests)
        ids = torch.zeros((len(requests), longest), dtype=torch.long)
        mask = torch.zeros_like(ids)
        for row, request in enumerate(requests):
            ids[row, longest - len(request.prompt) :] = torch.tensor(request.prompt)
            mask[row, longest - len(request.prompt) :] = 1
        stops, sampling = list(requests[0].stop_token_ids), requests[0].sampling
        device = self._model.device
        found: Tensor = self._model.generate(
            input_ids=ids.to(device),
            attention_mask=mask.to(device),
            do_sample=True,
            temperature=sampling.temperature,
            top_k=0,
            top_p=1.0,
            max_new_tokens=sampling.max_tokens,
            eos_token_id=stops,
            pad_token_id=stops[0],
        )
        return [_until_stop(row, stops) for row in found[:, longest:].tolist()]


def _until_stop(tokens: list[int], stops: Sequence[int]) -> tuple[int, ...]:
    end = next((place + 1 for place, token in enumerate(tokens) if token in stops), len(tokens))
    return tuple(tokens[:end])


def show(result: dict[str, Any]) -> str:
    """Return each ratio in a line, and where the time goes in two."""
    return "\n".join(
        f"{name}: {result[name]['a']['median']:.0f} against {result[name]['b']['median']:.0f} "
        f"{result['unit']}: {result[name]['ratio']:.2f}\n{where(result[name])}"
        for name in ("per_turn", "multi_turn")
    )
