"""Conversations per hour, sampled and learned from: Parley beside TRL's two ways to train on conversations.

All sides have the same model, games, turns per seat and token limits, adapters of one rank, and the clipped objective
without KL or critic. `per_turn`: TRL's GRPO with every turn as a sample; the prompts are those of Parley's players, and
TRL samples all turns at once, which a real conversation cannot. `multi_turn`: TRL's `rollout_func` with `env_mask`; it
plays Parley's games in lockstep, with one call of the trainer's model for each turn of all conversations. Both sample
with Transformers, as TRL 1.16 does where it has no vLLM; Parley samples with the engine that it chooses. The seconds
are divided into the parts of `bench.learning`, sampling, credit and (Parley alone) the weight sync.
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
from bench.recorded_conversations import ParleySampler, RecordedRequest, conditions, use_threads
from bench.trl_side import Grpo, per_pass
from training.engines.base import Sample, SampleRequest, Weights
from training.learn import models
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
    sampler = ParleySampler(arguments, arguments.conversations, arguments.conversations)
    update = Update(sampler.folder, arguments.dtype)
    episodes, _ = sampler.play()  # the recorded turns of TRL's first way, and the lengths of its second
    requests = [request for scenario in sampler.scenarios for request in sampler.requests[scenario.id]]

    def ours() -> Reading:
        return _ours(sampler, update)

    per_turn = _per_turn(sampler, update, arguments, requests)
    multi_turn = _multi_turn(sampler, update, arguments, episodes)
    count = len(sampler.scenarios)
    comparisons = {
        "per_turn": alternate(ours, lambda: _theirs(per_turn, count * per_turn.share), arguments.rounds),
        "multi_turn": alternate(ours, lambda: _theirs(multi_turn.grpo, count), arguments.rounds),
    }
    sampler.close()
    return {
        "measurement": "conversation",
        "unit": "conversations per hour",
        "sides": {"a": "Parley: sample, learn, hand over the weights", "b": "TRL's GRPO training step"},
        **comparisons,
        "ratio": {name: sides["ratio"] for name, sides in comparisons.items()},
        "work": {"conversations": count, "turns": len(requests), "tokens": sum(length for _, length in requests)},
        "calls": {"multi_turn b, each step": multi_turn.calls},
        "engine": sampler.name,
        "conditions": conditions(arguments, threads),
    }


def _theirs(grpo: Grpo, conversations: float) -> Reading:
    """Run one training step of TRL on `conversations` conversations."""
    seconds = grpo.step()
    return Reading(3600 * conversations / seconds, {"step": seconds}, grpo.parts)


def _ours(sampler: ParleySampler, update: Update) -> Reading:
    """Run one training step of Parley: play, credit, update, sync."""
    episodes, sampling = sampler.play()
    began = time.perf_counter()
    learning = update.step(_credited(episodes))
    crediting = time.perf_counter() - began - learning
    began = time.perf_counter()
    sampler.loop.run_until_complete(sampler.engine.load_weights(models.merged_weights(update.policy.model)))
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
        for trace, trace_credit in zip(episode.traces, credit.traces, strict=True):
            if trace_credit is not None:
                items.append(Item(trace, (number, trace.seat), trace_credit))
    return items


class _PerTurn(Grpo):
    """TRL with every turn as a sample; `share` is the share of the recorded turns that one step takes."""

    share = 1.0


def _per_turn(
    sampler: ParleySampler, update: Update, arguments: Namespace, requests: Sequence[RecordedRequest]
) -> _PerTurn:
    """Return the trainer of `per_turn`: every second recorded prompt, two samples of each, since GRPO needs groups."""
    prompts = [sampler.chat.tokenizer.decode(list(prompt), **PLAIN) for prompt, _ in requests[::2]]
    longest = max(len(prompt) for prompt, _ in requests) + arguments.tokens
    samples = 2 * len(prompts)
    trainer = _PerTurn(
        sampler.folder,
        arguments.dtype,
        prompts,
        samples=samples,
        completion=arguments.tokens,
        per_pass=per_pass(samples, longest, update.learn.tokens_per_batch),
        group=2,
    )
    trainer.share = samples / len(requests)
    return trainer


PLAIN = {"skip_special_tokens": False, "clean_up_tokenization_spaces": False}


class _MultiTurn:
    """TRL's multi-turn path: its `rollout_func` plays the conversations with the model that is being trained."""

    def __init__(self, sampler: ParleySampler) -> None:
        self.sampler = sampler
        self.grpo: Grpo
        self.calls: list[int] = []
        """The number of model calls of each step; with whole batches it is the number of turns of a conversation."""

    def rollout(self, prompts: list[Any], trainer: Any) -> dict[str, Any]:
        """Play all conversations; return each seat's trace as one sample, with a mask for tokens it did not sample."""
        engine = Generate(trainer.accelerator.unwrap_model(trainer.model))

        def player(scenario: Scenario, seat: Seat) -> ModelPlayer:
            return ModelPlayer(engine, self.sampler.chat, self.sampler.sampling, seat=seat, names=scenario.seats)

        jobs = [Job(number, scenario, (LEARNER, LEARNER)) for number, scenario in enumerate(self.sampler.scenarios)]
        episodes = asyncio.run(collect(jobs, {LEARNER: player}, lanes=len(jobs), rules=RolloutPolicy()))
        self.calls.append(engine.calls)
        cut = [_cut(_whole(episode, seat)) for episode in episodes for seat in (0, 1)]
        keys = ("prompt_ids", "completion_ids", "env_mask", "logprobs")
        return {key: [list(parts[place]) for parts in cut] for place, key in enumerate(keys)}


