"""The loop with vLLM for real, in a process of its own: weights reach it, and both sides agree on log-probabilities."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.learn.small_runs import make_run
from training.store import read_lines

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.vllm
@pytest.mark.process
@pytest.mark.skipif(importlib.util.find_spec("vllm") is None, reason="vLLM is not installed")
@pytest.mark.parametrize("cluster", [{}, {"tensor_parallel": 2}], ids=["in one process", "split engine"])
def test_sampler_and_trainer_agree_after_every_update(tmp_path, cluster):
    learn = {"steps": 3, "critic_warmup": 0, "lr": 1e-2}
    engine = {"name": "vllm", "cache_gib": 0.5}
    sampling = {"max_tokens": 12, "temperature": 0.6}  # at 1 a side that forgot it would agree, too
    _, run_dir = make_run(tmp_path, engine=engine, sampling=sampling, learn=learn, cluster=cluster)
    command = [sys.executable, "-m", "training", "resume", str(run_dir.root), "--json"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout)["result"] == "succeeded"
    metrics = [line for line, _ in read_lines(run_dir.attempt(1).metrics)]
    assert len(metrics) == 3
    assert all(0 <= line["gap_mean"] <= line["gap_max"] < 1e-3 for line in metrics)
    assert metrics[-1]["kl"] > 1e-4  # the policy has moved, and vLLM with it
