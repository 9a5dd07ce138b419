"""A model of the seconds of one training step, by the number of GPUs: pure arithmetic, see `docs/scale.md`.

An engine that decodes b sequences at once takes `decode_step` + b · `decode_token` for one token of each. Turns of a
conversation are sequential, so an engine decodes at least as many steps as the longest conversation has tokens. The
driver plays the games meanwhile, one turn after the other. Learner ranks read whole micro-batches; FSDP gathers the
weights for the forward and for the backward pass of each, and reduces its gradients. Engines take the new weights from
the store of their node; to other nodes than the first rank's they are sent. Without a lag a step is the sum of these;
with a lag sampling and learning overlap, and the slower of the two counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a step has to do. Tokens are means over conversations; `longest` is in means of the sampled tokens.

    `sampled`: tokens that an engine decodes. `read`: prompt tokens that it has not read before. `learned`: tokens of
    the traces, over all seats.
    """

    conversations: int
    turns: float
    sampled: float
    read: float
    learned: float
    longest: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What the parts cost, in seconds, bytes and seconds per byte.

    `running`: most sequences that an engine decodes at once. `batch`: tokens of a micro-batch. `update`: the fixed part
    of learning. `collective_bytes`: what each of many ranks gathers and reduces for a micro-batch, each byte `within`
    a node or, with more than `per_node` ranks, `between` nodes; `overlapped`: while it computes. `weights`: bytes that
    the engines get. `load`: gathering, storing and loading a byte on one node. `send`: to each further node, which all
    read from the first. `turn` and `credit`: the driver's work for a turn, and for a conversation once it has been
    played. `fixed`: the rest of a step.
    """

    decode_step: float
    decode_token: float
    read_token: float = 0.0
    running: int = 1024
    learn_token: float
    batch: int
    update: float = 0.0
    collective_bytes: float = 0.0
    within: float = 0.0
    between: float = 0.0
    overlapped: bool = False
    weights: float = 0.0
    load: float = 0.0
    send: float = 0.0
    turn: float = 0.0
    credit: float = 0.0
    fixed: float = 0.0
    per_node: int = 8


@dataclass(frozen=True, slots=True)
class Layout:
    """Processes on GPUs. `shared`: engine and learner are on one, where they alternate."""

    engines: int
    ranks: int
    nodes: int = 1
    shared: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """The seconds of a step's parts: engines, the driver's turns, learning, sync, credit and writing, the rest."""

    engines: float
    driver: float
    learning: float
    sync: float
    credit: float
    fixed: float

    @property
    def alternating(self) -> float:
        """Seconds of a step without a lag."""
        return max(self.engines, self.driver) + self.learning + self.sync + self.credit + self.fixed

    @property
    def overlapping(self) -> float:
        """Seconds of a step with a lag: of who samples, who learns, and the driver, who works for both."""
        playing = max(self.engines, self.driver) + self.sync
        learning = self.learning + self.sync + self.credit + self.fixed
        return max(playing, learning, self.driver + self.credit)


def engines(work: Work, costs: Costs, count: int) -> float:
    """Return the seconds that the busiest of `count` engines samples."""
    most = math.ceil(work.conversations / count)
    steps = work.sampled * max(work.longest, most / costs.running)
    return costs.decode_step * steps + most * (work.sampled * costs.decode_token + work.read * costs.read_token)


def collectives(costs: Costs, ranks: int) -> float:
    """Return the seconds in which FSDP gathers weights and reduces gradients, for one micro-batch."""
    each = costs.within if ranks <= costs.per_node else costs.between
    return costs.collective_bytes * (ranks - 1) / ranks * each


def learning(work: Work, costs: Costs, ranks: int) -> float:
    """Return the seconds of an update: micro-batches are whole, and ranks read them in turn."""
    tokens = work.conversations * work.learned
    size = min(costs.batch, math.ceil(tokens / ranks))
    rounds = math.ceil(math.ceil(tokens / size) / ranks)
    compute, communication = size * costs.learn_token, collectives(costs, ranks)
    return costs.update + rounds * (max(compute, communication) if costs.overlapped else compute + communication)


def sync(costs: Costs, layout: Layout) -> float:
    """Return the seconds until all engines have new weights. Ranks fill the first nodes, engines the others."""
    receiving = layout.nodes - max(1, layout.ranks // costs.per_node)
    return costs.weights * (costs.load + costs.send * receiving)


def step(work: Work, costs: Costs, layout: Layout) -> Step:
    """Return the seconds of a step's parts."""
    return Step(
        engines(work, costs, layout.engines),
        work.conversations * work.turns * costs.turn,
        learning(work, costs, layout.ranks),
        sync(costs, layout),
        work.conversations * costs.credit,
        costs.fixed,
    )


