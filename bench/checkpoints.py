"""Checkpoints of two learner ranks: as runs write and load them, beside `torch.distributed.checkpoint` (DCP).

Both sides have the same model, whose weights all learn, and its optimizer's moments, in float32 over two processes on
a core each. *Save* ends when all files are on the disk, *load* when the ranks go on from them. A run's driver writes
one model folder and one file of state, which any number of ranks can load, and their hashes, which loading compares.
With DCP each rank writes what it holds. Either side loads into weights that were changed, and must restore them.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import shutil
import tempfile
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.alternate import Reading, alternate
from bench.clock import now
from bench.process_memory import full_items
from bench.recorded_conversations import conditions
from bench.several_engines import line as compared_line
from training import bases
from training.attempts.progress import Progress
from training.bases import ModelInfo
from training.cluster import processes
from training.cluster.supervisor import ProcessOptions
from training.learn.checkpoint import TrainerState
from training.learn.learner import Learner
from training.learn.ray_learners import RayLearners
from training.run_sections import LearnSection
from training.rundir import AttemptDir
from training.store import MANIFEST, loads

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

RANKS = 2
LEARN = {"lora": False, "kl": "none", "kl_measured": False, "critic_warmup": 0, "lr": 1e-6, "epochs": 1}


def measure(arguments: Namespace) -> dict[str, Any]:
    """Return both comparisons, in the size of the state per second."""
    folder = str(bases.resolve(arguments.model))
    learn = LearnSection.from_dict({**LEARN, "tokens_per_batch": arguments.tokens})
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch, processes.start(gpus=0):
        ours = Ours(folder, learn, Path(scratch))
        with dcp(folder, learn, Path(scratch)) as theirs:
            save = alternate(lambda: ours.save(theirs.bytes), theirs.save, arguments.rounds)
            load = alternate(lambda: ours.load(theirs.bytes), theirs.load, arguments.rounds)
            sizes = {"a": _size(ours.folder), "b": _size(theirs.folder)}
            ours.check()
        ours.close()
    return {
        "unit": "MB per second",
        "sides": {"a": "one model folder and one state, with hashes", "b": "torch.distributed.checkpoint"},
        "save": save,
        "load": load,
        "bytes": {"state": theirs.bytes, **sizes},
        "seed": arguments.seed,
        "conditions": {**conditions(arguments, 1), "tokens_per_batch": arguments.tokens},
    }


def line(result: dict[str, Any]) -> str:
    """Return both comparisons in one line."""
    return "; ".join(f"{name}: {compared_line({**result, **result[name]})}" for name in ("save", "load"))


class Ours:
    """Two ranks behind Ray, as in a run; the driver is this process."""

    def __init__(self, model: str, learn: LearnSection, scratch: Path) -> None:
        loaded = {"base": model, "heads": (), "learn": learn, "seed": 0, "temperature": 1.0, "device": "cpu"}
        options = ProcessOptions(count=RANKS, threads=1, cores=tuple((core,) for core in range(RANKS)))
        self.learners, self.folder = RayLearners(loaded, options, scratch / "rendezvous"), scratch / "ours"
        self._items = full_items(learn.tokens_per_batch, RANKS, self.learners.tokenizer.vocab_size)
        self._progress = Progress(AttemptDir(scratch / "attempt"), 0)
        self._learn()

    def _learn(self) -> None:
        asyncio.run(self.learners.update(self._items, 1, self._progress))

    def save(self, count: int) -> Reading:
        """Write a checkpoint."""
        shutil.rmtree(self.folder, ignore_errors=True)
        info = ModelInfo(name="bench", base="tiny")
        began = now()
        self.learners.save(self.folder, info, TrainerState(1), adapter_only=False, beat=lambda: None)
        seconds = now() - began
        return Reading(count / 1e6 / seconds, {"save": seconds})

    def load(self, count: int) -> Reading:
        """Go back to the checkpoint after a further step."""
        self._learn()
        began = now()
        self.learners.call(Learner.go_back, self.folder)
        seconds = now() - began
        return Reading(count / 1e6 / seconds, {"load": seconds})

    def check(self) -> None:
        """Raise `RuntimeError` if what was loaded last is not what was saved."""
        saved, self.folder = self.folder, self.folder.with_name("again")
        self.save(0)
        hashes = [loads((folder / MANIFEST).read_bytes())["files"] for folder in (saved, self.folder)]
        shutil.rmtree(self.folder)
        self.folder = saved
        if hashes[0] != hashes[1]:
            raise RuntimeError("a checkpoint was not restored")

    def close(self) -> None:
        """End the ranks."""
        self.learners.close()


class Theirs:
    """Two ranks that save and load with DCP at request; `bytes` are those of the whole state."""

    def __init__(self, pipes: Sequence[Connection], folder: Path) -> None:
        self._pipes, self.folder = pipes, folder
        self.bytes = max(pipe.recv() for pipe in pipes)

    def save(self) -> Reading:
        """Write a checkpoint."""
        shutil.rmtree(self.folder, ignore_errors=True)
        return self._timed("save")

    def load(self) -> Reading:
        """Go back to it after a further step."""
        return self._timed("load")

    def _timed(self, task: str) -> Reading:
        for pipe in self._pipes:
            pipe.send(task)
        seconds = max(pipe.recv() for pipe in self._pipes)
        return Reading(self.bytes / 1e6 / seconds, {task: seconds})


@contextmanager
def dcp(model: str, learn: LearnSection, scratch: Path) -> Iterator[Theirs]:
    """Start the ranks of the other side, and end them."""
    context = multiprocessing.get_context("spawn")
    folder, rendezvous = scratch / "theirs", str(scratch / "ranks")
    pairs = [context.Pipe() for _ in range(RANKS)]
    started = [
        context.Process(target=_rank, args=(rank, rendezvous, model, learn.to_dict(), folder, pairs[rank][1]))
        for rank in range(RANKS)
    ]
    for process, (_, far) in zip(started, pairs, strict=True):
        process.start()
        far.close()  # so that a process that ends early is noticed
    try:
        yield Theirs([near for near, _ in pairs], folder)
    finally:
        for near, _ in pairs:
            near.close()
        for process in started:
            process.join()


def _rank(rank: int, rendezvous: str, model: str, settings: dict[str, Any], folder: Path, pipe: Connection) -> None:
    import torch
    from torch import distributed
    from torch.distributed.checkpoint import state_dict_loader, state_dict_saver

    from training.learn import checkpoint, numerics, policy, ranks
    from training.learn.update import Updater

    os.sched_setaffinity(0, {rank})
    learn = LearnSection.from_dict(settings)
    numerics.set_up(learn, 1)
    group = ranks.join(rank, RANKS, rendezvous, "cpu")
    made = policy.load(model, (), learn, seed=0, temperature=1.0, device="cpu", group=group)
    updater = Updater(made, 0)
    work = full_items(learn.tokens_per_batch, RANKS, made.inner.config.vocab_size)
    progress = Progress(AttemptDir(folder.with_name(f"attempt-{rank}")), 0)

    def learn_again() -> None:
        updater.run(updater.plan(work, 1), 1, progress)

    def sums() -> list[float]:
        return [float(ranks.local_rows(tensor)[0].double().abs().sum()) for tensor in state.values()]

    learn_again()
    weights = {f"model.{name}": parameter.detach() for name, parameter in made.model.named_parameters()}
    state: dict[str, torch.Tensor] = weights | checkpoint.pack_optimizer(updater.optimizer)[1]
    pipe.send(sum(tensor.numel() * tensor.itemsize for tensor in state.values()))
    with suppress(EOFError):  # the other end is closed
        saved: list[float] = []
        while task := pipe.recv():
            if task == "save":
                saved = sums()
            else:
                learn_again()
            distributed.barrier()
            began = now()
            (state_dict_saver.save if task == "save" else state_dict_loader.load)(state, checkpoint_id=folder)
            distributed.barrier()
            seconds = now() - began
            if sums() != saved:
                raise RuntimeError("a checkpoint was not restored")
            pipe.send(seconds)
    group.close()


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
