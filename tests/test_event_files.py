"""Event files, read back by TensorBoard's own reader."""

import json
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from training.cli import main
from training.event_files import pieces


def scalars(folder: Path) -> dict[str, list[tuple[float, int, float]]]:
    """Every tag's (wall time, step, value), as TensorBoard reads them."""
    reader = EventAccumulator(str(folder), size_guidance={"scalars": 0})
    reader.Reload()
    return {
        tag: [(event.wall_time, event.step, event.value) for event in reader.Scalars(tag)]
        for tag in reader.Tags()["scalars"]
    }


def swapped(events):
    return [(step, value) for _, step, value in events]


def test_tensorboard_reads_what_was_written(tmp_path):
    rows = [(1, 1000.5, {"reward": 0.25, "reward/wolf": -1.0}), (3, 1010.0, {"reward": 0.1})]
    (tmp_path / "events.out.tfevents.1000.parley").write_bytes(b"".join(pieces(rows)))
    series = scalars(tmp_path)
    assert set(series) == {"reward", "reward/wolf"}
    # values are float32 there: 0.25 and -1 exactly, 0.1 to its precision
    assert swapped(series["reward/wolf"]) == [(1, -1.0)]
    assert [(step, at) for at, step, _ in series["reward"]] == [(1, 1000.5), (3, 1010.0)]
    assert [value for _, value in swapped(series["reward"])] == pytest.approx([0.25, 0.1], rel=1e-7)


def run_directory(root: Path) -> Path:
    """Attempt 1 wrote steps 1 to 3; attempt 2 went on from step 2 and wrote 3 and 4."""
    for number, start, steps in ((1, 0, (1, 2, 3)), (2, 2, (3, 4))):
        folder = root / "attempts" / f"{number:04d}"
        folder.mkdir(parents=True)
        (folder / "events.jsonl").write_text(json.dumps({"at": 1.0, "kind": "started", "step": start}) + "\n")
        lines = [json.dumps({"step": step, "at": 100.0 + step, "reward": 10 * number + step}) for step in steps]
        (folder / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    return root


def test_the_command_exports_every_step_once(tmp_path, capsys):
    folder = run_directory(tmp_path / "run")
    arguments = ["export-metrics", str(folder), "--out", str(tmp_path / "out"), "--json"]
    assert main(arguments) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["steps"], answer["metrics"]) == (4, 1)
    assert swapped(scalars(tmp_path / "out")["reward"]) == [(1, 11.0), (2, 12.0), (3, 23.0), (4, 24.0)]
    assert main(arguments) == 2  # nothing is overwritten
    assert "exists already" in capsys.readouterr().err


def test_a_folder_without_metrics_is_refused(tmp_path, capsys):
    assert main(["export-metrics", str(tmp_path), "--out", str(tmp_path / "out")]) == 2
    assert "no attempt with metrics" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
