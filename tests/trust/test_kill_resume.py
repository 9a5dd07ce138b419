"""Trust 2: a run that is killed at any moment goes on by itself, and ends with the very bits of one left in peace.

PARLEY_KILLS is the number of random moments.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.learn.killed_run import PHASES
from tests.learn.small_runs import another, make_run
from training.attempts.start import reopen
from training.learn import trainer
from training.rundir import RunDir
from training.store import read_lines, sha256

ROOT = Path(__file__).resolve().parents[2]
KILLS = int(os.environ.get("PARLEY_KILLS", "20"))
STEPS = 3


def killed(*arguments: object) -> dict[str, list[int]]:
    """The exit codes of every run's attempts, by the run's name."""
    command = [sys.executable, "-m", "tests.learn.killed_run", *map(str, arguments)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def history(run_dir: RunDir) -> list[dict]:
    """The run's metrics as a reader merges them: an attempt supersedes lines above the step from which it started."""
    lines: list[dict] = []
    for number in run_dir.attempts():
        files = run_dir.attempt(number)
        began = [event["step"] for event, _ in read_lines(files.events) if event["kind"] == "started"]
        if began:
            lines = [line for line in lines if line["step"] <= began[0]]
        lines += [line for line, _ in read_lines(files.metrics)]
    return lines


def final_bits(run_dir: RunDir) -> dict[str, str]:
    step, folder = run_dir.latest_checkpoint()
    assert step == history(run_dir)[-1]["step"]
    names = ["trainer/state.safetensors", "trainer/state.json"]
    names += [p.name for p in folder.glob("*.safetensors")]
    return {name: sha256(folder / name) for name in names}


TIMES = ("at", "_s", "_per_s")


def numbers(line: dict) -> dict:
    return {name: value for name, value in line.items() if not name.endswith(TIMES)}


@pytest.fixture(scope="module")
def peace(tmp_path_factory):
    """The same run without any kill."""
    learn = {"steps": STEPS, "keep": 1}  # so that the second checkpoint already displaces one
    games = {"scenarios": 1, "games": 2}  # what is killed is the saving, not the playing
    config, run_dir = make_run(tmp_path_factory.mktemp("peace"), steps=STEPS, learn=learn, rollout=games)
    assert trainer.run(config, run_dir)["exit"] == 0
    return run_dir


def same_run(run_dir, peace):
    lines = history(run_dir)
    assert [line["step"] for line in lines] == list(range(1, STEPS + 1))
    assert [numbers(line) for line in lines] == [numbers(line) for line in history(peace)]
    assert final_bits(run_dir) == final_bits(peace)


def test_killed_at_random_moments(peace, tmp_path):
    exits = killed("moments", peace.root, tmp_path, KILLS, 11)
    assert [code for codes in exits.values() for code in codes].count(-9) == KILLS
    assert all(codes[-1] == 0 for codes in exits.values())
    for name in exits:
        same_run(RunDir(tmp_path / name / "run"), peace)


def test_killed_in_each_phase_of_saving(peace, tmp_path):
    exits = killed("saving", peace.root, tmp_path)
    assert {phase for phase, _ in (name.rsplit(", ", 1) for name in exits)} == set(PHASES)
    for name, codes in exits.items():
        assert codes == [-9, 0], name
        same_run(RunDir(tmp_path / name / "run"), peace)


def test_stopped_and_gone_on_with_several_updates_of_all_weights(tmp_path):
    learn = {"lora": None, "epochs": 2, "tokens_per_update": 3000, "schedule": "cosine", "warmup": 1, "lr": 1e-4}
    learn |= {"critic": {"kind": "mlp"}, "critic_passes": 3}  # the others have the default, which has no optimizer
    config, whole = make_run(
        tmp_path, steps=STEPS, learn={"steps": STEPS, "critic_warmup": 1, "save_every": 2, **learn}
    )
    assert trainer.run(config, whole)["result"] == "succeeded"
    parts = another(whole, tmp_path / "parts")

    async def stop_after_one(running, step):
        if step == 1 and parts.attempts() == [1]:
            parts.attempt(1).ask("stop")
        return {}

    first = reopen(parts)
    watched = first.model_copy(update={"evaluate": first.evaluate.model_copy(update={"every": 1})})
    result = trainer.run(watched, parts, evaluate=stop_after_one)
    assert (result["result"], result["exit"], result["step"]) == ("stopped", 0, 1)
    assert parts.latest_checkpoint()[0] == 1
    assert trainer.run(reopen(parts), parts)["result"] == "succeeded"
    same_run(parts, whole)