def layouts(gpus: int, per_node: int = 8) -> Iterator[Layout]:
    """Yield the ways to divide GPUs between ranks and engines."""
    nodes = math.ceil(gpus / per_node)
    if gpus == 1:
        yield Layout(1, 1, shared=True)
    for ranks in range(1, gpus):
        yield Layout(gpus - ranks, ranks, nodes)


def seconds(parts: Step, layout: Layout, *, lag: bool) -> float:
    """Return the seconds of a step with or without a lag; on a shared GPU there is none."""
    return parts.overlapping if lag and not layout.shared else parts.alternating


def best(work: Work, costs: Costs, gpus: int, *, lag: bool) -> tuple[Layout, Step]:
    """Return the layout with the fastest step, and its parts; of equally fast ones that with the other `lag`."""
    options = [(layout, step(work, costs, layout)) for layout in layouts(gpus, costs.per_node)]
    return min(options, key=lambda option: [seconds(option[1], option[0], lag=each) for each in (lag, not lag)])


def limit(work: Work, costs: Costs, gpus: int, *, lag: bool) -> tuple[str, float]:
    """Return what a step would be fastest without, if the GPUs were then divided anew, and its seconds without it.

    Of several parts that would gain as much, to a thousandth, all are named.
    """
    without = {
        "the longest conversation": replace(costs, decode_step=0.0),
        "decoding": replace(costs, decode_token=0.0, read_token=0.0),
        "driver": replace(costs, turn=0.0, credit=0.0),
        "micro-batches": replace(costs, learn_token=0.0),
        "FSDP collectives": replace(costs, collective_bytes=0.0),
        "sync": replace(costs, weights=0.0),
        "update": replace(costs, update=0.0, fixed=0.0),
    }
    fastest = {name: best(work, changed, gpus, lag=lag) for name, changed in without.items()}
    times = {name: seconds(parts, layout, lag=lag) for name, (layout, parts) in fastest.items()}
    least = min(times.values())
    return " or ".join(name for name, each in times.items() if each <= 1.001 * least), least


def enough(rate: Callable[[int], float], most: int = 512) -> int:
    """Return the least number of GPUs whose rate is within 1 % of the highest up to `most`."""
    rates = {gpus: rate(gpus) for gpus in range(1, most + 1)}
    highest = max(rates.values())
    return next(gpus for gpus, each in rates.items() if each >= 0.99 * highest)


def knee(rate: Callable[[int], float], least: int = 8, most: int = 512) -> int | None:
    """Return the least of 8, 16, 32 … GPUs whose doubling adds less than half of the rate; None up to `most`."""
    while least <= most:
        if rate(2 * least) < 1.5 * rate(least):
            return least
        least *= 2
    return None


def title(check: Mapping[str, Any]) -> str:
    """Return which steps a check of the model is about, in words."""
    engines = f"{check['engines']} engine{'s' if check['engines'] > 1 else ''}"
    return f"{engines}, lag {check['lag']}, {check['conversations']} conversations"
