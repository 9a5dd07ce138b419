"""The seconds of a step as `bench.step_model` has them: fitted to this machine, and checked.

Runs of two sizes, without a lag, with an engine and a rank on a core each, give the costs of this machine. Runs of a
size between them, with and without a lag, were not used for the fit; `errors` are the model's seconds of their steps
beside the measured ones. The tables for GPUs (`bench.step_tables`) have other costs, of which only the driver's were
measured here.
"""

from __future__ import annotations

import asyncio
import os
import statistics
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from bench import driver_cost, step_model, step_tables, whole_steps
from bench.recorded_conversations import conditions
from bench.step_model import Costs, Layout, Work
from bench.whole_steps import StepMetrics
from training import bases
from training.cluster import processes
from training.cluster.supervisor import ProcessOptions
from training.engines.pool import EnginePool

STEPS, WARM = 4, 1
FITTED, CHECKED = (4, 16), 8
"""Conversations of a step."""


def measure(arguments: Namespace) -> dict[str, Any]:
    """Return fit and checks, and what the driver takes."""
    driver = {**driver_cost.measure(arguments.model), "request_s": _request(arguments)}
    fits = [_run(arguments, games, {"address": "local"}) for games in FITTED]
    size = whole_steps.weight_bytes(arguments.model)
    work, costs = fit([line for run in fits for line in run], arguments.tokens, size)
    costs = replace(costs, turn=driver["turn_s"] + driver["request_s"])
    return {
        "unit": "seconds of a step",
        "fit": {"work": asdict(work), "costs": asdict(costs)},
        "checks": [_check(arguments, work, costs, number, lag) for number, lag in ((1, 0), (1, 1), (2, 0))],
        "driver": driver,
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


def _run(arguments: Namespace, games: int, cluster: Mapping[str, Any]) -> list[StepMetrics]:
    """Return a line of metrics for each counted step, to which the seconds of the whole step are added."""
    config = whole_steps.configuration(
        arguments,
        arguments.seed,
        rollout={"scenarios": games // 4, "games": 4},
        learn={"steps": STEPS, "save_every": STEPS},
        cluster=cluster,
    )
    lines = whole_steps.steps_of(config)
    rows = whole_steps.seconds(lines, WARM)
    return [{**line, **row} for line, row in zip(lines[WARM:], rows, strict=True)]


def fit(lines: Sequence[StepMetrics], batch: int, size: int) -> tuple[Work, Costs]:
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
        load=statistics.median(line["sync"] for line in lines) / size,
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


def line(result: dict[str, Any]) -> str:
    """Return the checks, the driver's limit, and a line for each number of GPUs."""
    lines = [_check_line(check) for check in result["checks"]]
    driver = result["driver"]
    lines.append(
        f"driver: {1000 * driver['turn_s']:.2f} ms for a turn and {1000 * driver['request_s']:.2f} ms for its request, "
        f"{1000 * driver['credit_s']:.1f} ms for a conversation's credit; at most "
        f"{driver['conversations_per_hour']:.0f} conversations per hour"
    )
    costs = step_tables.costs(driver)
    for name, table in (("strong", step_tables.strong(costs)), ("weak", step_tables.weak(costs))):
        lines += [
            f"{name} scaling, {row.gpus} GPUs: {row.layout.ranks} ranks, {row.layout.engines} engines, "
            f"{row.lag_1_s:.1f} s ({row.lag_0_s:.1f} s without a lag), {row.rate:.0f} conversations per hour, "
            f"limited by {row.limit}"
            for row in table.rows
        ]
        lines.append(f"{name} scaling: doubling adds less than half from {table.knee or 'more than 512'} GPUs on")
    return "\n".join(["", *(f"  {each}" for each in lines)])


def _check_line(check: Mapping[str, Any]) -> str:
    name = step_model.title(check)
    if "skipped" in check:
        return f"{name}: not measured, {check['skipped']}"
    seconds = f"{check['modelled_s']:.2f} s modelled, {check['measured_s']:.2f} s measured"
    return f"{name}: {seconds}, {100 * check['error']:+.0f} %"
