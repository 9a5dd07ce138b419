"""The first minutes on a GPU, tried without one: what is missing, late or broken is a result, and others go on."""

import json
import sys
from argparse import Namespace

import pytest

from bench import gpu, gpu_parts
from tests.tiny_model import prepare
from training.cluster import shapes
from training.cluster.shapes import ModelShape

BLOCKED = "import sys\nsys.modules.update(dict.fromkeys(('vllm', 'trl', 'peft')))  # as where they are not installed\n"


@pytest.fixture
def bare(tmp_path, monkeypatch):
    """Processes that find neither vLLM nor TRL nor PEFT."""
    (tmp_path / "sitecustomize.py").write_text(BLOCKED)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    prepare()
    return tmp_path


@pytest.mark.process
@pytest.mark.slow
def test_all_weights_are_learned_where_peft_is_not_installed(bare):
    result = gpu.run_part("tiny", "full", bare, 300)
    assert result["tokens"] == 1024
    assert result["tokens_per_s"] > 0
    assert result["mfu"] is None  # of a CPU no peak is known
    # by hand: `tiny` has 779,136 weights; 64 of 256 tokens of a trace are its prompt, so that 3/4 meet the output head
    assert result["operations_per_token"] < 6 * 779_136 * 1.2
    assert "peft" in gpu.run_part("tiny", "lora", bare, 300)["missing"]


@pytest.mark.process
@pytest.mark.slow
def test_whole_steps_have_shares_and_leave_no_checkpoint(bare):
    result = gpu.run_part("tiny", "steps", bare, 300)
    assert sum(result["shares"].values()) == pytest.approx(1, abs=0.02)
    assert len(result["steps"]) == gpu_parts.STEPS - gpu_parts.WARM
    assert result["lora"] is False


@pytest.mark.slow
def test_random_weights_of_a_shape_play_and_learn(tmp_path, monkeypatch):
    """Their vocabulary is larger than that of the tokenizer, which is the one of `tiny`."""
    prepare()
    small = ModelShape("small", 2, 32, 64, 4, 2, 16, 20_000, tied=True, window=8192, head_norms=True)
    monkeypatch.setitem(shapes.SHAPES, "0.6b", small)
    monkeypatch.setitem(sys.modules, "vllm", None)
    monkeypatch.setattr(gpu_parts, "BATCH", 1024)
    folder = tmp_path / "0.6b"
    assert gpu_parts.weights("0.6b", folder)["parameters"] == small.parameters
    assert shapes.named(str(folder)).parameters == small.parameters
    # by hand: 2 layers of 32 · (64 + 2 · 32 + 64) + 3 · 32 · 64 weights; of 4 traces of 256 tokens 192 are scored each
    products = 2 * (32 * 192 + 3 * 32 * 64) * 1024 + 20_000 * 32 * 4 * 192
    attention = 12 * 2 * 64 * 4 * 256 * 257 // 2
    learned = gpu_parts.full("0.6b", folder)
    assert learned["operations_per_token"] == pytest.approx((6 * products + attention) / 1024)
    played = gpu_parts.sampling("0.6b", folder)
    assert played["vllm"] == {"missing": "vllm is not installed"}
    assert played["work"]["requests"] == 4 * 2 * gpu_parts.TURNS


def test_a_part_that_fails_says_so_and_the_next_one_runs(tmp_path, monkeypatch):
    results = {
        "full": {"failed": "exit code 1: no memory"},
        "lora": {"tokens_per_s": 5.0},
        "sampling": {"missing": "x"},
    }
    monkeypatch.setattr(gpu, "run_part", lambda shape, part, folder, limit: results.get(part, {"seconds": 1.0}))
    monkeypatch.setattr(gpu, "_gpu", lambda: False)
    out = tmp_path / "out.jsonl"
    result = gpu.measure(Namespace(minutes=9, out=out))
    assert list(result["shapes"]) == ["tiny"]
    assert [json.loads(line)["part"] for line in out.read_text().splitlines()] == ["full", "lora", "sampling", "steps"]
    assert "full: failed: exit code 1: no memory" in gpu.line(result)
    assert "lora: 5 tokens per second" in gpu.line(result)


def test_what_would_not_end_in_time_is_skipped(tmp_path, monkeypatch):
    monkeypatch.setattr(gpu, "_gpu", lambda: True)
    monkeypatch.setattr(gpu, "run_part", lambda shape, part, folder, limit: {"seconds": 1.0})
    result = gpu.measure(Namespace(minutes=1, out=None))["shapes"]
    assert result["0.6b"]["weights"] == {"seconds": 1.0}
    assert result["4b"]["sampling"]["skipped"].startswith("it takes about 120 s, and ")  # twice 60
    assert "seconds" in result["4b"]["weights"]  # twice 20 s are left
    first = [(shape, part) for shape in gpu.SHAPES for part in ("weights", "full", "lora")]
    assert list(gpu._parts())[:6] == first
    monkeypatch.setattr(gpu, "run_part", lambda shape, part, folder, limit: {"failed": "exit code 1"})
    result = gpu.measure(Namespace(minutes=9, out=None))["shapes"]
    assert result["4b"]["full"] == {"skipped": "there are no weights"}


def test_a_part_that_hangs_or_crashes_ends(tmp_path, monkeypatch):
    script = tmp_path / "python"
    script.write_text(f"#!{sys.executable}\nimport time\ntime.sleep(60)\n")
    script.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(script))
    assert gpu.run_part("tiny", "full", tmp_path, 1) == {"failed": "it did not end within 1 s"}
    script.write_text("#!/bin/sh\necho CUDA error: out of memory >&2\nexit 3\n")
    assert gpu.run_part("tiny", "full", tmp_path, 30) == {"failed": "exit code 3: CUDA error: out of memory"}


def test_every_shape_has_its_published_row():
    assert set(gpu.PUBLISHED) <= {(shape, part) for shape in gpu.SHAPES for part in gpu.SECONDS}
