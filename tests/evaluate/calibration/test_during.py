"""The calibration of a training run: when it is due, what it leaves, and that it changes nothing else."""

import json

import pytest

from tests.learn.small_runs import another, make_run
from tests.toy_models import write_random_llama
from training.attempts.start import reopen
from training.errors import BadInput, EngineError
from training.evaluate import during
from training.evaluate.calibration import run
from training.evaluate.calibration.during import DuringCalibration, rows_of
from training.evaluate.calibration.report import Evaluation, Row
from training.retrieval.bm25 import Bm25Settings
from training.retrieval.index import build
from training.store import loads, read_lines

SETS = [{"label": "Samples", "tools": ["wiki"], "limit": 2}, {"label": "Others", "limit": 1, "in_distribution": False}]


@pytest.fixture
def make(tmp_path, monkeypatch):
    """Makes a run of three steps with question sets."""
    monkeypatch.setenv("PARLEY_HOME", str(tmp_path / "home"))
    corpus = tmp_path / "wiki.jsonl"
    corpus.write_text(json.dumps({"id": "1", "title": "Prague", "text": "The Vltava runs through Prague."}) + "\n")
    search = {"indexes": {"wiki": str(build(corpus, Bm25Settings()))}, "passages": 1}

    def made(name="run", **section):
        calibration = {"sets": SETS, **section}
        return make_run(tmp_path / name, steps=3, search=search, calibration=calibration, sampling={"max_tokens": 48})

    return made


def evaluations(run_dir, attempt=1):
    files = run_dir.attempt(attempt).calibrations()
    return {each.step: each for each in (Evaluation.from_dict(loads(path.read_bytes())) for path in files)}


def rows(run_dir, step, attempt=1):
    path = rows_of(run_dir.attempt(attempt).calibration(step))
    return [Row.from_dict(line) for line, _ in read_lines(path)]


def events(run_dir, kind, attempt=1):
    return [event for event, _ in read_lines(run_dir.attempt(attempt).events) if event["kind"] == kind]


def losses(run_dir, attempt=1):
    return [(line["step"], line["loss"]) for line, _ in read_lines(run_dir.attempt(attempt).metrics)]


def test_every_second_step_the_start_and_the_last_are_measured_and_nothing_else_changes(make):
    config, run_dir = make(every=2)
    assert during.run(config, run_dir)["result"] == "succeeded"
    measured = evaluations(run_dir)
    assert list(measured) == [0, 2, 3]
    for step, evaluation in measured.items():
        assert [(cell.label, cell.tool, cell.in_distribution) for cell in evaluation.cells] == [
            ("Samples", "wiki", True),
            ("Others", "", False),
        ]
        assert [(row.label, row.tool) for row in rows(run_dir, step)] == [("Samples", "wiki")] * 2 + [("Others", "")]
    named = {event["step"]: Evaluation.from_dict({k: v for k, v in event.items() if k not in ("at", "kind", "rows")})
             for event in events(run_dir, "calibration")}  # fmt: skip
    assert named == measured
    assert [event["rows"] for event in events(run_dir, "calibration")] == [
        rows_of(run_dir.attempt(1).calibration(step)).name for step in measured
    ]
    plain, alone = make("plain", sets=[])
    during.run(plain, alone)
    assert losses(alone) == losses(run_dir)
    assert not (alone.attempt(1).root / "calibration").exists()


def test_the_answers_of_the_search_curve_stay_those_of_the_start(make):
    config, run_dir = make()
    during.run(config, run_dir)
    start, last = ({row.question: row for row in rows(run_dir, step)} for step in (0, 3))
    assert {name: row.base for name, row in start.items()} == {name: row.base for name, row in last.items()}
    for name, row in start.items():
        if row.tool:
            assert row.base_unsearched_f1 == row.unsearched_f1, "the start is the base model"
        assert row.answer != last[name].answer, "the weights have changed"


def test_a_resumed_run_measures_no_step_twice_and_ends_alike(make, tmp_path, monkeypatch):
    config, whole = make("whole")
    during.run(config, whole)
    parts = another(whole, tmp_path / "parts")
    calibrate = DuringCalibration.__call__

    async def stop_after_one(self, trainer):
        asked = await calibrate(self, trainer)
        if trainer.step == 1:
            trainer.progress.stop("enough")
        return asked

    with monkeypatch.context() as patched:
        patched.setattr(DuringCalibration, "__call__", stop_after_one)
        assert during.run(reopen(parts), parts)["step"] == 1
    assert during.run(reopen(parts), parts)["result"] == "succeeded"
    assert (list(evaluations(parts)), list(evaluations(parts, 2))) == ([0, 1], [2, 3])
    assert rows(parts, 3, attempt=2) == rows(whole, 3)


def test_a_step_that_was_saved_but_not_measured_is_measured_when_the_run_goes_on(make, monkeypatch):
    config, run_dir = make()
    calibrate = DuringCalibration.__call__

    async def fail_after_one(self, trainer):
        if trainer.step:
            trainer.progress.stop("enough")
            raise EngineError("out of memory")
        return await calibrate(self, trainer)

    with monkeypatch.context() as patched:
        patched.setattr(DuringCalibration, "__call__", fail_after_one)
        assert during.run(config, run_dir)["result"] == "stopped"
    [warning] = events(run_dir, "warning")
    assert (warning["step"], warning["why"]) == (1, "no single agent was measured: out of memory")
    during.run(reopen(run_dir), run_dir)
    assert list(evaluations(run_dir, 2)) == [1, 2, 3]


def test_a_failure_is_a_warning_and_the_base_model_is_asked_later(make, monkeypatch):
    config, run_dir = make()
    calibrate = DuringCalibration.__call__

    async def fail_at_the_start(self, trainer):
        if trainer.step == 0:
            raise EngineError("out of memory")
        return await calibrate(self, trainer)

    monkeypatch.setattr(DuringCalibration, "__call__", fail_at_the_start)
    assert during.run(config, run_dir)["result"] == "succeeded"
    monkeypatch.undo()
    assert list(evaluations(run_dir)) == [1, 2, 3]
    assert all(row.base_searched_f1 is not None for row in rows(run_dir, 1) if row.tool)


def test_another_base_model_answers_without_being_measured(make, tmp_path):
    other = write_random_llama(tmp_path / "other", seed=9, window=4096)
    config, run_dir = make(base=str(other))
    during.run(config, run_dir)
    assert list(evaluations(run_dir)) == [0, 1, 2, 3]
    assert evaluations(run_dir)[0].model == "model"
    _, plain = make("plain")
    during.run(reopen(plain), plain)
    theirs, ours = ([row.answer for row in rows(each, 0)] for each in (run_dir, plain))
    assert theirs == ours, "the measured model is the same"


def test_the_numbers_are_those_of_the_saved_weights(make, tmp_path):
    config, run_dir = make()
    during.run(config, run_dir)
    result = run.run(run.Plan(source=run_dir.root, step=3, folder=tmp_path / "out"))
    lines = [line for line, _ in read_lines(tmp_path / "out" / "questions.jsonl") if line["step"] == 3]
    assert [line["answer"] for line in lines] == pytest.approx([row.answer for row in rows(run_dir, 3)], abs=1e-4)
    assert result["evaluations"][1]["step"] == 3


def test_what_cannot_be_asked_is_refused_before_anything_is_written(make):
    config, run_dir = make(base="scripted")
    with pytest.raises(BadInput) as caught:
        during.run(config, run_dir)
    assert caught.value.where == "calibration.base"
    assert not run_dir.attempts()
