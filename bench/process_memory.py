"""Memory of a run's processes beside what `python -m training plan` says that they need, without a GPU.

Every process is measured by itself: what it has after loading and at the peak of two updates (of an engine: while it
samples), minus what the same process has before, when everything is imported and has computed once. The arithmetic is
that of `training.cluster.memory` without its line for libraries. Linux alone counts peaks.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import tempfile
import traceback
from argparse import Namespace
from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path
from typing import Any

from bench.recorded_conversations import conditions
from training import bases
from training.cluster import memory, shapes
from training.cluster.memory import Memory
from training.config import RunConfig, parse

CASES: dict[str, dict[str, Any]] = {
    "all weights": {"lora": False, "kl": "none", "kl_measured": False},
    "all weights, with a reference": {"lora": False},
    "adapters": {"lora": {"rank": 8}},
}
RANKS = (1, 2)
SHARES = (1, 1 / 2, 3 / 8, 1 / 4, 1 / 8)
"""The tokens of micro-batches, as shares of those that are asked for."""
TRACES = 2
"""Traces of a micro-batch."""
LOADED = ("weights", "frozen weights", "adapters", "frozen reference")
"""The lines of the arithmetic that are there once a rank has loaded."""
LIMIT_S = 1800.0

Report = Callable[[str], None]


def measure(arguments: Namespace) -> dict[str, Any]:
    """Return a row for every process: measured and planned bytes after loading and at the peak, and their ratios.

    Micro-batches of ranks have the tokens that are asked for, and `SHARES` of them; an engine's window has as many.
    """
    folder = str(bases.resolve(arguments.model))
    shape = shapes.of_model(folder)
    rows = []
    sizes = [int(share * arguments.tokens) for share in SHARES]
    for tokens, (name, learn), ranks in product(sizes, CASES.items(), RANKS):
        config = _config(folder, arguments.engine, tokens, learn)
        planned = memory.learner_on_cpu(config, shape, ranks)
        loaded = sum(line.bytes for line in planned.lines if line.name in LOADED)
        with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
            measured = _processes(ranks, _learner, (str(Path(scratch) / "ranks"), folder, config.learn.to_dict()))
        rows += [
            _row(f"rank {rank} of {ranks}, {name}, {tokens:,} tokens", each, loaded, _without_libraries(planned))
            for rank, each in enumerate(measured)
        ]
    config = _config(folder, arguments.engine, arguments.tokens, {})
    planned = memory.engine(config, shape)
    weights = sum(line.bytes for line in planned.lines if line.name == "weights")
    engine = f"engine {arguments.engine}, {arguments.tokens:,} tokens"
    for each in _processes(1, _engine, (folder, config.to_dict())):
        rows.append(_row(engine, each, weights, _without_libraries(planned)))
    return {"unit": "bytes", "rows": rows, "conditions": {**conditions(arguments, 1), "tokens": arguments.tokens}}


def line(result: dict[str, Any]) -> str:
    """Return a line for each process."""
    return "; ".join(
        f"{row['process']}: loaded {row['loaded'] / 1e6:.0f} MB, {row['loaded_ratio']:.2f} of the plan, "
        f"peak {row['peak'] / 1e6:.0f} MB, {row['peak_ratio']:.2f}"
        for row in result["rows"]
    )


def _config(folder: str, engine: str, tokens: int, learn: Mapping[str, Any]) -> RunConfig:
    return parse(
        {
            "model": {"base": folder, "device": "cpu"},
            "method": {"name": "omar", "advantage": "group_relative"},  # without value heads
            "engine": {"name": engine, "cache_gib": 0.0625, "max_running": 8, "window": tokens},
            "sampling": {"max_tokens": tokens // 2},
            "learn": {**learn, "critic_warmup": 0, "lr": 1e-6, "tokens_per_batch": tokens},
        }
    )


def _without_libraries(planned: Memory) -> int:
    return Memory(tuple(each for each in planned.lines if each.name != memory.LIBRARIES)).total


def _row(process: str, measured: Mapping[str, int], loaded: int, peak: int) -> dict[str, Any]:
    """Return what was measured beside what was planned."""
    return {
        "process": process,
        **measured,
        "loaded_planned": loaded,
        "peak_planned": peak,
        "loaded_ratio": measured["loaded"] / loaded,
        "peak_ratio": measured["peak"] / peak,
    }


def _processes(count: int, work: Callable[..., dict[str, int]], arguments: tuple[Any, ...]) -> list[dict[str, int]]:
    """Let `work(number, count, *arguments)` run in as many processes; return what each measured, in order."""
    context = multiprocessing.get_context("spawn")
    results: Any = context.Queue()
    started = [context.Process(target=_run, args=(number, count, work, arguments, results)) for number in range(count)]
    for process in started:
        process.start()
    measured: dict[int, Any] = dict(results.get(timeout=LIMIT_S) for _ in started)
    for process in started:
        process.join()
    if failed := [each for each in measured.values() if isinstance(each, str)]:
        raise RuntimeError(failed[0])
    return [measured[number] for number in range(count)]


def _run(
    number: int, count: int, work: Callable[..., dict[str, int]], arguments: tuple[Any, ...], results: Any
) -> None:
    try:
        results.put((number, work(number, count, *arguments)))
    except Exception:  # noqa: BLE001 (a process's root: the parent raises it)
        results.put((number, traceback.format_exc()))


def _learner(rank: int, world: int, rendezvous: str, folder: str, learn: dict[str, Any]) -> dict[str, int]:
    """Load, and update twice: the moments of the optimizer are there at the second peak."""
    import peft  # noqa: F401 (with the line below: what loading would import, which is no part of a model)
    import torch
    from transformers.models.llama import modeling_llama  # noqa: F401

    from training.attempts.progress import Progress
    from training.learn import memory as allocator
    from training.learn import numerics, policy, ranks
    from training.learn.update import Updater
    from training.run_sections import LearnSection
    from training.rundir import AttemptDir

    section = LearnSection.from_dict(learn)
    numerics.set_up(section, 1)
    _warm_up(torch)
    group = ranks.join(rank, world, rendezvous, "cpu") if world > 1 else ranks.ALONE
    group.gather(rank)
    before = _resident()
    made = policy.load(folder, (), section, seed=0, temperature=1.0, device="cpu", group=group)
    loaded = _resident()
    updater = Updater(made, 0)
    vocabulary: int = made.inner.config.vocab_size
    items = full_items(section.tokens_per_batch, 2 * TRACES * world, vocabulary)
    _reset_peak()
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        progress = Progress(AttemptDir(Path(scratch)), 2)
        for step in (1, 2):
            if section.kl != "none":
                from training.learn.forward import measure as forward

                values = forward(made, items, old=False, reference=True)
                _share(group, items, [value is not None for value in values])
            updater.run([items], step, progress)
            allocator.release()  # as the learner does
    peak = _peak()
    group.close()
    return {"before": before, "loaded": loaded - before, "peak": peak - before}


def _share(group: Any, items: list[Any], mine: list[bool]) -> None:
    """Give every rank what the others measured, as the driver does."""
    import numpy as np

    rows = [(number, item.reference.tolist()) for number, item in enumerate(items) if mine[number]]
    for number, row in (each for part in group.gather(rows) for each in part):
        items[number].reference = np.asarray(row, np.float32)


def full_items(tokens: int, count: int, vocabulary: int) -> list[Any]:
    """Return traces that fill micro-batches to the last token."""
    import numpy as np

    from training.learn.batch import Item
    from training.records import LEARNER, Trace, TraceCredit
    from training.seeding import rng

    draw, length = rng(0, "process-memory"), tokens // TRACES
    prompt, reply = length // 2, length - length // 2
    items = []
    for number in range(count):
        trace = Trace(
            seat=0,
            policy=LEARNER,
            tokens=tuple(draw.randrange(vocabulary) for _ in range(length)),
            mask=(0,) * prompt + (1,) * reply,
            turn=(-1,) * prompt + (0,) * reply,
            logprobs=(0.0,) * prompt + (-1.0,) * reply,
        )
        credit = TraceCredit(ppo=np.asarray(trace.mask) * (1.0 if number % 2 else -1.0))
        items.append(Item(trace, (number, 0), credit))
    return items


def _engine(number: int, count: int, folder: str, config: dict[str, Any]) -> dict[str, int]:
    """Load, and sample as many replies at once as the engine decodes; each fills its window, half of it the prompt."""
    import torch

    from training import engines
    from training.engines.base import SampleRequest, Sampling

    _warm_up(torch)
    section = parse(config).engine
    before = _resident()
    options: dict[str, Any] = {name: getattr(section, name) for name in ("dtype", "window", "max_running", "cache_gib")}
    engine = engines.make(section.name, folder, **options)
    loaded = _resident()
    _reset_peak()

    async def sampled() -> None:
        room = section.window // 2
        requests = [
            SampleRequest([seed % 200 + 1] * room, Sampling(max_tokens=room), seed)
            for seed in range(section.max_running)
        ]
        await asyncio.gather(*(engine.sample(request) for request in requests))
        await engine.close()

    asyncio.run(sampled())
    return {"before": before, "loaded": loaded - before, "peak": _peak() - before}


def _warm_up(torch: Any) -> None:
    """Let the libraries of a first matrix product and a first backward pass take their memory."""
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)  # as runs do
    layer = torch.nn.Linear(64, 64)
    layer(torch.ones(64, 64)).sum().backward()
    torch.optim.AdamW(layer.parameters()).step()


def _resident() -> int:
    from training.learn import memory as allocator

    allocator.release()
    return _status("VmRSS")


def _peak() -> int:
    return _status("VmHWM")


def _reset_peak() -> None:
    Path(f"/proc/{os.getpid()}/clear_refs").write_text("5", "ascii")


def _status(name: str) -> int:
    lines = Path(f"/proc/{os.getpid()}/status").read_text("ascii").splitlines()
    return next(int(each.split()[1]) * 1024 for each in lines if each.startswith(f"{name}:"))
