"""Trust 44, in run directories: what an earlier release wrote is read, and its training goes on.

`tests/golden/runs/0.1.0` was written by that release (commit d7477e1): self-play of a random model at negotiations of
two turns, stopped after two of three steps.
"""

import json
import shutil
from pathlib import Path

import pytest

from tests.toy_models import write_random_llama
from training.cli import main
from training.config import load
from training.games import replay
from training.records import Episode
from training.rundir import RunDir
from training.store import read_lines, read_member, sha256, verify_directory

RUNS = Path(__file__).resolve().parents[1] / "golden" / "runs"
MODEL = "/srv/parley/model"
"""Where the runs found their model, which `write_random_llama` writes again."""
GRADIENT = {"critic_lr", "critic_grad_norm"}
"""Metrics of a critic that learns by gradient steps; the critic by default is a ridge regression since."""


@pytest.fixture(params=sorted(folder.name for folder in RUNS.iterdir()))
def run_dir(request, tmp_path):
    shutil.copytree(RUNS / request.param, tmp_path / "run")
    run_dir, model = RunDir(tmp_path / "run"), write_random_llama(tmp_path / "model", window=4096, layers=1)
    run_dir.config.write_text(run_dir.config.read_text("utf-8").replace(MODEL, str(model)), "utf-8")
    return run_dir


def test_its_episodes_are_read_and_replayed_to_the_end_they_had(run_dir):
    attempt = run_dir.attempt(1)
    lines = [line for line, _ in read_lines(attempt.index)]
    assert [line["step"] for line in lines] == [1, 1, 2, 2]
    for line in lines:
        stored = read_member(attempt.root / "episodes" / line["file"], line["offset"], line["length"])["episode"]
        episode = Episode.from_dict(stored)
        assert replay(episode.scenario, episode.moves).returns() == episode.returns
        assert {str(seat): value for seat, value in episode.returns.items()} == line["summary"]["returns"]
        points = [episode.seat_metrics[seat]["points"] for seat in (0, 1)]
        assert points == [line["summary"]["metrics"][f"points_{seat}"] for seat in (0, 1)]


def test_its_training_goes_on_from_its_checkpoint(run_dir, capsys):
    first = run_dir.attempt(1)
    step, folder = run_dir.latest_checkpoint()
    verify_directory(folder)
    assert step == 2
    assert load(run_dir.config).learn.steps == 3
    before = {file: sha256(file) for file in first.root.rglob("*") if file.is_file()}
    assert main(["resume", str(run_dir.root), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["result"], result["step"], result["attempt"]) == ("succeeded", 3, 2)
    assert {file: sha256(file) for file in first.root.rglob("*") if file.is_file()} == before
    (old, *_), (new,) = ([line for line, _ in read_lines(run_dir.attempt(n).metrics)] for n in (1, 2))
    assert new["step"] == 3
    assert set(old) - GRADIENT <= set(new), "curves of the first steps go on under their names"
    assert run_dir.latest_checkpoint()[0] == 3
