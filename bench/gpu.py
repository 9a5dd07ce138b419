"""The first minutes on a GPU: learning, sampling and whole steps by model shape.

Every part is a process of its own (`bench.gpu_parts`), so that one that fails, or runs out of memory, leaves the others
as they are. Results are written to `--out`, a line of JSON each, as soon as they are there. What would not end within
`--minutes` is skipped and says so, as does what needs a package that is not installed. Without a GPU the model is
`tiny`, so that all parts can be tried anywhere.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TINY = "tiny"
SHAPES = ("0.6b", "4b")
SECONDS = {"weights": 20, "full": 30, "lora": 30, "sampling": 60, "steps": 60}
"""The parts, with what each takes at least for a small model."""
FIRST = ("weights", "full", "lora")
"""Parts that come first for all shapes."""
LARGER = {"4b": 2.0}
"""How many times as long the parts of a larger shape take at least."""
PUBLISHED = {
    ("0.6b", "full"): {"tokens_per_s": 11_900, "mfu": 0.111, "device": "1 × H100"},
    ("0.6b", "lora"): {"tokens_per_s": 13_300, "device": "1 × H100"},
    ("4b", "lora"): {"tokens_per_s": 6_230, "mfu": 0.217, "device": "1 × H100"},
}
"""prime-rl's benchmark of its trainer with 16k tokens; all weights of 4B are published on 8 × H200 alone, 27.4k."""


def measure(arguments: Namespace) -> dict[str, Any]:
    """Run the parts one after the other; return their results by shape."""
    deadline = time.monotonic() + 60 * arguments.minutes
    results: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as scratch:
        for shape, part in _parts():
            result = _result(shape, part, Path(scratch) / shape, deadline, results.get(shape, {}))
            results.setdefault(shape, {})[part] = result
            _note(arguments.out, {"shape": shape, "part": part, **result})
    return {
        "shapes": results,
        "published": [{"shape": shape, "part": part, **row} for (shape, part), row in PUBLISHED.items()],
        "source": "prime-rl's benchmark of its trainer, 16k tokens",
        "minutes": arguments.minutes,
    }


def _parts() -> Iterator[tuple[str, str]]:
    if not _gpu():
        yield from ((TINY, part) for part in SECONDS if part != "weights")
        return
    others = [part for part in SECONDS if part not in FIRST]
    yield from ((shape, part) for parts in (FIRST, others) for shape in SHAPES for part in parts)


def _gpu() -> bool:
    from training.cluster.devices import gpus_here

    return bool(gpus_here()) or Path("/dev/nvidiactl").exists()  # of which a container may see one alone


def _result(shape: str, part: str, folder: Path, deadline: float, before: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a part gives, or why it gives nothing."""
    if part != "weights" and shape != TINY and "seconds" not in before.get("weights", {}):
        return {"skipped": "there are no weights"}
    least, left = SECONDS[part] * LARGER.get(shape, 1.0), deadline - time.monotonic()
    if left < least:
        return {"skipped": f"it takes about {least:.0f} s, and {max(left, 0.0):.0f} s are left"}
    return run_part(shape, part, folder, left)


def run_part(shape: str, part: str, folder: Path, limit: float) -> dict[str, Any]:
    """Run a part in a process that is ended after `limit` seconds; return its result, or why there is none."""
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        file = Path(scratch) / "result.json"
        command = [sys.executable, "-m", "bench.gpu_parts", part, shape, str(folder), str(file)]
        with (Path(scratch) / "log").open("w+") as log:
            process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log, start_new_session=True)
            try:
                process.wait(limit)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                return {"failed": f"it did not end within {limit:.0f} s"}
            if file.is_file():
                result: dict[str, Any] = json.loads(file.read_text("utf-8"))
                return result
            log.seek(0)
            lines = [line.strip() for line in log if line.strip()]
            return {"failed": f"exit code {process.returncode}: {lines[-1][:400] if lines else 'nothing was written'}"}


def _note(file: Path | None, row: Mapping[str, Any]) -> None:
    """Write a result at once, to the file and to standard error."""
    text = json.dumps(row, ensure_ascii=False)
    print(text, file=sys.stderr, flush=True)
    if file is not None:
        with file.open("a", encoding="utf-8") as lines:
            lines.write(text + "\n")


def line(result: dict[str, Any]) -> str:
    """Return a line for each part."""
    published = {(row["shape"], row["part"]): row for row in result["published"]}
    return "\n".join(
        ["", *(f"  {shape} {part}: {words(row, published.get((shape, part)))}"
               for shape, parts in result["shapes"].items() for part, row in parts.items())]
    )  # fmt: skip


def words(row: Mapping[str, Any], published: Mapping[str, Any] | None = None) -> str:
    """Return a part's result in words, beside what others published."""
    for why in ("skipped", "failed", "missing"):
        if why in row:
            return f"{why}: {row[why]}"
    if "shares" in row:
        shares = ", ".join(f"{name} {100 * share:.0f} %" for name, share in row["shares"].items())
        return f"{row['seconds']['step']['median']:.2f} s of a step: {shares}"
    if "tokens_per_s" not in row:
        return f"{row['seconds']:.0f} s"
    text = f"{row['tokens_per_s']:.0f} tokens per second"
    if row.get("mfu") is not None:
        text += f", MFU {100 * row['mfu']:.1f} %"
    if row.get("peak_bytes"):
        text += f", {row['peak_bytes'] / 2**30:.1f} GiB at most, planned {row['planned_bytes'] / 2**30:.1f}"
    if "vllm" in row:
        vllm = row["vllm"]
        text += f", {row['ratio']:.2f} of vLLM's own benchmark" if "ratio" in row else f"; vLLM's own: {words(vllm)}"
    if published is not None:
        mfu = f", MFU {100 * published['mfu']:.1f} %" if "mfu" in published else ""
        text += f" (prime-rl, {published['device']}: {published['tokens_per_s']}{mfu})"
    return text
