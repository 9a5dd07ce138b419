"""`python -m training calibrate`: its JSON and files, of a configuration and of a run's checkpoints, and its errors."""

import json
import shutil

import pytest

from tests.toy_models import write_random_llama
from training import bases, samples
from training.attempts.start import start
from training.cli import main
from training.config import load
from training.evaluate.calibration.report import Evaluation, Row
from training.games import make
from training.games.qa_society import alone
from training.retrieval.bm25 import Bm25Settings
from training.retrieval.index import build
from training.rundir import RunDir
from training.store import atomic_directory

CONFIG = """
[model]
base = "model"
device = "cpu"
[engine]
name = "transformers"
[sampling]
max_tokens = 40
[game]
name = "qa_society"
[search]
indexes = {{ wiki = "{index}" }}
passages = 1
[calibration]
{section}
[[calibration.sets]]
label = "Samples"
tools = ["wiki", ""]
limit = 3
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a random model that knows the words of the rules, a corpus's index, and a configuration."""
    monkeypatch.setenv("PARLEY_HOME", str(tmp_path / "home"))
    rules = make(alone(samples.for_game("qa_society")[0], "wiki")).observe(0).messages[0].text
    write_random_llama(tmp_path / "model", window=4096, known=rules)
    corpus = tmp_path / "wiki.jsonl"
    corpus.write_text(json.dumps({"id": "1", "title": "Prague", "text": "The Vltava runs through Prague."}) + "\n")
    config(tmp_path, index=build(corpus, Bm25Settings()))
    return tmp_path


def config(folder, index, section=""):
    (folder / "run.toml").write_text(CONFIG.format(index=index, section=section))


def call(capsys, *arguments, code=0):
    assert main(["calibrate", *map(str, arguments), "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_the_base_model_alone_is_one_evaluation(folder, capsys):
    result = call(capsys, folder / "run.toml", "--dir", folder / "out")
    [evaluation] = map(Evaluation.from_dict, result["evaluations"])
    assert [(cell.label, cell.tool, cell.questions, cell.errors) for cell in evaluation.cells] == [
        ("Samples", "wiki", 3, 0),
        ("Samples", "", 3, 0),
    ]
    for cell in evaluation.cells:
        chances = [chance.mean for chance in (cell.search, cell.answer, cell.hedge) if chance]
        assert sum(chances) == pytest.approx(1)
    assert json.loads((folder / "out" / "calibration.json").read_text()) == result
    lines = [json.loads(line) for line in (folder / "out" / "questions.jsonl").read_text().splitlines()]
    assert len(lines) == 6
    assert {(line.pop("step"), line.pop("model")) for line in lines} == {(0, evaluation.model)}
    rows = [Row.from_dict(line) for line in lines]
    assert all(row.search + row.answer + row.hedge == pytest.approx(1) for row in rows if row.tool)
    assert [row.question for row in rows[3:]] == [row.question.replace("-wiki", "-alone") for row in rows[:3]]
    conditions = result["conditions"]
    assert conditions["models"]["base"]["sha256"]
    assert conditions["sets"] == [
        {"label": "Samples", "tools": ["wiki", ""], "limit": 3, "file": "samples of qa_society"}
    ]
    assert "bootstrap" in conditions["intervals"]


def test_another_model_is_measured_beside_it_with_the_same_answers_of_the_base(folder, capsys):
    write_random_llama(folder / "other", seed=7, window=4096)
    result = call(capsys, folder / "run.toml", "--model", folder / "other", "--dir", folder / "out")
    base, other = map(Evaluation.from_dict, result["evaluations"])
    assert list(result["conditions"]["models"]) == ["base", "model"]
    ends = [
        (cell.search_calibration.curve.f1[0], cell.search_calibration.curve.f1[-1])
        for cell in (base.cells[0], other.cells[0])
    ]
    assert ends[0] == ends[1], "no search and a search for every question are the base model's"
    assert base.cells[0].answer.mean != other.cells[0].answer.mean


def test_a_run_directory_is_measured_at_its_newest_checkpoint_or_at_a_step(folder, capsys):
    run_dir = RunDir(folder / "run")
    start(load(folder / "run.toml"), run_dir, folder)
    for step in (2, 4):
        with atomic_directory(run_dir.attempt(1).checkpoint(step)) as checkpoint:
            shutil.copytree(
                write_random_llama(folder / f"at{step}", seed=step, window=4096), checkpoint, dirs_exist_ok=True
            )
            bases.write_info(checkpoint, bases.ModelInfo(name="toy", base="toy", step=step))
    newest = call(capsys, run_dir.root)
    assert [each["step"] for each in newest["evaluations"]] == [0, 4]
    earlier = call(capsys, run_dir.root, "--step", 2)
    assert [each["step"] for each in earlier["evaluations"]] == [0, 2]
    assert earlier["evaluations"][0] == newest["evaluations"][0]
    error = call(capsys, run_dir.root, "--step", 3, code=2)["error"]
    assert "the checkpoint after step 3" in error["why"]


def test_the_text_has_every_number(folder, capsys):
    assert main(["calibrate", str(folder / "run.toml")]) == 0
    shown = capsys.readouterr().out
    for words in (
        "can search wiki",
        "has no search",
        "search rate",
        "P(search)",
        "search calibration",
        "top 10 %",
        "caution",
    ):
        assert words in shown


@pytest.mark.parametrize(
    "arguments, where, why",
    [
        (["--model", "scripted"], "--model", "no local model"),
        (["--model", "http://127.0.0.1:1/v1 gpt"], "--model", "no local model"),
        (["--model", "nothing-of-that-name"], "--model", "no such model"),
        (["--step", "1", "--model", "tiny"], "--step", "no other model"),
    ],
)
def test_models_that_cannot_be_measured_are_refused(folder, capsys, arguments, where, why):
    error = call(capsys, folder / "run.toml", *arguments, "--dir", folder / "out", code=2)["error"]
    assert where == error["where"]
    assert why in error["why"]
    assert not (folder / "out").exists(), "nothing was changed"


def test_configurations_that_cannot_be_measured_are_refused_by_field(folder, capsys):
    (folder / "bare.toml").write_text('[game]\nname = "qa_society"\n')
    assert call(capsys, folder / "bare.toml", code=2)["error"]["where"].endswith("calibration.sets")
    (folder / "out").mkdir()
    (folder / "out" / "kept").touch()
    error = call(capsys, folder / "run.toml", "--dir", folder / "out", code=2)["error"]
    assert error == {"kind": "input", "where": str(folder / "out"), "why": "not an empty directory; choose another"}
    config(folder, index="bm25-of-nothing")
    assert call(capsys, folder / "run.toml", code=2)["error"]["where"] == "search.indexes"
    config(folder, index="x", section="draws = 0")
    assert call(capsys, folder / "run.toml", code=2)["error"]["where"].endswith("calibration.draws")
