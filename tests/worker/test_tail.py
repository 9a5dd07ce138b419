"""Reading a run directory while it is being written."""

import json
import shutil

import pytest

from training.rundir import AttemptDir
from training.store import append_line, atomic_directory
from worker import tail as module
from worker.tail import Tail, clean


@pytest.fixture
def attempt(tmp_path):
    return AttemptDir(tmp_path / "0001")


def reader(attempt, **more):
    return Tail(attempt, "runs/7/attempts/0001", 7, {"JUDGE_API_KEY": "sk-1"}, **more)


def metric(attempt, step):
    append_line(attempt.metrics, {"step": step, "at": 1.0})


def steps(batch):
    return [line["step"] for line in batch.metrics]


def test_every_line_once_and_a_torn_one_later(attempt):
    tail = reader(attempt)
    assert not tail.read()
    metric(attempt, 1)
    with attempt.metrics.open("ab") as file:
        file.write(b'{"step": 2, "at"')
    batch = tail.read()
    assert steps(batch) == [1]
    tail.done(batch)
    assert not tail.read()
    with attempt.metrics.open("ab") as file:
        file.write(b": 2.0}\n")
    assert steps(tail.read()) == [2]


def test_a_batch_that_was_not_stored_is_read_again(attempt):
    metric(attempt, 1)
    tail = reader(attempt)
    assert steps(tail.read()) == steps(tail.read()) == [1]
    again = reader(attempt, offsets=tail.read().offsets)
    assert not again.read().metrics


def test_long_files_come_in_pieces_and_checkpoints_only_after_their_lines(attempt, monkeypatch):
    monkeypatch.setattr(module, "LINES", 3)
    for step in range(1, 6):
        metric(attempt, step)
    with atomic_directory(attempt.checkpoint(5)) as folder:
        (folder / "config.json").write_text("{}")
    tail = reader(attempt)
    first = tail.read()
    assert (steps(first), first.checkpoints) == ([1, 2, 3], [])
    tail.done(first)
    second = tail.read()
    assert steps(second) == [4, 5]
    assert [(checkpoint["step"], checkpoint["kind"], checkpoint["path"]) for checkpoint in second.checkpoints] == [
        (5, "full", "checkpoints/run-7-step-5")
    ]
    tail.done(second)
    assert tail.read().checkpoints == []


def test_a_torn_checkpoint_is_not_seen(attempt):
    with atomic_directory(attempt.checkpoint(1)) as folder:
        (folder / "adapter_config.json").write_text("{}")
    with atomic_directory(attempt.checkpoint(2)) as folder:
        (folder / "config.json").write_text("{}")
    (attempt.checkpoint(2) / "config.json").write_text("changed")
    assert [(checkpoint["step"], checkpoint["kind"]) for checkpoint in reader(attempt).read().checkpoints] == [
        (1, "adapter")
    ]


def test_a_checkpoint_that_is_pruned_while_it_is_looked_at_is_passed_over(attempt, monkeypatch):
    for step in (1, 2):
        with atomic_directory(attempt.checkpoint(step)) as folder:
            (folder / "config.json").write_text("{}")

    def look(folder):
        if folder == attempt.checkpoint(1):
            shutil.rmtree(folder)
        return True

    monkeypatch.setattr(module, "looks_complete", look)
    assert [checkpoint["step"] for checkpoint in reader(attempt).read().checkpoints] == [2]


def test_a_line_that_cannot_be_read_does_not_hide_the_next(attempt):
    metric(attempt, 1)
    with attempt.metrics.open("ab") as file:
        file.write(b'{"step": 2, "at{"step": 3, "at": 1.0}\n')
    tail = reader(attempt)
    batch = tail.read()
    assert steps(batch) == [1]
    tail.done(batch)
    metric(attempt, 4)
    assert steps(tail.read()) == [4]


def test_an_earlier_attempt_is_read_up_to_the_step_that_follows_it(attempt):
    for step in range(1, 6):
        metric(attempt, step)
    tail = reader(attempt)
    batch = tail.read_up_to(3)
    assert steps(batch) == [1, 2, 3]
    tail.done(batch)
    assert not tail.read_up_to(3)


def test_the_rows_of_a_calibration_are_named_as_the_storage_does(attempt):
    append_line(attempt.events, {"at": 1.0, "kind": "calibration", "step": 2, "cells": [], "rows": "step_000002.jsonl"})
    append_line(attempt.events, {"at": 1.0, "kind": "started", "step": 2})
    calibration, started = reader(attempt).read().events
    assert calibration["rows"] == "runs/7/attempts/0001/calibration/step_000002.jsonl"
    assert "rows" not in started


def test_the_log_loses_colours_progress_bars_and_secrets(attempt):
    attempt.log.parent.mkdir(parents=True)
    attempt.log.write_bytes(b"\x1b[31mred\x1b[0m\n10%\r20%\r30%\nkey sk-1\nnul \x00 \xff\n")
    tail = reader(attempt)
    assert tail.read().log == "red\n30%\nkey [JUDGE_API_KEY]\nnul \ufffd \ufffd\n"
    assert tail.read().log is None


def test_what_the_database_cannot_hold_is_replaced():
    text = json.loads('"a\\u0000b\\ud800c"')
    assert clean({"k": [text, 1, None]}) == {"k": ["a\ufffdb?c", 1, None]}


def episode(attempt, number, size):
    """Append the entry of an episode that ends where the file of the first step has `size` bytes."""
    entry = {"step": 1, "episode": number, "file": "step_000001.jsonl.gz", "offset": size - 1, "length": 1}
    append_line(attempt.index, {**entry, "summary": {}})


def numbers(tail):
    """The episodes that are read, and stored, now."""
    batch = tail.read()
    tail.done(batch)
    return [line["episode"] for line in batch.episodes]


@pytest.mark.parametrize("in_bucket", [True, False])
def test_a_large_file_in_a_bucket_is_read_again_when_it_has_grown_by_a_quarter(attempt, monkeypatch, in_bucket):
    """Else it would be uploaded whole with every episode."""
    monkeypatch.setattr(module.files, "local", lambda name: None if in_bucket else attempt.root / name)
    tail = reader(attempt)
    tail.holds_back = True
    size, first = 2 * module.SMALL_BYTES, module.SMALL_BYTES - 2
    assert [(episode(attempt, number, first + number), numbers(tail))[1] for number in (1, 2)] == [[1], [2]]
    episode(attempt, 3, size)
    assert numbers(tail) == [3]
    episode(attempt, 4, int(size * 1.2))
    assert numbers(tail) == ([] if in_bucket else [4])
    episode(attempt, 5, int(size * 1.3))
    assert numbers(tail) == ([4, 5] if in_bucket else [5])


@pytest.mark.parametrize("why", ["the step is over", "time is over", "the attempt is over"])
def test_episodes_of_a_large_file_are_not_held_back_for_long(attempt, monkeypatch, why):
    monkeypatch.setattr(module.files, "local", lambda name: None)
    tail = reader(attempt)
    tail.holds_back = True
    episode(attempt, 1, 2 * module.SMALL_BYTES)
    assert numbers(tail) == [1]
    episode(attempt, 2, 2 * module.SMALL_BYTES + 9)
    assert numbers(tail) == []
    if why == "the step is over":
        metric(attempt, 1)
    elif why == "time is over":
        monkeypatch.setattr(module, "MOST_SECONDS", 0.0)
    else:
        tail.holds_back = False
    assert numbers(tail) == [2]