def _multi_turn(
    sampler: ParleySampler, update: Update, arguments: Namespace, episodes: Sequence[Episode]
) -> _MultiTurn:
    trainer = _MultiTurn(sampler)
    longest = max(len(trace.tokens) for episode in episodes for trace in episode.traces)
    samples = 2 * len(sampler.scenarios)
    trainer.grpo = Grpo(
        sampler.folder,
        arguments.dtype,
        ["x"] * samples,
        samples=samples,
        completion=longest,
        per_pass=per_pass(samples, longest, update.learn.tokens_per_batch),
        rollout=trainer.rollout,
    )
    return trainer


def _whole(episode: Episode, seat: Seat) -> Trace:
    """Return a seat's longest trace, which is complete unless the conversation branched."""
    traces = [trace for trace in episode.traces if trace.seat == seat and any(trace.mask)]
    if episode.error or not traces:
        raise RuntimeError(f"a seat said nothing: {episode.error}")
    return max(traces, key=lambda trace: len(trace.tokens))


def _cut(trace: Trace) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[float, ...]]:
    """Return (prompt, completion, mask, log-probabilities) of a trace: the completion begins at its first reply."""
    first = trace.mask.index(1)
    return trace.tokens[:first], trace.tokens[first:], trace.mask[first:], trace.logprobs[first:]


class Generate:
    """An engine over `model.generate`: simultaneous requests form one padded batch, as in TRL's own generation."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self.calls = 0
        self._waiting: list[tuple[SampleRequest, asyncio.Future[Sample]]] = []
        self._task: asyncio.Task[None] | None = None

    async def sample(self, request: SampleRequest) -> Sample:
        """Wait until all tasks that can send a request have sent it, then sample them as a batch."""
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
        """Raise: this engine only samples."""
        raise RuntimeError("this engine only samples")

    async def load_weights(self, weights: Weights, version: int | None = None) -> None:
        """Do nothing: the weights are those of the trainer."""

    async def close(self) -> None:
        """Do nothing."""

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
        output: Tensor = self._model.generate(
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
        return [_until_stop(row, stops) for row in output[:, longest:].tolist()]


def _until_stop(tokens: list[int], stops: Sequence[int]) -> tuple[int, ...]:
    end = next((place + 1 for place, token in enumerate(tokens) if token in stops), len(tokens))
    return tuple(tokens[:end])


def show(result: dict[str, Any]) -> str:
    """Return one line with each ratio, and two with the seconds of each part."""
    return "\n".join(
        f"{name}: {result[name]['a']['median']:.0f} against {result[name]['b']['median']:.0f} "
        f"{result['unit']}: {result[name]['ratio']:.2f}\n{where(result[name])}"
        for name in ("per_turn", "multi_turn")
    )
