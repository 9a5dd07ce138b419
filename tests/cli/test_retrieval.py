"""`index` and `search`: the JSON that others read, what a person reads, and exit codes."""

import json
from pathlib import Path

import pytest

from training.cli import main
from training.retrieval.bm25 import Bm25Settings
from training.retrieval.index import build

LINES = [
    {"id": "p1", "title": "Cats", "text": "Cats sleep " + "all day and all night " * 20},
    {"id": "p2", "text": "A dog is no cat."},
]


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    monkeypatch.setenv("PARLEY_HOME", str(tmp_path / "home"))
    path = tmp_path / "corpus.jsonl"
    path.write_text("\n".join(map(json.dumps, LINES)))
    return path


def answer(capsys, *arguments, code=0):
    assert main([*arguments, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_a_corpus_is_indexed_and_searched_by_the_name_that_is_printed(capsys, corpus):
    made = answer(capsys, "index", str(corpus))
    folder = build(corpus, Bm25Settings())
    assert made.pop("seconds") > 0
    assert made == {
        "name": folder.name,
        "path": str(folder),
        "kind": "bm25",
        "corpus": "corpus.jsonl",
        "passages": 2,
        "bytes": sum(file.stat().st_size for file in folder.iterdir()),
    }
    for where in (made["name"], made["path"]):
        result = answer(capsys, "search", where, "dog or cats", "-k", "1")
        assert result.pop("seconds") > 0
        (passage,) = result["passages"]
        assert passage.pop("score") > 0
        assert passage == {"rank": 1, "title": "", **LINES[1]}
        assert result == {"index": where, "query": "dog or cats", "passages": [passage]}


def test_a_person_reads_the_beginning_of_each_text(capsys, corpus):
    assert main(["index", str(corpus)]) == 0
    shown = capsys.readouterr()
    name, path = shown.out.splitlines()[0].split(":")[0], shown.out.splitlines()[1]
    assert Path(path).name == name
    assert "scores: 6 of 6" in shown.err
    assert main(["search", name, "cats"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("  1  ")
    assert first.endswith("[p1] Cats")
    assert len(second) < 210
    assert second.endswith(" …")
    assert main(["search", name, "elephant"]) == 0
    assert capsys.readouterr().out == "no passage matches\n"


def test_wrong_input_is_named(capsys, corpus, tmp_path):
    error = answer(capsys, "search", "nothing", "x", code=2)["error"]
    assert (error["kind"], error["where"]) == ("input", "nothing")
    error = answer(capsys, "index", str(tmp_path / "none.jsonl"), code=2)["error"]
    assert error["where"] == str(tmp_path / "none.jsonl")
    error = answer(capsys, "index", str(corpus), "--model", "x", code=2)["error"]
    assert error["where"] == "--model"
    corpus.write_text('{"id": "a"}')
    error = answer(capsys, "index", str(corpus), code=2)["error"]
    assert error == {
        "kind": "input",
        "where": "corpus.jsonl line 1, text",
        "why": "the field is missing: every passage needs an id and a text",
    }
    assert answer(capsys, "search", "x", "y", "-k", "0", code=2)["error"]["where"] == "-k"
