"""The seconds of a step as `bench.step_model` has them: fitted to this machine, checked, and reckoned for GPUs.

Runs of two sizes, without a lag, with an engine and a rank on a core each, give the costs of this machine. Runs of a
size between them, with and without a lag, were not used for the fit; `errors` are the model's seconds of their steps
beside the measured ones. The table for GPUs has other costs (`bench.gpu_costs`), of which only the driver's were
measured here.
"""

from __future__ import annotations

import asyncio
import os
import statistics
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from bench import driver_cost, gpu_costs, step_model, whole_steps
from bench.recorded_conversations import conditions
from bench.step_model import Costs, Layout, Work
from bench.whole_steps import Line
from training import bases
from training.cluster import processes
from training.cluster.supervisor import ProcessOptions
from training.engines.pool import EnginePool

STEPS, WARM = 4, 1
FITTED, CHECKED = (4, 16), 8
"""Conversations of a step."""
GPUS = (1, 8, 32, 64, 128, 256, 512)
LIFTS = {
    "the longest conversation": "more conversations in a step, shorter ones, or a lag",
    "decoding": "more engines",
    "driver": "games that are played by several processes",
    "micro-batches": "more learner ranks",
    "exchange of ranks": "gradients that are reduced once for an update and not for every micro-batch",
    "sync": "weights that are broadcast from GPU to GPU",
    "update": "fewer updates of a step",
}


def measure(arguments: Namespace) -> dict[str, Any]:
    """Return fit, check and tables."""
    driver = {**driver_cost.measure(arguments.model), "request_s": _request(arguments)}
    turn = driver["turn_s"] + driver["request_s"]
    credit = driver["credit_s"] / driver["work"]["trace_tokens"] * gpu_costs.WORK.learned
    fits = [_run(arguments, games, {"address": "local"}) for games in FITTED]
    size = whole_steps.weight_bytes(arguments.model)
    work, costs = fit([line for run in fits for line in run], arguments.tokens, size)
    costs = replace(costs, turn=turn)
    return {
        "unit": "seconds of a step",
        "fit": {"work": asdict(work), "costs": asdict(costs)},
        "checks": [_check(arguments, work, costs, number, lag) for number, lag in ((1, 0), (1, 1), (2, 0))],
        "driver": driver,
        "gpus": tables(gpu_costs.costs(gpu_costs.FOUR_B, turn=turn, credit=credit)),
        "sources": gpu_costs.SOURCES,
        "seed": arguments.seed,
        "conditions": conditions(arguments, 1),
    }


def _request(arguments: Namespace) -> float:
    """Return the driver's seconds of a request to a pool's engine."""
    with processes.start(gpus=0):
        pool = EnginePool(arguments.engine, bases.resolve(arguments.model), ProcessOptions(threads=1), max_running=16)
        try:
            return driver_cost.requests(pool)
        finally:
            asyncio.run(pool.close())


