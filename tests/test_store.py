"""Appending on a full disk, reading past a broken line, and replacing a folder, each cut off at any point."""

import gzip
import json
import os
import resource
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest

from training import store
from training.errors import BadInput
from training.store import append_line, append_member, atomic_directory, read_lines, read_member, verify_directory


@contextmanager
def no_file_above(size):
    """As on a disk that is almost full, a write that reaches `size` bytes is cut short, the next one fails."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def lines(path):
    return [line for line, _ in read_lines(path)]


def test_a_line_that_does_not_fit_is_not_begun(tmp_path):
    path = tmp_path / "metrics.jsonl"
    append_line(path, {"step": 1})
    whole = path.read_bytes()
    with pytest.raises(OSError, match="File too large"), no_file_above(len(whole) + 5):
        append_line(path, {"step": 2})
    assert path.read_bytes() == whole
    append_line(path, {"step": 3})
    assert lines(path) == [{"step": 1}, {"step": 3}]


def test_a_member_that_does_not_fit_is_not_begun(tmp_path):
    path = tmp_path / "step.jsonl.gz"
    _, first = append_member(path, {"number": 1})
    with pytest.raises(OSError, match="File too large"), no_file_above(first + 5):
        append_member(path, {"number": 2})
    place = append_member(path, {"number": 3})
    assert place[0] == first
    assert read_member(path, *place) == {"number": 3}
    with gzip.open(path, "rt") as file:
        assert [json.loads(line)["number"] for line in file] == [1, 3]


@pytest.mark.parametrize("broken", [b'{"a": 1{"a": 2}', b"\xff\xfe", b"[1]", b"NaN", b"[1e999]", b"[" * 100_000])
def test_a_broken_line_is_reported_once_and_skipped(tmp_path, caplog, broken):
    path = tmp_path / "events.jsonl"
    path.write_bytes(b'{"a": 0}\n' + broken + b'\n{"a": 3}\n')
    assert list(read_lines(path)) == [({"a": 0}, 9), ({"a": 3}, path.stat().st_size)]
    assert list(read_lines(path, 9)) == [({"a": 3}, path.stat().st_size)]
    (warning,) = caplog.messages
    assert warning == f"{path}: the line at byte 9 is no JSON object and is skipped"


@pytest.fixture
def dead():
    """The id of a process that is gone."""
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def write(folder, text):
    with atomic_directory(folder) as inside:
        (inside / "part").mkdir(exist_ok=True)
        (inside / "part" / "weights").write_text(text)


def content(folder):
    verify_directory(folder)
    return (folder / "part" / "weights").read_text()


def test_what_dead_writers_of_a_folder_left_is_deleted_by_the_next(tmp_path, dead):
    alive = os.getppid()
    for name in (
        f".model.tmp-{dead}",
        f".model.old-{dead}",
        f".model.tmp-{alive}",
        f".other.tmp-{dead}",
        ".model.tmp-x",
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "weights").write_text("half")
    write(tmp_path / "model", "new")
    assert {path.name for path in tmp_path.iterdir()} == {
        "model", f".model.tmp-{alive}", f".other.tmp-{dead}", ".model.tmp-x",
    }  # fmt: skip
    assert content(tmp_path / "model") == "new"


def test_the_old_folder_is_there_until_the_new_one_is_in_its_place(tmp_path, monkeypatch):
    model = tmp_path / "model"
    write(model, "old")
    replace = Path.replace

    def refused(path, target):
        if ".tmp-" in path.name and target == model:
            raise OSError("no")
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", refused)
    with pytest.raises(OSError, match="no"):
        write(model, "new")
    assert content(model) == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    monkeypatch.undo()
    write(model, "new")
    assert content(model) == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_folder_that_a_killed_replacement_moved_aside_comes_back(tmp_path, dead):
    model = tmp_path / "model"
    write(model, "old")
    model.rename(tmp_path / f".model.old-{dead}")
    (tmp_path / f".model.tmp-{dead}").mkdir()
    with pytest.raises(ZeroDivisionError), atomic_directory(model):
        _ = 1 / 0
    assert content(model) == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_every_file_and_folder_is_synced_before_the_rename(tmp_path, monkeypatch):
    synced = []
    sync = store._fsync
    monkeypatch.setattr(store, "_fsync", lambda path: (synced.append(path), sync(path)))
    write(tmp_path / "model", "new")
    temporary = tmp_path / f".model.tmp-{os.getpid()}"
    assert synced == [temporary / "part", temporary / "part" / "weights", temporary, tmp_path]


def test_lines_keep_their_numbers_without_blank_ones_and_byte_order_mark(tmp_path):
    file = tmp_path / "lines.jsonl"
    file.write_bytes(b"\xef\xbb\xbf1\n\n \t\n\xef\xbb\xbf4\n5")
    assert list(store.numbered_lines(file)) == [(1, b"1\n"), (4, b"\xef\xbb\xbf4\n"), (5, b"5")]
    with pytest.raises(BadInput, match="a folder"):
        next(store.numbered_lines(tmp_path))
