"""The cold start as a run: it trains on a dataset's conversations, writes checkpoints, and can be stopped and resumed.

`run` has the signature of `training.learn.trainer.run` and raises the same errors.
"""

from __future__ import annotations

import logging
import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from training import bases
from training.attempts.attempt import Checkpoint, run_attempt
from training.attempts.progress import Progress, Result, StopRequested
from training.cluster.fit import refuse_cpu_beside_cluster
from training.config import RunConfig
from training.errors import BadInput, DivergedError
from training.learn import checkpoint, models
from training.learn.checkpoint import TrainerState
from training.learn.sft.data import plan, read_traces
from training.learn.sft.fit import fit
from training.rundir import RunDir
from training.seeding import derive
from training.text.template import ChatTokenizer

if TYPE_CHECKING:
    from peft import PeftModel
    from torch.optim import Optimizer
    from transformers import PreTrainedModel

log = logging.getLogger(__name__)


class ColdStart:
    """One attempt at a cold start. It starts at the newest checkpoint, or at the base model if there is none."""

    def __init__(self, config: RunConfig, run_dir: RunDir, latest: tuple[int, Path] | None) -> None:
        self.config, self.sft = config, config.sft
        path = run_dir.root / config.data.path
        if not config.data.path or not path.is_file():
            raise BadInput("a cold start needs a dataset with conversations", "data.path")
        self.resumed = checkpoint.read(latest[1]) if latest else None
        self.step = self.saved = self.resumed.step if self.resumed else 0
        self.model, self.tokenizer = self._load(latest[1] if latest else None)
        models.refuse_unusual_logits(models.plain(self.model))
        longest = int(models.plain(self.model).config.max_position_embeddings)
        chat = ChatTokenizer(self.tokenizer)
        window = min(self.sft.max_length, longest)
        form = config.speaker if config.speaker.source else None
        self.traces = read_traces(path, config.game.name, chat, limit=config.data.limit, window=window, form=form)
        self.batches = plan([len(trace.tokens) for trace in self.traces], self.sft, config.seed)
        self.steps = -(-len(self.batches) // self.sft.batches_per_step)
        self.info = bases.child_info(
            config.model.base,
            name=config.name,
            how="sft",
            datasets=[path],
            command=f"python -m training sft config.json --dir {run_dir.root.name}",
        )
        self.effective = int(self.resumed.data["effective"]) if self.resumed else 0
        self.progress: Progress | None = None
        self.optimizer: Optimizer | None = None
        self.generators = checkpoint.pack_generators()

    def _load(self, folder: Path | None) -> tuple[PreTrainedModel | PeftModel, Any]:
        """Return (model, tokenizer): the base model with new adapters, or all its weights, or the checkpoint's."""
        from training.learn.context import pick_device

        sft, device = self.sft, pick_device(self.config.model.device)
        refuse_cpu_beside_cluster(self.config, device)
        if sft.lora is None:
            # bfloat16 weights would lose small updates to rounding: only the forward pass runs in bfloat16
            return models.load(folder or self.config.model.base, "float32", None, device)
        torch.manual_seed(derive(self.config.seed, "adapters"))
        merged, tokenizer = models.load(self.config.model.base, sft.dtype, None, device)
        model = models.adapt(merged.requires_grad_(False), sft.lora)
        if self.resumed is not None:
            _restore_adapters(model, self.resumed)
        return model, tokenizer

    def go(self, progress: Progress) -> tuple[Result, str]:
        """Train to the last step or to a request to stop, save a checkpoint, and return (result, reason)."""
        self.progress = progress
        progress.phase("learning", traces=len(self.traces))
        try:
            progress.check()
            if self.step < self.steps:
                fit(
                    self.model,
                    self.tokenizer,
                    self.traces,
                    self.batches,
                    self.sft,
                    self,
                    start=self.step,
                    bad_steps=self.config.stop.bad_steps,
                )
        except StopRequested as request:
            self.save()
            return "stopped", str(request)
        self.save()
        if not self.effective:
            raise DivergedError("no update changed the model: none was finite")
        return "succeeded", ""

    # --- hooks of the fit ---

    def on_begin(self, optimizer: Optimizer) -> None:
        """Restore the state of the optimizer and the random generators from the checkpoint."""
        self.optimizer = optimizer
        if self.resumed is None:
            torch.manual_seed(derive(self.config.seed, "sft"))
            return
        checkpoint.unpack_optimizer(_inner(optimizer), self.resumed.data["optimizer"], self.resumed.tensors)
        checkpoint.unpack_generators(self.resumed.data["generators"], self.resumed.tensors)

    def on_batch(self) -> None:
        """Write a heartbeat. On a request to stop, raise `StopRequested`, which drops the unfinished update."""
        assert self.progress is not None
        self.progress.check()
        self.progress.beat()

    def on_update(self, step: int, metrics: dict[str, float]) -> None:
        """Write the update's metrics, and a checkpoint if one is due or was requested."""
        assert self.progress is not None
        self.step = self.progress.step = step
        self.generators = checkpoint.pack_generators()  # packed here: an update that a stop drops draws from them too
        if "bad_steps" in metrics:
            self.progress.event("warning", step=step, why="the update was not finite and is dropped")
        else:
            self.effective += 1
        self.progress.metrics(step, metrics)
        self.progress.beat()
        log.info("step %d of %d: loss %.4f", step, self.steps, metrics.get("loss", math.nan))
        due = self.sft.save_every and step % self.sft.save_every == 0
        if self.progress.take_save() or (due and step < self.steps):
            self.save()
            self.progress.phase("learning")

    # --- checkpoints ---

    def save(self) -> None:
        """Write a checkpoint of the last complete update, unless it exists already."""
        if self.saved == self.step or self.progress is None:
            return
        self.progress.phase("saving")
        folder = self.progress.attempt.checkpoint(self.step)
        info = self.info.model_copy(update={"step": self.step})
        checkpoint.write(folder, self.model, self.tokenizer, info, self._state(), beat=self.progress.beat)
        self.saved = self.step
        self.progress.event("checkpoint", step=self.step, path=f"checkpoints/{folder.name}")
        checkpoint.prune(self.progress.attempt, self.sft.keep)

    def _state(self) -> TrainerState:
        assert self.optimizer is not None
        optimizer, moments = checkpoint.pack_optimizer(_inner(self.optimizer))
        generators, states = self.generators
        adapters = {
            f"adapter.{name}": p.detach()
            for name, p in self.model.named_parameters()
            if p.requires_grad and self.sft.lora is not None
        }
        rest = {"optimizer": optimizer, "generators": generators, "effective": self.effective}
        return TrainerState(self.step, rest, moments | states | adapters)


def _inner(optimizer: Optimizer) -> Optimizer:
    """Return torch's optimizer inside accelerate's wrapper."""
    inner: Optimizer = getattr(optimizer, "optimizer", optimizer)
    return inner


@torch.no_grad()
def _restore_adapters(model: PeftModel, state: TrainerState) -> None:
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            tensor = state.tensors.get(f"adapter.{name}")
            if tensor is None or tensor.shape != parameter.shape:
                raise BadInput(f"the checkpoint does not fit this configuration: {name}", "sft.lora")
            parameter.copy_(tensor)


def run(config: RunConfig, run_dir: RunDir, attempt: int | None = None, *, supervised: bool = False) -> dict[str, Any]:
    """Start a cold start, or resume it from the newest complete checkpoint; see `run_attempt`."""

    def prepare(progress: Progress, newest: Checkpoint | None) -> ColdStart:
        cold = ColdStart(config, run_dir, newest)
        progress.steps = cold.steps
        return cold

    def go(cold: ColdStart, progress: Progress) -> tuple[Result, str]:
        began = time.monotonic()
        outcome = cold.go(progress)
        log.info("the cold start took %.0f s", time.monotonic() - began)
        return outcome

    return run_attempt(run_dir, attempt, prepare, go, supervised=supervised)
