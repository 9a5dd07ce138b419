"""The search process: a line asks, a line answers, whatever is asked; it ends when nobody asks any more."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from training.retrieval import index, server
from training.retrieval.bm25 import Bm25Settings
from training.retrieval.index import build, open_index

ROOT = Path(__file__).resolve().parents[2]


def asked(**request):
    return server.answer(json.dumps(request).encode())


def test_an_answer_has_the_passages_and_the_words_that_were_searched(corpus):
    folder = build(corpus("The cat sleeps", "A dog barks"), Bm25Settings())
    answer = asked(index=folder.name, query="the CAT and the bird", k=5)
    assert answer == {
        "passages": [{**passage.to_dict(), "cut": False} for passage in open_index(folder).search("cat bird", 5)],
        "words": ["bird", "cat"],
    }
    assert asked(index=str(folder), query="", k=5) == {"passages": [], "words": []}


def test_an_answer_is_bounded_whatever_the_passages_are(tmp_path, monkeypatch):
    monkeypatch.setattr(server, "MOST_CHARACTERS", 100)
    passages = [
        {"id": "i" * 2000, "title": "t" * 2000, "text": "cat"},
        {"id": "long", "title": "", "text": "cat " * 50},
        {"id": "short", "title": "Cats", "text": "cat " * 8},
    ]
    (path := tmp_path / "corpus.jsonl").write_text("".join(json.dumps(passage) + "\n" for passage in passages))
    folder = build(path, Bm25Settings())
    passages = {passage["id"]: passage for passage in asked(index=folder.name, query="cat", k=3)["passages"]}
    assert [(len(each["title"]), len(each["text"]), each["cut"]) for each in passages.values()].count(
        (0, 33, True)
    ) == 1
    assert (passages["short"]["text"], passages["short"]["cut"]) == ("cat " * 8, False)
    named = passages["i" * server.LONGEST_TITLE]
    assert (len(named["title"]), named["text"], named["cut"]) == (server.LONGEST_TITLE, "cat", True)
    (only,) = asked(index=folder.name, query="cat", k=1)["passages"]
    assert len(only["text"]) <= 100


def test_a_refusal_is_an_answer(corpus):
    folder = build(corpus("The cat sleeps"), Bm25Settings())
    assert asked(index="nothing", query="cat", k=1)["where"] == "nothing"
    assert asked(index=folder.name, query="cat", k=0)["where"] == "k"


def test_a_process_keeps_a_bounded_number_of_indexes_open(corpus, monkeypatch):
    index._opened.cache_clear()
    folders = [build(corpus(f"word{number}"), Bm25Settings()) for number in range(index.OPEN + 1)]
    first = open_index(folders[0])
    for folder in folders[1:]:
        open_index(folder)
    assert open_index(folders[-1]) is open_index(folders[-1])
    assert open_index(folders[0]) is not first


@pytest.mark.process
def test_the_process_answers_until_its_input_ends(corpus):
    folder = build(corpus("The cat sleeps", "Der Bär schläft"), Bm25Settings())
    requests = [{"index": str(folder), "query": query, "k": 1} for query in ("cat", "Bär", "x\ny")]
    text = "".join(json.dumps(request) + "\n" for request in requests)
    command = [sys.executable, "-m", "training.retrieval.server"]
    done = subprocess.run(command, cwd=ROOT, input=text, capture_output=True, text=True, check=True, timeout=60)
    ids = [[passage["id"] for passage in json.loads(line)["passages"]] for line in done.stdout.splitlines()]
    assert ids == [["0"], ["1"], []]


@pytest.mark.process
def test_the_process_ends_when_nobody_asks(corpus):
    code = "from training.retrieval import server; server.main(0.2)"
    with subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdin=subprocess.PIPE) as process:
        assert process.wait(30) == 0
