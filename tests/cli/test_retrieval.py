"""`index` and `search`: the JSON that others read, what a person reads, and exit codes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from training.cli import main, reporter
from training.retrieval.bm25 import Bm25Settings
from training.retrieval.index import build

ROOT = Path(__file__).resolve().parents[2]
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
        "built": True,
    }
    assert answer(capsys, "index", str(corpus))["built"] is False
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


def test_a_passage_gives_the_terminal_no_orders(capsys, corpus):
    hostile = {"id": "a\x1b[31m", "title": "two\nlines\x1b]0;title\x07", "text": "cats \x1b[2J\u202e"}
    corpus.write_text(json.dumps(hostile))
    name = answer(capsys, "index", str(corpus))["name"]
    assert main(["search", name, "cats"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.endswith("[a\ufffd[31m] two lines\ufffd]0;title\ufffd")
    assert second == "     cats \ufffd[2J\ufffd"
    (passage,) = answer(capsys, "search", name, "cats")["passages"]
    assert {field: passage[field] for field in hostile} == hostile


def test_the_status_file_has_the_phases_and_how_it_ended(corpus, tmp_path, monkeypatch):
    status, seen = tmp_path / "status.json", []
    write = reporter.write_json
    monkeypatch.setattr(reporter, "write_json", lambda path, data: seen.append(data) or write(path, data))
    assert main(["index", str(corpus), "--status", str(status)]) == 0
    end = json.loads(status.read_text())
    assert (end["phase"], end["passages"], end["built"]) == ("finished", 2, True)
    assert [report["phase"] for report in seen] == ["checksum", "read", "words", "scores", "finished"]
    assert seen[1] == {"phase": "read", "done": 2, "total": 2}
    corpus.write_text('{"id": "a", "text": 3}')
    assert main(["index", str(corpus), "--status", str(status)]) == 2
    refused = json.loads(status.read_text())
    assert refused.pop("why").startswith("expected a string")
    assert refused == {"phase": "refused", "where": "corpus.jsonl line 1, text", "invalid": True}
    assert main(["index", str(tmp_path / "none.jsonl"), "--status", str(status)]) == 2
    assert json.loads(status.read_text())["invalid"] is False, "another file may be readable at another time"


@pytest.mark.process
def test_an_index_whose_supervisor_is_gone_ends_and_leaves_nothing(corpus, tmp_path):
    code = (
        "import os, sys\n"
        "from training.cli import main, reporter\n"
        "write = reporter.Reporter.write\n"
        "def go_on(report, status):\n"
        "    write(report, status)\n"
        "    if status['phase'] == 'words':\n"
        "        os.write(2, b'words\\n')\n"
        "        os.read(0, 1)\n"  # until the other end is closed
        "reporter.Reporter.write = go_on\n"
        "sys.exit(main(['index', sys.argv[1], '--status', sys.argv[2]]))\n"
    )
    command = [sys.executable, "-c", code, str(corpus), str(tmp_path / "status.json")]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        while b"words" not in process.stderr.readline():
            assert process.poll() is None
        process.stdin.close()
        assert process.wait(30) == 130
    assert list((tmp_path / "home" / "indexes").iterdir()) == []


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
