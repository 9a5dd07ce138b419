"""Learning: one of Parley's updates beside one of TRL's GRPO on the same token sequences.

Both sides have the same model, number format, threads, adapters, token sequences and scored positions, and do one
optimizer step on the clipped objective without KL. TRL receives finished samples through its `rollout_func`, so that
neither side samples. The compared rate is training tokens per second (prompts and completions, without padding). Each
side's seconds are divided into the layers (`forward`), the output layer with its log-probabilities (`head`), the
backward pass, the optimizer with its clipping, and `data`: building batches, in TRL also rewards and advantages.
"""

from __future__ import annotations

import tempfile
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.alternate import Reading, alternate, where
from bench.clock import Clock, watched
from bench.recorded_conversations import conditions, device, use_threads
from bench.trl_side import ALPHA, RANK, Grpo, per_pass
from training import bases
from training.attempts.progress import Progress
from training.learn import update
from training.learn.batch import Item
from training.learn.policy import Policy, load
from training.learn.update import Updater
from training.records import Trace, TraceCredit
from training.run_sections import LearnSection
from training.rundir import AttemptDir
from training.sections import LoraConfig
from training.seeding import rng

Sample = tuple[list[int], list[int]]


def main(arguments: Namespace) -> dict[str, Any]:
    """Return both sides' tokens per second and the ratio."""
    threads = use_threads(arguments.threads)
    folder = bases.resolve(arguments.model)
    ours = Update(folder, arguments.dtype)
    data = sequences(arguments.samples, arguments.prompt, arguments.completion, ours.policy)
    items = [item(prompt, completion, number) for number, (prompt, completion) in enumerate(data)]
    size = per_pass(arguments.samples, arguments.prompt + arguments.completion, ours.learn.tokens_per_batch)
    theirs = trl_trainer(data, folder, arguments.dtype, size)
    tokens = sum(len(prompt) + len(completion) for prompt, completion in data)

    def update_once() -> Reading:
        seconds = ours.step(items)
        return Reading(tokens / seconds, {"update": seconds}, ours.parts)

    def trl_step() -> Reading:
        seconds = theirs.step()
        return Reading(tokens / seconds, {"update": seconds}, theirs.parts)

    comparison = alternate(update_once, trl_step, arguments.rounds)
    return {
        "measurement": "learning",
        "unit": "tokens per second",
        "sides": {"a": "Parley's update", "b": "TRL's GRPO training step on finished samples"},
        **comparison,
        "work": {
            "samples": arguments.samples,
            "tokens": tokens,
            "scored": sum(len(completion) for _, completion in data),
            "lora_rank": RANK,
            "tokens_per_batch": ours.learn.tokens_per_batch,
            "trl_samples_per_pass": size,
        },
        "conditions": conditions(arguments, threads),
    }


def trl_trainer(data: Sequence[Sample], folder: Path, dtype: str, size: int) -> Grpo:
    """Return TRL's trainer, which takes `data` instead of sampling and has `size` samples in a forward pass."""

    def supply(prompts: list[Any], trainer: Any) -> dict[str, Any]:
        return {
            "prompt_ids": [prompt for prompt, _ in data],
            "completion_ids": [completion for _, completion in data],
            "logprobs": [[0.0] * len(completion) for _, completion in data],
        }

    longest = max(len(completion) for _, completion in data)
    prompts = ["x"] * len(data)
    return Grpo(folder, dtype, prompts, samples=len(data), completion=longest, per_pass=size, rollout=supply)


class Update:
    """Parley's learning alone: a policy with adapters, no value heads, no KL; one optimizer step per call.

    `parts` holds the seconds of the last step by part.
    """

    def __init__(self, folder: Path, dtype: str) -> None:
        lora = LoraConfig(rank=RANK, alpha=ALPHA)
        self.learn = LearnSection.from_dict(
            {"lora": lora.to_dict(), "dtype": dtype, "lr": 1e-6, "kl": "none", "kl_measured": False, "critic_warmup": 0}
        )
        self.policy: Policy = load(str(folder), (), self.learn, seed=0, temperature=1.0, device=device())
        self.updater = Updater(self.policy, 0)
        self._scratch = tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True)
        self.progress = Progress(AttemptDir(Path(self._scratch.name)), 0)
        self.parts: dict[str, float] = {}

    def step(self, items: list[Item]) -> float:
        """Do one update; return its seconds."""
        clock = Clock()
        calls = ((self.policy, "hidden", "forward"), (self.policy, "logprobs", "head"), (update, "batches", "data"))
        with watched(clock, *calls):
            clock.start()
            self.updater.run(self.updater.plan(items, 1), 1, self.progress)
            self.parts = clock.stop()
        return sum(self.parts.values())


def sequences(samples: int, prompt: int, completion: int, policy: Policy) -> list[Sample]:
    """Return random token sequences of the given lengths; the cost of a step does not depend on the tokens."""
    draw, size = rng(0, "learning"), int(policy.inner.config.vocab_size)
    return [
        ([draw.randrange(size) for _ in range(prompt)], [draw.randrange(size) for _ in range(completion)])
        for _ in range(samples)
    ]


def item(prompt: list[int], completion: list[int], number: int) -> Item:
    """Return one trace with an advantage of 1 or -1 on every completion token."""
    length = len(prompt) + len(completion)
    sampled = tuple([0] * len(prompt) + [1] * len(completion))
    trace = Trace(
        seat=0,
        tokens=tuple(prompt + completion),
        mask=sampled,
        turn=tuple(mark - 1 for mark in sampled),
        logprobs=(0.0,) * length,
    )
    advantages = np.where(np.asarray(sampled) == 1, 1.0 if number % 2 else -1.0, 0.0)
    return Item(trace, (number, 0), TraceCredit(ppo=advantages))


def show(result: dict[str, Any]) -> str:
    """Return one line with the ratio, and two with the seconds of each part."""
    ratio = f"{result['a']['median']:.1f} against {result['b']['median']:.1f} {result['unit']}: {result['ratio']:.2f}"
    return f"{ratio}\n{where(result)}"
