"""Trust 3: whatever happens to a checkpoint's files, the loader yields the last complete step, never a mix."""

import errno
import os
import shutil

import pytest
import torch

from tests.toy_models import write_random_llama
from training import bases, store
from training.bases import ModelInfo
from training.errors import BadInput
from training.learn import checkpoint, policy
from training.learn.checkpoint import TrainerState
from training.run_sections import LearnSection
from training.rundir import RunDir

INFO = ModelInfo(name="toy", base="toy")


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    base = write_random_llama(tmp_path_factory.mktemp("base") / "model")
    learn = LearnSection.from_dict({"lora": {"rank": 4}})
    return policy.load(str(base), ["turn"], learn, seed=0, temperature=1.0, device="cpu")


def save(toy, attempt, step):
    """A checkpoint whose every number says which step it is of."""
    with torch.no_grad():
        for parameter in (*toy.trained.values(), *toy.critic.parameters()):
            parameter.fill_(float(step))
    state = TrainerState(step, {"step": step}, {"mark": torch.full((3,), float(step)), **toy.tensors()})
    checkpoint.write(attempt.checkpoint(step), toy.model, toy.tokenizer, INFO, state, adapter_only=True)


def loaded(run):
    """What the newest complete checkpoint says; every part must be of one step."""
    step, folder = run.latest_checkpoint()
    state = checkpoint.read(folder)
    from safetensors.torch import load_file

    weights = load_file(folder / "adapter_model.safetensors")
    marks = {step, state.step, state.data["step"], *state.tensors["mark"].tolist()}
    marks |= {value for tensor in (*weights.values(), *toy_tensors(state)) for value in tensor.flatten().tolist()}
    assert len(marks) == 1
    return step


def toy_tensors(state):
    return [tensor for name, tensor in state.tensors.items() if name.startswith(("heads.", "adapter."))]


@pytest.fixture
def run(tmp_path, toy):
    run = RunDir(tmp_path)
    save(toy, run.attempt(1), 1)
    save(toy, run.attempt(1), 2)
    assert loaded(run) == 2
    return run


def files(run):
    folder = run.attempt(1).checkpoint(2)
    return [p for p in sorted(folder.rglob("*")) if p.is_file()]


def test_every_file_truncated_flipped_or_missing(run):
    for file in files(run):
        whole = file.read_bytes()
        flipped = bytes([whole[0] ^ 1]) + whole[1:]
        middle = whole[: len(whole) // 2] + bytes([whole[len(whole) // 2] ^ 4]) + whole[len(whole) // 2 + 1 :]
        for broken in (whole[:-1], b"", flipped, middle, None):
            if broken is None:
                file.unlink()
            else:
                file.write_bytes(broken)
            if broken != flipped or file.name != store.MANIFEST:  # a manifest may open with another byte than "{"
                assert loaded(run) == 1, file.name
            with pytest.raises((BadInput, ValueError)):
                checkpoint.read(file.parents[1] if file.parent.name == bases.STATE else file.parent)
            file.write_bytes(whole)
    assert loaded(run) == 2


def test_an_earlier_attempt_serves_while_the_newest_has_nothing_complete(run, toy):
    save(toy, run.attempt(2), 3)
    assert loaded(run) == 3
    (run.attempt(2).checkpoint(3) / store.MANIFEST).unlink()
    assert loaded(run) == 2
    shutil.rmtree(run.attempt(1).root)
    assert run.latest_checkpoint() is None


@pytest.mark.parametrize("place", range(0, 18, 2))
def test_a_full_disk_leaves_the_last_complete_step(run, toy, monkeypatch, place):
    left = place
    real = os.fsync

    def full(descriptor):
        nonlocal left
        if left == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        left -= 1
        real(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    try:
        save(toy, run.attempt(1), 3)
        complete = True
    except OSError:
        complete = False
    monkeypatch.undo()
    assert loaded(run) == (3 if run.attempt(1).checkpoint(3).exists() else 2)
    assert not complete or loaded(run) == 3
    assert [p.name for p in (run.attempt(1).root / "checkpoints").iterdir() if p.name.startswith(".")] == []


def test_what_a_kill_left_behind_is_not_a_checkpoint(run):
    folder = run.attempt(1).checkpoint(2)
    shutil.copytree(folder, folder.with_name(".step_000003.tmp-123"))
    shutil.copytree(folder, folder.with_name("step_000004"), ignore=shutil.ignore_patterns(store.MANIFEST))
    assert loaded(run) == 2


def test_a_complete_checkpoint_is_not_written_again(run, toy):
    before = [(p, p.stat().st_mtime_ns) for p in files(run)]
    state = TrainerState(2, {"step": 99}, {})
    checkpoint.write(run.attempt(1).checkpoint(2), toy.model, toy.tokenizer, INFO, state, adapter_only=True)
    assert [(p, p.stat().st_mtime_ns) for p in files(run)] == before


def test_only_the_checkpoint_that_is_gone_on_from_is_hashed(run, toy, monkeypatch):
    hashed = []
    real = store.sha256
    monkeypatch.setattr(store, "sha256", lambda path: hashed.append(path) or real(path))
    assert [step for step, _ in run.attempt(1).checkpoints()] == [1, 2]
    checkpoint.prune(run.attempt(1), 2)
    assert hashed == []
    assert run.latest_checkpoint()[0] == 2
    assert sorted(hashed) == [path for path in files(run) if path.name != store.MANIFEST]


def test_a_torn_checkpoint_is_reported_without_reading_it(run):
    folder = run.attempt(1).checkpoint(2)
    assert store.looks_complete(folder)
    for file in files(run):
        whole = file.read_bytes()
        file.write_bytes(whole[:-1])
        assert not store.looks_complete(folder), file.name
        file.unlink()
        assert not store.looks_complete(folder), file.name
        file.write_bytes(whole)
    assert store.looks_complete(folder)


def test_pruning_keeps_the_newest(run, toy):
    save(toy, run.attempt(1), 3)
    checkpoint.prune(run.attempt(1), 2)
    assert [step for step, _ in run.attempt(1).checkpoints()] == [2, 3]


def test_a_checkpoint_that_cannot_be_deleted_ends_no_run_and_is_deleted_later(run, toy, monkeypatch, caplog):
    """As on NFS, where a folder is not empty as long as another process reads a file that was in it."""

    def busy(path, *, dir_fd=None):
        raise OSError(errno.ENOTEMPTY, "Directory not empty")

    monkeypatch.setattr(os, "rmdir", busy)
    checkpoint.prune(run.attempt(1), 1)
    monkeypatch.undo()
    assert run.attempt(1).checkpoint(1).exists()
    assert [step for step, _ in run.attempt(1).checkpoints()] == [2]
    assert [record.getMessage() for record in caplog.records] == [
        f"{run.attempt(1).checkpoint(1)} could not be deleted as a whole; it is tried again after the next checkpoint"
    ]
    save(toy, run.attempt(1), 3)
    checkpoint.prune(run.attempt(1), 2)
    assert not run.attempt(1).checkpoint(1).exists()
    assert [step for step, _ in run.attempt(1).checkpoints()] == [2, 3]


def test_a_model_without_a_trainers_state_is_refused(tmp_path):
    with store.atomic_directory(tmp_path / "model") as inside:
        (inside / "config.json").write_text("{}")
    with pytest.raises(BadInput, match="no trainer state"):
        checkpoint.read(tmp_path / "model")
