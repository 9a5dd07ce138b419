"""TRL's GRPO trainer, configured to do exactly the measured work with its own loss, optimizer and sampling.

It has no KL term and no reference model, adapters of the same rank on the same layers as Parley, and one optimizer step
per batch. The seconds are those of its training step, from the callback before it to the callback after it;
`Grpo.parts` divides the last step. With a `rollout` it takes samples from there instead of sampling.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.clock import Clock, watched

if TYPE_CHECKING:
    from trl import GRPOConfig

Rollout = Callable[[list[Any], Any], dict[str, Any]]
RANK, ALPHA = 32, 64.0


class Grpo:
    """A trainer with `samples` per step, `per_pass` in a forward pass, and `group` of them (0 = all) per prompt."""

    def __init__(
        self,
        folder: Path,
        dtype: str,
        prompts: Sequence[Any],
        *,
        samples: int,
        completion: int,
        per_pass: int,
        group: int = 0,
        rollout: Rollout | None = None,
    ) -> None:
        import torch
        from datasets import Dataset
        from peft import LoraConfig
        from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
        from trl import GRPOTrainer

        grpo = self

        class Step(TrainerCallback):  # type: ignore[misc]
            def on_step_begin(self, *args: Any, **more: Any) -> None:
                grpo.clock.start()

            def on_step_end(self, *args: Any, **more: Any) -> None:
                grpo.parts = grpo.clock.stop()

        self.clock = Clock()
        self.parts: dict[str, float] = {}
        self._scratch = tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True)
        sizes = {
            "per_device_train_batch_size": per_pass,
            "gradient_accumulation_steps": samples // per_pass,
            "num_generations": group or samples,
            "max_completion_length": completion,
        }
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, dtype), local_files_only=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.trainer = GRPOTrainer(
                model=model,
                args=_bare_step(self._scratch.name, **sizes),
                reward_funcs=[_by_place],
                train_dataset=Dataset.from_list([{"prompt": prompt} for prompt in prompts]),
                processing_class=AutoTokenizer.from_pretrained(folder, local_files_only=True),
                peft_config=LoraConfig(r=RANK, lora_alpha=ALPHA, target_modules="all-linear", task_type="CAUSAL_LM"),
                callbacks=[Step()],
                rollout_func=rollout,
            )

    def step(self) -> float:
        """Do one training step; return its seconds."""
        layers = self.trainer.model.get_base_model().base_model
        calls = (
            (self.trainer, "_prepare_inputs", "data"),
            (self.trainer, "_generate", "sampling"),
            (self.trainer, "_get_per_token_logps_and_entropies", "head"),
            (layers, "forward", "forward"),
        )
        with watched(self.clock, *calls):
            self.trainer.train()
        return sum(self.parts.values())


def _bare_step(folder: str, **sizes: int) -> GRPOConfig:
    """Return the configuration of a step without logging, saving or KL; the trainer writes to `folder`."""
    import torch
    from trl import GRPOConfig

    return GRPOConfig(
        output_dir=folder,
        max_steps=1,
        learning_rate=1e-6,
        beta=0.0,
        temperature=1.0,
        gradient_checkpointing=False,
        bf16=False,
        report_to=[],
        logging_strategy="no",
        save_strategy="no",
        disable_tqdm=True,
        shuffle_dataset=False,
        use_cpu=not torch.cuda.is_available(),
        **sizes,
    )


def _by_place(completions: Sequence[Any], **more: Any) -> list[float]:
    """Return rewards that differ, so that no advantage is zero; their values do not change the cost of a step."""
    return [float(place % 2) for place in range(len(completions))]


def per_pass(samples: int, longest: int, tokens: int) -> int:
    """Return the largest divisor of `samples` that fits `tokens` in a forward pass when padded to `longest`."""
    fitting = [n for n in range(1, samples + 1) if samples % n == 0 and n * longest <= tokens]
    return max(fitting, default=1)
