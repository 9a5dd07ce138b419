"""`fit`: trains a model in place on batches of traces with TRL's SFTTrainer, and calls hooks after batches and updates.

TRL provides the optimizer loop and mixed precision. The loss (computed at the targets only), the order of the data, the
learning rate schedule, saving and resuming are Parley's. An update with a loss or gradient that is not finite is
skipped.
"""

from __future__ import annotations

import logging
import math
import tempfile
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import torch
from datasets import Dataset
from torch import nn
from torch.utils.data import DataLoader
from transformers import PrinterCallback, TrainerCallback
from trl import SFTConfig as TrlConfig
from trl import SFTTrainer

from training.errors import DivergedError
from training.learn import memory, models
from training.learn.head import logprobs
from training.learn.sft.data import IGNORED, example
from training.records import Trace
from training.sections import SftConfig

if TYPE_CHECKING:
    from peft import PeftModel
    from torch import Tensor
    from torch.optim import Optimizer
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

CHUNK = 512
"""Number of targets whose logits are in memory at once."""
logging.getLogger("trl").setLevel(logging.ERROR)


class Hooks(Protocol):
    """Callbacks of a fit. An exception ends the fit; the model then has the weights of the last complete update."""

    def on_begin(self, optimizer: Optimizer) -> None:
        """Called once before the first update, with the optimizer that TRL has built."""

    def on_batch(self) -> None:
        """Called after each batch's forward and backward pass."""

    def on_update(self, step: int, metrics: dict[str, float]) -> None:
        """Called after update `step` (from 1)."""


class NoHooks:
    """Hooks that do nothing."""

    def on_begin(self, optimizer: Optimizer) -> None:
        """Do nothing."""

    def on_batch(self) -> None:
        """Do nothing."""

    def on_update(self, step: int, metrics: dict[str, float]) -> None:
        """Do nothing."""


def fit(
    model: PreTrainedModel | PeftModel,
    tokenizer: PreTrainedTokenizerBase,
    traces: Sequence[Trace],
    batches: Sequence[list[int]],
    sft: SftConfig,
    hooks: Hooks | None = None,
    *,
    start: int = 0,
    bad_steps: int = 3,
) -> None:
    """Train `model` in place on `batches` (indices into `traces`), starting at update `start`.

    Raises `DivergedError` after `bad_steps` updates in a row that were not finite.
    """
    torch.set_flush_denormal(True)  # a CPU is slow with them
    listener = hooks or NoHooks()
    steps = math.ceil(len(batches) / sft.batches_per_step)
    rest = list(batches)[start * sft.batches_per_step :]
    with tempfile.TemporaryDirectory(prefix="parley-sft-") as folder:
        loop = _Loop(
            model=model,
            args=_arguments(model, sft, steps - start, folder),
            train_dataset=Dataset.from_list([example(trace) for trace in traces]),
            processing_class=tokenizer,
        )
        loop.remove_callback(PrinterCallback)
        loop.configure(rest, listener, sft, start, steps)
        loop.add_callback(_Guard(loop, listener, [len(t.tokens) for t in traces], start, bad_steps))
        loop.train()
    model.eval()


def _arguments(model: PreTrainedModel | PeftModel, sft: SftConfig, steps: int, folder: str) -> TrlConfig:
    return TrlConfig(
        output_dir=folder,
        max_steps=steps,
        per_device_train_batch_size=1,  # unused: the batch sampler yields the planned batches
        gradient_accumulation_steps=sft.batches_per_step,
        learning_rate=sft.lr,
        adam_beta1=sft.betas[0],
        adam_beta2=sft.betas[1],
        weight_decay=sft.weight_decay,
        max_grad_norm=sft.max_grad_norm,
        bf16=sft.dtype == "bfloat16",
        use_cpu=model.device.type == "cpu",
        gradient_checkpointing=False,
        max_length=None,
        dataset_kwargs={"skip_prepare_dataset": True},
        save_strategy="no",
        logging_steps=1,
        logging_nan_inf_filter=False,
        report_to="none",
        disable_tqdm=True,
    )


