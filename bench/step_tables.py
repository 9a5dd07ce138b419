"""The model of a step on GPUs: a row by their number, from published costs and from the driver's measured ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from bench import gpu_costs, step_model
from bench.step_model import Costs, Layout, Step, Work

GPUS = (1, 8, 32, 64, 128, 256, 512)


@dataclass(frozen=True, slots=True)
class Row:
    """The fastest layout on so many GPUs with a lag: its parts, its seconds with a lag and without, and what limits it:
    without that, and with the GPUs divided anew, a step takes `unlimited_s`.
    """

    gpus: int
    work: Work
    layout: Layout
    parts: Step
    limit: str
    unlimited_s: float

    @property
    def lag_0_s(self) -> float:
        """Seconds of a step without a lag."""
        return step_model.seconds(self.parts, self.layout, lag=False)

    @property
    def lag_1_s(self) -> float:
        """Seconds of a step with a lag."""
        return step_model.seconds(self.parts, self.layout, lag=True)

    @property
    def rate(self) -> float:
        """Conversations per hour with a lag."""
        return 3600 * self.work.conversations / self.lag_1_s

    @property
    def unlimited_rate(self) -> float:
        """Conversations per hour with a lag, without what limits them."""
        return 3600 * self.work.conversations / self.unlimited_s


@dataclass(frozen=True, slots=True)
class Scaling:
    """Rows by the number of GPUs, the number whose doubling adds less than half, and the least number of all whose
    rate is within 1 % of the highest.
    """

    rows: tuple[Row, ...]
    knee: int | None
    enough: int


def costs(driver: Mapping[str, Any], trained: float = gpu_costs.TRAINED) -> Costs:
    """Return the costs with a driver that was measured; what it does for a trace grows with the trace's tokens.

    A GPU trains on `trained` tokens per second.
    """
    credit = driver["credit_s"] / driver["work"]["trace_tokens"] * gpu_costs.WORK.learned
    turn = driver["turn_s"] + driver["request_s"]
    return gpu_costs.costs(gpu_costs.FOUR_B, turn=turn, credit=credit, trained=trained)


def strong(costs: Costs) -> Scaling:
    """Return the table for the same work on more GPUs."""
    return _scaling(lambda gpus: gpu_costs.WORK, costs)


def weak(costs: Costs) -> Scaling:
    """Return the table for as much work for each GPU."""
    each = gpu_costs.WORK.conversations // 8
    return _scaling(lambda gpus: replace(gpu_costs.WORK, conversations=each * gpus), costs)


def _scaling(work_on: Callable[[int], Work], costs: Costs) -> Scaling:
    def row(gpus: int) -> Row:
        work = work_on(gpus)
        layout, parts = step_model.best(work, costs, gpus, lag=True)
        return Row(gpus, work, layout, parts, *step_model.limit(work, costs, gpus, lag=True))

    def rate(gpus: int) -> float:
        work = work_on(gpus)
        layout, parts = step_model.best(work, costs, gpus, lag=True)
        return 3600 * work.conversations / step_model.seconds(parts, layout, lag=True)

    return Scaling(tuple(map(row, GPUS)), step_model.knee(rate), step_model.enough(rate))


def facts(costs: Costs) -> str:
    """Return the work and the costs in words."""
    work, cost = gpu_costs.WORK, asdict(costs)
    milli = {name: 1000 * cost[name] for name in ("decode_step", "decode_token", "read_token", "learn_token", "turn")}
    return (
        f"A step of the first table, and of 8 GPUs of the second, has {work.conversations} conversations of "
        f"{work.turns} turns; each has {work.sampled:,} sampled and {work.read:,} prompt tokens, and traces of "
        f"{work.learned:,}; the longest has {work.longest} times as many. "
        f"The model is Qwen3-4B with {gpu_costs.FOUR_B.parameters:,} weights, all trained; for a micro-batch "
        f"of {costs.batch:,} tokens FSDP moves 8 bytes of each weight, and engines get 2. "
        f"A decoding step of an engine, of at most {costs.running} sequences, takes {milli['decode_step']:.2f} ms and "
        f"{milli['decode_token']:.3f} ms for each sequence, a prompt token {milli['read_token']:.3f} ms, a trained "
        f"token {milli['learn_token']:.3f} ms, and the driver {milli['turn']:.2f} ms for a turn and "
        f"{1000 * costs.credit:.1f} ms for the credit of a conversation."
    )
