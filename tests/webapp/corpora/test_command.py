"""`manage.py build_index`: of a file or of a corpus of the site, once."""

import io
import json
import time
from types import SimpleNamespace

import pytest
from django.core.management import call_command

from tests.webapp.corpora import making
from training.retrieval.index import names, open_index
from webapp.corpora import indexing, services
from webapp.corpora.models import Corpus, CorpusFile, Index

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "high towers.jsonl"
    path.write_bytes(making.lines())
    return path


def answer(*arguments, code=0):
    out = io.StringIO()
    if code:
        with pytest.raises(SystemExit) as raised:
            call_command("build_index", *map(str, arguments), "--json", stdout=out, stderr=io.StringIO())
        assert raised.value.code == code
    else:
        call_command("build_index", *map(str, arguments), "--json", stdout=out, stderr=io.StringIO())
    return json.loads(out.getvalue())


def test_a_file_becomes_a_corpus_with_an_index(file, home):
    made = answer(file)
    assert made.pop("seconds") > 0
    folder = home / "indexes" / made["name"]
    assert made == {
        "name": folder.name, "path": str(folder), "kind": "bm25", "corpus": "high-towers", "passages": 3,
        "bytes": sum(part.stat().st_size for part in folder.iterdir()), "built": True,
    }  # fmt: skip
    assert open_index(made["name"]).search("iron", 1)[0].id == "eiffel"
    corpus = Corpus.objects.get()
    assert (corpus.owner.role, corpus.filename, corpus.file.passages) == ("admin", "high towers.jsonl", 3)
    assert corpus.index("bm25").state == "ready"


def test_again_there_is_no_work(file, monkeypatch):
    first = answer(file)
    monkeypatch.setattr(indexing, "begun", lambda **_: pytest.fail("it is there"))
    for again in (answer(file), answer("high-towers")):
        assert again["built"] is False
        assert {**first, "built": False} == {**again, "seconds": first["seconds"]}


def test_a_missing_folder_is_built_again(file):
    first = answer(file)
    services.delete_folder(first["name"])
    assert answer("high-towers")["built"] is True
    assert names() == [first["name"]]


def test_an_invalid_line_is_named_and_leaves_nothing(file):
    file.write_bytes(making.lines() + b'{"id": "cat", "text": "again"}\n')
    error = answer(file, code=2)["error"]
    assert error["where"] == "high towers.jsonl line 4, id"
    assert error["why"].startswith("a second passage with the id 'cat'")
    assert names() == []
    assert not Corpus.objects.exists()
    assert not CorpusFile.objects.exists()


def test_a_corpus_of_the_site_that_is_invalid_stays_with_its_problem(researcher):
    making.corpus(researcher, data=b'{"id": "a"}\n')
    assert answer("towers", code=2)["error"]["where"] == "towers.jsonl line 1, text"
    assert Corpus.objects.get().problem.startswith("towers.jsonl line 1, text: the field is missing")


def test_other_content_does_not_take_a_name(file, corpus, researcher):
    file.write_bytes(making.lines(making.PASSAGES[0]))
    assert answer(file, "--name", "towers", code=2)["error"]["where"] == "--name"
    assert answer(file, "--name", "one", "--owner", researcher.username)["corpus"] == "one"
    assert Corpus.objects.get(name="one").owner == researcher


@pytest.mark.parametrize(
    "arguments, where", [(["nothing"], "nothing"), (["towers", "--kind", "dense"], "kind"), (["/"], "/")]
)
def test_wrong_input_is_named(corpus, arguments, where, monkeypatch):
    monkeypatch.setattr(services.dense, "installed", lambda: False)
    assert answer(*arguments, code=2)["error"]["where"] == where


def test_it_waits_for_a_worker_that_builds_the_index(corpus, monkeypatch):
    claimed = indexing.claim(pk=corpus.index("bm25").pk, host="elsewhere")
    waited = []

    def work(seconds):
        waited.append(seconds)
        if len(waited) == 2:
            Index.objects.update(claimed_until=None)
            indexing.give_back(index=claimed)

    its_time = SimpleNamespace(perf_counter=time.perf_counter, monotonic=time.monotonic, sleep=work)
    monkeypatch.setattr("webapp.corpora.management.commands.build_index.time", its_time)  # others sleep meanwhile
    made = answer("towers")
    assert (made["passages"], made["built"], len(waited)) == (3, True, 2)


def test_work_that_is_stopped_on_the_site_ends(corpus, monkeypatch):
    begun = indexing.begun

    def stopped(**values):
        begun(**values)
        services.stop_index(corpus=corpus, kind="bm25")

    monkeypatch.setattr(indexing, "begun", stopped)
    assert answer("towers", code=2)["error"]["why"] == "it was stopped on the site"
    assert names() == []
    assert Index.objects.get().state == "stopped"