class _Loop(SFTTrainer):
    """SFTTrainer with the planned batches, Parley's learning rate schedule and loss, and a hook after every batch."""

    def configure(self, batches: list[list[int]], hooks: Hooks, sft: SftConfig, start: int, steps: int) -> None:
        self.batches, self.hooks, self.sft, self.start, self.steps = batches, hooks, sft, start, steps
        self.finite = True

    def get_train_dataloader(self) -> DataLoader[Any]:
        """Return a loader of the remaining batches. Its own generator leaves torch's global one unchanged."""
        return DataLoader(
            self.train_dataset,
            batch_sampler=self.batches,
            collate_fn=self.data_collator,
            generator=torch.Generator(),
        )

    def create_scheduler(self, num_training_steps: int, optimizer: Optimizer | None = None) -> Any:
        """Return Parley's schedule, shifted by the updates made before this attempt."""

        def share(step: int) -> float:
            return self.sft.rate(min(self.start + step, self.steps - 1), self.steps) / self.sft.lr

        self.lr_scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer or self.optimizer, share)
        return self.lr_scheduler

    def compute_loss(
        self,
        model: nn.Module,
        inputs: dict[str, Tensor],
        return_outputs: bool = False,
        num_items_in_batch: Tensor | None = None,
    ) -> Tensor:
        """Return −log p summed over the targets and divided by the number of targets in the whole update.

        This is TRL's loss. Without Triton, TRL computes logits at every position; here only the targets get logits.
        """
        is_target = inputs["labels"][:, 1:] != IGNORED
        plain = models.plain(self.accelerator.unwrap_model(model))
        with self.accelerator.autocast():
            # padding is on the right, so causal attention needs no mask
            hidden = plain.base_model(input_ids=inputs["input_ids"], use_cache=False).last_hidden_state
        targets = inputs["input_ids"][:, 1:][is_target]
        head, dtype = plain.get_output_embeddings(), torch.bfloat16 if self.args.bf16 else None
        logp, entropy = logprobs(head, hidden[:, :-1][is_target], targets, temperature=1.0, chunk=CHUNK, dtype=dtype)
        self._metrics["train"]["entropy"].append(float(entropy.mean()))
        return -logp.sum() / (len(targets) if num_items_in_batch is None else num_items_in_batch)

    def training_step(self, *args: Any, **kwargs: Any) -> Tensor:
        """Train on one batch. Record whether its loss is finite; a loss that is not counts as 0 in the logged sum."""
        loss: Tensor = super().training_step(*args, **kwargs)
        good = bool(loss.isfinite())
        self.finite = self.finite and good
        self.hooks.on_batch()
        return loss if good else torch.zeros_like(loss)

    def _save_checkpoint(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing: the caller writes checkpoints, and TRL's contain pickles."""


class _Guard(TrainerCallback):
    """Skips updates that are not finite, and calls the hooks after each update."""

    def __init__(self, loop: _Loop, hooks: Hooks, lengths: Sequence[int], start: int, bad_steps: int) -> None:
        self.loop, self.hooks, self.lengths, self.start, self.limit = loop, hooks, lengths, start, bad_steps
        self.bad_in_a_row = self.bad = 0
        self.began = time.monotonic()

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Call `on_begin` and start the clock."""
        self.hooks.on_begin(self.loop.optimizer)
        self.began = time.monotonic()

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Drop the gradients of an update that is not finite; the optimizer then leaves the weights unchanged."""
        gradients = [p.grad for p in self.loop.model.parameters() if p.grad is not None]
        good = self.loop.finite and all(bool(gradient.isfinite().all()) for gradient in gradients)
        self.bad = 0 if good else 1
        self.bad_in_a_row = 0 if good else self.bad_in_a_row + 1
        self.loop.finite = True
        if not good:
            self.loop.model.zero_grad(set_to_none=True)

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
        """Pass an update's metrics to the hooks; raise `DivergedError` after too many bad updates in a row."""
        if not logs or "loss" not in logs:
            return
        now, size = time.monotonic(), self.loop.sft.batches_per_step
        update_batches = self.loop.batches[(state.global_step - 1) * size : state.global_step * size]
        tokens = sum(self.lengths[index] for batch in update_batches for index in batch)
        names = {"loss": "loss", "grad_norm": "grad_norm", "learning_rate": "lr", "entropy": "entropy"}
        metrics = {ours: float(logs[theirs]) for theirs, ours in names.items() if theirs in logs}
        metrics |= {"tokens": float(tokens), "learning_tokens_per_s": tokens / max(now - self.began, 1e-9)}
        if self.bad:
            metrics = {name: value for name, value in metrics.items() if name not in ("loss", "grad_norm")}
            metrics["bad_steps"] = 1.0
        self.began = now
        memory.release()
        self.hooks.on_update(self.start + state.global_step, metrics)
        if self.bad_in_a_row >= self.limit:
            raise DivergedError(f"{self.bad_in_a_row} updates in a row were not finite")
