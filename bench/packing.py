"""Packing: tokens learned per second in packed rows, beside the same traces in padded rows that are sorted by length.

The traces are those of all seats in scripted games of Werewolf, from the samples, whose rules and so whose lengths
vary. Both sides do one update of the same adapters on the same credit, with value heads. In a second comparison every
trace has branches: a question of `QUESTION` tokens behind each of `QUESTIONS` prefixes, as in methods that ask probes.
`padding` is the share of the padded rows that is padding. Without a GPU seconds are CPU time.
"""

from __future__ import annotations

import asyncio
import tempfile
from argparse import Namespace
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import torch

from bench import alternate, padded_rows
from bench.alternate import Reading
from bench.clock import now
from bench.recorded_conversations import conditions, device, use_threads
from training import bases, players, samples
from training.attempts.progress import Progress
from training.engines.local.loading import load_tokenizer
from training.learn.batch import Item, cut
from training.learn.policy import load
from training.learn.update import Updater
from training.records import LEARNER, Episode, Trace, TraceCredit
from training.rollout import Job, RolloutPolicy, collect
from training.run_sections import LearnSection
from training.rundir import AttemptDir
from training.seeding import rng
from training.text.conversations import traces
from training.text.template import ChatTokenizer

QUESTIONS, QUESTION = 6, 40


def measure(arguments: Namespace) -> dict[str, Any]:
    """Return both comparisons: traces alone, and with branches."""
    threads = use_threads(arguments.threads)
    torch.set_flush_denormal(True)  # as runs do
    side = Learning(arguments)
    chat = ChatTokenizer(load_tokenizer(bases.resolve(arguments.model)))
    played = [trace for episode in games(arguments.games, arguments.seed) for trace in traces(episode, chat)]
    return {
        "unit": "tokens per second of CPU time" if not torch.cuda.is_available() else "tokens per second",
        "sides": {"a": "one packed row", "b": "padded rows, sorted by length"},
        "traces": side.compared([item(trace, number) for number, trace in enumerate(played)], arguments.rounds),
        "branches": side.compared(
            [with_branches(item(trace, number)) for number, trace in enumerate(played)], arguments.rounds
        ),
        "seed": arguments.seed,
        "conditions": {**conditions(arguments, threads), "tokens_per_batch": arguments.tokens},
    }


def seconds_spent() -> float:
    """Return seconds: CPU time where there is no GPU, which other programs on the machine hardly change."""
    return now() if torch.cuda.is_available() else process_time()


class Learning:
    """One policy that both sides update, at a rate that leaves its float32 adapters as they are."""

    def __init__(self, arguments: Namespace) -> None:
        learn = {"lr": 1e-9, "kl": "none", "kl_measured": False, "critic_warmup": 0, "dtype": arguments.dtype}
        more = {"autocast": arguments.dtype == "bfloat16", "tokens_per_batch": arguments.tokens}
        self.learn = LearnSection.from_dict(learn | more)
        folder = str(bases.resolve(arguments.model))
        self.policy = load(folder, ("turn",), self.learn, seed=0, temperature=1.0, device=device())
        self.updater = Updater(self.policy, 0)
        self._scratch = tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True)
        self.progress = Progress(AttemptDir(Path(self._scratch.name)), 0)

    def compared(self, items: list[Item], rounds: int) -> dict[str, Any]:
        """Return both sides on the same items, with what each computes."""
        tokens = sum(each.width for each in items)
        losses: dict[bool, float] = {}

        def update(*, padded: bool) -> Reading:
            with padded_rows.instead(self.policy) if padded else nullcontext():
                began = seconds_spent()
                metrics = self.updater.run([items], 1, self.progress)
                seconds = seconds_spent() - began
            losses[padded] = metrics["loss"]
            return Reading(tokens / seconds, {"update": seconds})

        compared = alternate.alternate(lambda: update(padded=False), lambda: update(padded=True), rounds)
        passes, others = cut(items, self.learn.tokens_per_batch), padded_rows.cut(items, self.learn.tokens_per_batch)
        lengths = sorted(map(len, items))
        work = {
            "traces": len(items),
            "tokens": tokens,
            "lengths": [lengths[0], lengths[len(lengths) // 2], lengths[-1]],
            "padding": 1 - tokens / sum(map(padded_rows.size, others)),
            "passes": {"a": len(passes), "b": len(others)},
            "loss_difference": abs(losses[True] - losses[False]),
        }
        return {**compared, "work": work}


def games(count: int, seed: int) -> list[Episode]:
    """Return games of Werewolf between scripted players, one for each sample in turn."""
    starts = samples.for_game("werewolf")
    drawn = [starts[number % len(starts)].with_seed(seed + number) for number in range(count)]
    jobs = [Job(number, start, ("scripted",) * len(start.seats)) for number, start in enumerate(drawn)]
    makers = {"scripted": partial(players.make, "scripted")}
    return asyncio.run(collect(jobs, makers, lanes=8, rules=RolloutPolicy(seed=seed)))


def item(trace: Trace, number: int) -> Item:
    """Return a trace with an advantage of 1 or -1 on its sampled tokens, and values before them."""
    sampled = np.asarray(trace.mask, dtype=float)
    before = np.append(np.diff(sampled) > 0, False)
    credit = TraceCredit(
        ppo=sampled * (1.0 if number % 2 else -1.0),
        value_targets={"turn": np.ones(len(sampled))},
        value_mask={"turn": before},
    )
    return Item(trace, (number, 0), credit)


def with_branches(whole: Item) -> Item:
    """Return the item with questions behind its prefixes, whose last tokens have weight 1."""
    draw, length = rng(whole.trajectory[0], "questions"), len(whole)
    for _ in range(QUESTIONS):
        tokens = tuple(draw.choice(whole.trace.tokens) for _ in range(QUESTION))
        question = Trace(
            seat=whole.trace.seat,
            policy=LEARNER,
            tokens=tokens,
            mask=(0,) * QUESTION,
            turn=(-1,) * QUESTION,
            logprobs=(0.0,) * QUESTION,
            prefix=(0, draw.randrange(1, length)),
        )
        weights = np.zeros(QUESTION)
        weights[-4:] = 1.0
        whole.branches.append(Item(question, whole.trajectory, TraceCredit(nll=weights)))
    return whole


def line(result: dict[str, Any]) -> str:
    """Return one line for each comparison."""
    parts = {name: result[name] for name in ("traces", "branches")}
    return "; ".join(
        f"{name} {alternate.line(part, result['unit'])}, {100 * part['work']['padding']:.1f} % padding"
        for name, part in parts.items()
    )
