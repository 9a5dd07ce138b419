"""Two learner ranks beside one: tokens learned per second, each rank in a process of its own on one core.

Both do the same updates of the same adapters from the traces of Werewolf games (`bench.packing`), and time includes
what the driver sends and gets back. The traces are those of middle length, which make two micro-batches of about as
many tokens: a step has many, of which ranks get as many each.

`independent` is what the machine allows: two learners at once that share nothing but its memory, each with all of the
traces, beside one of them alone.
"""

from __future__ import annotations

import asyncio
import tempfile
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.alternate import Reading, alternate
from bench.clock import now
from bench.packing import games, item
from bench.recorded_conversations import conditions
from bench.several_engines import line
from training import bases
from training.attempts.progress import Progress
from training.cluster import processes
from training.cluster.supervisor import ProcessOptions
from training.engines.local.loading import load_tokenizer
from training.learn.batch import Item
from training.learn.ray_learners import RayLearners
from training.run_sections import LearnSection
from training.rundir import AttemptDir
from training.text.conversations import traces
from training.text.template import ChatTokenizer

__all__ = ["line", "measure"]

TRACES = 6


def measure(arguments: Namespace) -> dict[str, Any]:
    """Return the comparison."""
    folder = bases.resolve(arguments.model)
    chat = ChatTokenizer(load_tokenizer(folder))
    played = [trace for episode in games(arguments.games, arguments.seed) for trace in traces(episode, chat)]
    items = sorted((item(trace, number) for number, trace in enumerate(played)), key=lambda each: each.width)
    first = max(0, (len(items) - TRACES) // 2)
    items = items[first : first + TRACES]
    with processes.start(gpus=0), tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        progress = Progress(AttemptDir(Path(scratch)), 0)
        both, one, other = (_ranks(arguments, str(folder), cores) for cores in ((0, 1), (0,), (1,)))
        losses: dict[str, float] = {}
        compared = alternate(
            lambda: _learned([both], items, progress, losses, "both"),
            lambda: _learned([one], items, progress, losses, "one"),
            arguments.rounds,
        )
        both.close()
        independent = alternate(
            lambda: _learned([one, other], items, progress, losses, "each"),
            lambda: _learned([one], items, progress, losses, "one"),
            arguments.rounds,
        )
        for side in (one, other):
            side.close()
    return {
        "unit": "tokens per second",
        "sides": {"a": "two ranks", "b": "one rank"},
        **compared,
        "independent": {
            "unit": "tokens per second",
            "sides": {"a": "two learners at once", "b": "one learner"},
            **independent,
        },
        "work": {
            "traces": len(items),
            "tokens": sum(each.width for each in items),
            "loss_difference": abs(losses["both"] - losses["one"]),
        },
        "seed": arguments.seed,
        "conditions": {**conditions(arguments, 1), "tokens_per_batch": arguments.tokens},
    }


def _ranks(arguments: Namespace, folder: str, cores: Sequence[int]) -> RayLearners:
    """Return a learner with a rank on each of these cores."""
    learn = LearnSection.from_dict(
        {"lr": 1e-9, "kl": "none", "kl_measured": False, "critic_warmup": 0, "tokens_per_batch": arguments.tokens}
    )
    loaded = {"base": folder, "heads": ["turn"], "learn": learn, "seed": 0, "temperature": 1.0, "device": "cpu"}
    return RayLearners(loaded, ProcessOptions(count=len(cores), threads=1, cores=tuple((core,) for core in cores)))


def _learned(
    learners: Sequence[RayLearners], items: Sequence[Item], progress: Progress, losses: dict[str, float], name: str
) -> Reading:
    """Let all learners learn all items at once; `losses` gets that of the first by `name`."""

    async def learned() -> list[dict[str, float]]:
        return await asyncio.gather(*(learner.update(items, 1, progress) for learner in learners))

    began = now()
    metrics = asyncio.run(learned())
    seconds = now() - began
    losses[name] = metrics[0]["loss"]
    return Reading(len(learners) * sum(each.width for each in items) / seconds, {"update": seconds})
