"""TRL's SFTTrainer as one function: batches of traces in, changed weights out; asked after every batch and update.

TRL brings the optimizer's loop and precision; the loss (computed at the targets only), the order of the data, the
schedule, saving and going on are ours. An update whose loss or gradient is not finite changes nothing.
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
from training.learn import models
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
"""Targets whose logits are in memory at once."""
logging.getLogger("trl").setLevel(logging.ERROR)


class Hooks(Protocol):
    """What whoever asked for the fit wants to hear. Exceptions end the fit; weights are those of the last update."""

    def begun(self, optimizer: Optimizer) -> None:
        """Everything is built and no update was made yet."""

    def batch(self) -> None:
        """One more batch was read."""

    def update(self, step: int, metrics: dict[str, float]) -> None:
        """Update `step` (from 1) was made."""


class Silent:
    """Hooks of somebody who only wants the result."""

    def begun(self, optimizer: Optimizer) -> None:
        """Listen to nothing."""

    def batch(self) -> None:
        """Listen to nothing."""

    def update(self, step: int, metrics: dict[str, float]) -> None:
        """Listen to nothing."""


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
    """Train `model` in place on `batches` of `traces` (indices), from update `start` on.

    Raises `DivergedError` after `bad_steps` updates in a row that were not finite.
    """
    listener = hooks or Silent()
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
        loop.take(rest, listener, sft, start, steps)
        loop.add_callback(_Guard(loop, listener, [len(t.tokens) for t in traces], start, bad_steps))
        loop.train()
    model.eval()


def _arguments(model: PreTrainedModel | PeftModel, sft: SftConfig, steps: int, folder: str) -> TrlConfig:
    return TrlConfig(
        output_dir=folder,
        max_steps=steps,
        per_device_train_batch_size=1,  # the real batches come from the plan
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
    """SFTTrainer that reads the planned batches, follows our schedule and asks after every batch."""

    def take(self, batches: list[list[int]], hooks: Hooks, sft: SftConfig, start: int, steps: int) -> None:
        self.batches, self.hooks, self.sft, self.start, self.steps = batches, hooks, sft, start, steps
        self.finite = True

    def get_train_dataloader(self) -> DataLoader[Any]:
        """Return the rest of the plan, in order; a generator of its own, so that reading draws from nobody else's."""
        return DataLoader(
            self.train_dataset,
            batch_sampler=self.batches,
            collate_fn=self.data_collator,
            generator=torch.Generator(),
        )

    def create_scheduler(self, num_training_steps: int, optimizer: Optimizer | None = None) -> Any:
        """Return our schedule, shifted to where this part of the run starts."""

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
        """Return −log p summed over the targets, by the number of targets of the whole update.

        TRL's own loss, but its head is run at every position where there is no Triton, and most are prompt.
        """
        is_target = inputs["labels"][:, 1:] != IGNORED
        plain = models.plain(self.accelerator.unwrap_model(model))
        with self.accelerator.autocast():
            # padding stands on the right, where no token looks: no mask
            hidden = plain.base_model(input_ids=inputs["input_ids"], use_cache=False).last_hidden_state
        targets = inputs["input_ids"][:, 1:][is_target]
        head, dtype = plain.get_output_embeddings(), torch.bfloat16 if self.args.bf16 else None
        logp, entropy = logprobs(head, hidden[:, :-1][is_target], targets, temperature=1.0, chunk=CHUNK, dtype=dtype)
        self._metrics["train"]["entropy"].append(float(entropy.mean()))
        return -logp.sum() / (len(targets) if num_items_in_batch is None else num_items_in_batch)

    def training_step(self, *args: Any, **kwargs: Any) -> Tensor:
        """Read one batch; note a loss that is not a number, and keep it out of the running sum that is logged."""
        loss: Tensor = super().training_step(*args, **kwargs)
        good = bool(loss.isfinite())
        self.finite = self.finite and good
        self.hooks.batch()
        return loss if good else torch.zeros_like(loss)

    def _save_checkpoint(self, *args: Any, **kwargs: Any) -> None:
        """Checkpoints are the caller's: TRL's hold pickles."""


class _Guard(TrainerCallback):
    """Keeps bad updates out, and tells of each update."""

    def __init__(self, loop: _Loop, hooks: Hooks, lengths: Sequence[int], start: int, bad_steps: int) -> None:
        self.loop, self.hooks, self.lengths, self.start, self.limit = loop, hooks, lengths, start, bad_steps
        self.bad_in_a_row = self.bad = 0
        self.began = time.monotonic()

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Tell that all is built, and start the clock."""
        self.hooks.begun(self.loop.optimizer)
        self.began = time.monotonic()

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Drop the gradients of an update that is not finite: an optimizer without gradients changes nothing."""
        gradients = [p.grad for p in self.loop.model.parameters() if p.grad is not None]
        good = self.loop.finite and all(bool(gradient.isfinite().all()) for gradient in gradients)
        self.bad = 0 if good else 1
        self.bad_in_a_row = 0 if good else self.bad_in_a_row + 1
        self.loop.finite = True
        if not good:
            self.loop.model.zero_grad(set_to_none=True)

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
        """Pass on the numbers of an update."""
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
        self.hooks.update(self.start + state.global_step, metrics)
        if self.bad_in_a_row >= self.limit:
            raise DivergedError(f"{self.bad_in_a_row} updates in a row were not finite")
