"""Event files, read back by TensorBoard's own reader, and what W&B writes when their script runs."""

import json
import os
import struct
import subprocess
import sys
from collections.abc import Iterator
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


def wandb_records(file: Path) -> Iterator[bytes]:
    """The records of a W&B run file: a 7-byte header, then LevelDB's log format in blocks of 32 KiB."""
    content, at, record = file.read_bytes(), 7, b""
    while at + 7 <= len(content):
        left = 2**15 - at % 2**15
        if left < 7:
            at += left
            continue
        _, length, part = struct.unpack("<IHB", content[at : at + 7])
        record += content[at + 7 : at + 7 + length]
        at += 7 + length
        if part in (1, 4):  # whole, or the last part
            yield record
            record = b""


def test_the_script_beside_it_logs_every_step_to_wandb(tmp_path, capsys):
    from wandb.proto.wandb_internal_pb2 import Record

    folder = run_directory(tmp_path / "run")
    assert main(["export-metrics", str(folder), "--out", str(tmp_path / "out")]) == 0
    script = tmp_path / "out" / "to_wandb.py"
    assert str(script) in capsys.readouterr().out
    settings = {"WANDB_MODE": "offline", "WANDB_DIR": str(tmp_path), "WANDB_ERROR_REPORTING": "false"}
    environment = {key: value for key, value in os.environ.items() if not key.startswith("WANDB_")} | settings
    # outside the project's folder, so that nothing of it can be imported
    subprocess.run(
        [sys.executable, script], env=environment, cwd=tmp_path, check=True, capture_output=True, timeout=120
    )

    (file,) = tmp_path.glob("wandb/offline-run-*/run-*.wandb")
    records = [Record.FromString(content) for content in wandb_records(file)]
    (run,) = {(record.run.project, record.run.display_name) for record in records if record.HasField("run")}
    assert run == ("parley", "out")
    rows = [
        {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in record.history.item}
        for record in records
        if record.HasField("history")
    ]
    # the times of `run_directory`, not those of the upload
    logged = [(row["_step"], row["_timestamp"], row["reward"]) for row in rows]
    assert logged == [(1, 101.0, 11.0), (2, 102.0, 12.0), (3, 103.0, 23.0), (4, 104.0, 24.0)]