def _run(arguments: Namespace, games: int, cluster: Mapping[str, Any]) -> list[Line]:
    """Return a line of metrics for each counted step, to which the seconds of the whole step are added."""
    config = whole_steps.configuration(
        arguments,
        arguments.seed,
        rollout={"scenarios": games // 4, "games": 4},
        learn={
            "steps": STEPS,
            "save_every": STEPS,
            "threads": 1,
            "kl": "none",
            "kl_measured": False,
            "ent_coef": 1e-3,  # few games may all end alike, and teach nothing else
        },
        cluster=cluster,
    )
    lines = whole_steps.steps_of(config)
    rows = whole_steps.seconds(lines, WARM)
    return [{**line, **row} for line, row in zip(lines[WARM:], rows, strict=True)]


def fit(lines: Sequence[Line], batch: int, size: int) -> tuple[Work, Costs]:
    """Return the mean work of a conversation, and the costs that fit these steps of one engine and one rank best.

    Least squares without negative costs. Prompts grow with the sampled tokens, so their costs are in `decode_token`.
    """
    games = sum(line["episodes"] for line in lines)
    work = Work(
        conversations=1,
        turns=sum(line["turns"] * line["episodes"] for line in lines) / games,
        sampled=sum(line["sampled_tokens"] for line in lines) / games,
        read=0.0,
        learned=sum(line["trace_tokens"] for line in lines) / games,
    )
    longest = [line["sampled_tokens"] / line["episodes"] for line in lines]
    decode_step, decode_token = _least(
        [longest, [line["sampled_tokens"] for line in lines]], [line["sampling"] for line in lines]
    )
    ones = [1.0] * len(lines)
    update, learn_token = _least([ones, [line["trace_tokens"] for line in lines]], [line["learning"] for line in lines])
    fixed, credit = _least([ones, [line["episodes"] for line in lines]], [line["rest"] for line in lines])
    costs = Costs(
        decode_step=decode_step,
        decode_token=decode_token,
        learn_token=learn_token,
        batch=batch,
        update=update,
        weights=size,
        hand=statistics.median(line["sync"] for line in lines) / size,
        credit=credit,
        fixed=fixed,
    )
    return work, costs


def _least(columns: Sequence[Sequence[float]], seconds: Sequence[float]) -> list[float]:
    """Return the factors of the columns, not negative, whose sum is nearest to the seconds by their relative error."""
    from scipy.optimize import nnls

    measured = np.maximum(np.asarray(seconds), 1e-3)
    factors, _ = nnls(np.asarray(columns).T / measured[:, None], np.ones(len(measured)))
    return [float(factor) for factor in factors]


def _check(arguments: Namespace, work: Work, costs: Costs, engines: int, lag: int) -> dict[str, Any]:
    """Return the model's seconds of steps that were not used for the fit beside those that are measured."""
    layout = Layout(engines, 1)
    named = {"engines": engines, "lag": lag, "conversations": CHECKED}
    if len(os.sched_getaffinity(0)) < engines + 1:
        return {**named, "skipped": f"{engines + 1} processes need a core each"}
    lines = _run(arguments, CHECKED, {"address": "local", "engines": engines, "lag": lag})
    parts = step_model.step(replace(work, conversations=CHECKED), costs, layout)
    modelled = step_model.seconds(parts, layout, lag=bool(lag))
    measured = statistics.median(line["step"] for line in lines)
    return {**named, "modelled_s": modelled, "measured_s": measured, "error": modelled / measured - 1}


def tables(costs: Costs) -> dict[str, Any]:
    """Return the tables for GPUs: the same work on more of them (strong scaling), and more work (weak scaling)."""
    work = gpu_costs.WORK
    each = work.conversations // 8
    strong = _table(lambda gpus: work, costs)
    weak = _table(lambda gpus: replace(work, conversations=each * gpus), costs)
    return {"work": asdict(work), "costs": asdict(costs), "strong": strong, "weak": weak}


def _table(work_on: Callable[[int], Work], costs: Costs) -> dict[str, Any]:
    return {
        "rows": [row(work_on(gpus), costs, gpus) for gpus in GPUS],
        "knee": step_model.knee(lambda gpus: _rate(work_on(gpus), costs, gpus)),
    }


def row(work: Work, costs: Costs, gpus: int) -> dict[str, Any]:
    """Return the fastest layout on so many GPUs with a lag, its parts, and what limits it."""
    layout, parts = step_model.best(work, costs, gpus, lag=True)
    most = step_model.limit(work, costs, layout, lag=True)
    return {
        "gpus": gpus,
        "conversations": work.conversations,
        "ranks": layout.ranks,
        "engines": layout.engines,
        "seconds": asdict(parts),
        "lag_0_s": step_model.seconds(parts, layout, lag=False),
        "lag_1_s": step_model.seconds(parts, layout, lag=True),
        "conversations_per_hour": _rate(work, costs, gpus),
        "limit": most,
        "lift": LIFTS[most],
    }


def _rate(work: Work, costs: Costs, gpus: int) -> float:
    """Return conversations per hour of the fastest layout with a lag."""
    layout, parts = step_model.best(work, costs, gpus, lag=True)
    return 3600 * work.conversations / step_model.seconds(parts, layout, lag=True)


def line(result: dict[str, Any]) -> str:
    """Return the checks, the driver's limit, and a line for each number of GPUs."""
    lines = [_check_line(check) for check in result["checks"]]
    driver = result["driver"]
    lines.append(
        f"driver: {1000 * driver['turn_s']:.2f} ms for a turn and {1000 * driver['request_s']:.2f} ms for its request, "
        f"{1000 * driver['credit_s']:.1f} ms for a conversation's credit; at most "
        f"{driver['conversations_per_hour']:.0f} conversations per hour"
    )
    for name in ("strong", "weak"):
        table = result["gpus"][name]
        lines += [
            f"{name} scaling, {row['gpus']} GPUs: {row['ranks']} ranks, {row['engines']} engines, "
            f"{row['lag_1_s']:.1f} s ({row['lag_0_s']:.1f} s without a lag), "
            f"{row['conversations_per_hour']:.0f} conversations per hour, limited by {row['limit']}"
            for row in table["rows"]
        ]
        lines.append(f"{name} scaling: from {table['knee'] or 'more than 512'} GPUs another gives less than half")
    return "\n".join(["", *(f"  {each}" for each in lines)])


def _check_line(check: Mapping[str, Any]) -> str:
    name = step_model.title(check)
    if "skipped" in check:
        return f"{name}: not measured, {check['skipped']}"
    seconds = f"{check['modelled_s']:.2f} s modelled, {check['measured_s']:.2f} s measured"
    return f"{name}: {seconds}, {100 * check['error']:+.0f} %"
