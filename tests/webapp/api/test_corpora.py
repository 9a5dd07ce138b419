"""Corpora over the REST API: uploaded, watched, searched, exported, deleted."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from tests.webapp.api.calling import Caller, refusal
from tests.webapp.corpora import making
from webapp.corpora import indexing, searching, services
from webapp.corpora.models import Corpus, Index
from webapp.corpora.searching import FoundPassage

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("home")]


@pytest.fixture
def call(researcher):
    return Caller(researcher)


def upload(call, data=None, **fields):
    file = SimpleUploadedFile("towers.jsonl", data or making.lines())
    return call.client.post(reverse("api:list_corpora"), {"name": "towers", "file": file, **fields})


def test_a_corpus_is_uploaded_and_its_index_watched(call):
    response = upload(call, source="an encyclopedia", licence="CC0", private="true")
    assert response.status_code == 201
    made = response.json()
    named = {name: made[name] for name in ("name", "owner", "filename", "source", "licence", "private", "problem")}
    assert named == {
        "name": "towers", "owner": "rosa", "filename": "towers.jsonl", "source": "an encyclopedia", "licence": "CC0",
        "private": True, "problem": "",
    }  # fmt: skip
    assert (made["bytes"], made["passages"]) == (len(making.lines()), None)
    assert [(index["kind"], index["state"]) for index in made["indexes"]] == [("bm25", "queued")]
    index = indexing.claim(pk=Index.objects.get().pk, host="here")
    indexing.beat(index=index, phase="words", done=2, total=3)
    (building,) = call.get("corpora/towers").json()["indexes"]
    assert (building["state"], building["phase"], building["done"], building["total"]) == ("building", "words", 2, 3)
    Index.objects.update(claimed_until=None, state="queued")
    folder = making.build(Corpus.objects.get())
    listed = call.get("corpora", q="encyclo").json()
    (ready,) = listed["items"][0]["indexes"]
    assert (listed["count"], listed["items"][0]["passages"]) == (1, 3)
    assert (ready["state"], ready["name"]) == ("ready", folder.name)
    assert call.get("corpora", q="other").json()["items"] == []


def test_an_upload_chooses_its_indexes(call, monkeypatch):
    monkeypatch.setattr(services.dense, "installed", lambda: True)
    assert upload(call, kinds=["bm25", "dense"]).status_code == 201
    assert set(Index.objects.values_list("kind", flat=True)) == {"bm25", "dense"}


@pytest.mark.parametrize(
    "fields, where", [({"name": "a b"}, "name"), ({"name": "upload"}, "name"), ({"kinds": ["other"]}, "kinds.0")]
)
def test_a_wrong_field_of_an_upload_is_named(call, fields, where):
    assert refusal(upload(call, **fields)) == (422, where)
    assert not Corpus.objects.exists()


def test_missing_packages_a_taken_name_and_quotas_refuse_an_upload(call, settings, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(services.dense, "installed", lambda: False)
        assert refusal(upload(call, kinds=["dense"])) == (422, "kinds")
    with monkeypatch.context() as patched:
        patched.setattr(services, "MAX_BYTES", 10)
        assert refusal(upload(call)) == (422, "file")
    assert upload(call).status_code == 201
    assert refusal(upload(call)) == (422, "name")
    settings.QUOTAS = {**settings.QUOTAS, "corpora": {"researcher": 1}}
    assert upload(call, name="more").status_code == 422
    assert Corpus.objects.count() == 1


def test_an_invalid_file_is_a_problem_of_its_corpus(call):
    upload(call, making.lines() + b'{"id": "x"}\n')
    index = indexing.claim(pk=Index.objects.get().pk, host="here")
    indexing.refuse(index=index, where=" line 4, text", why="the field is missing")
    got = call.get("corpora/towers").json()
    assert (got["problem"], got["indexes"]) == ("towers.jsonl line 4, text: the field is missing", [])
    assert refusal(call.get("corpora/towers/export")) == (409, "")
    assert refusal(call.post("corpora/towers/indexes/bm25"))[0] == 422


def test_a_search_returns_passages_or_says_why_not(call, researcher, monkeypatch):
    corpus = making.corpus(researcher)
    assert refusal(call.get("corpora/towers/search", q="tower")) == (422, "kind")
    making.build(corpus)
    asked = []

    def ask(process, index, query, k, by):
        asked.append((query, k))
        return searching.Results([FoundPassage(id="cn", title="CN Tower", text="Tall.", score=2.5)], frozenset())

    monkeypatch.setattr(searching.SearchProcess, "ask", ask)
    passages = call.get("corpora/towers/search", q="tower", k=3).json()
    assert passages == [{"id": "cn", "title": "CN Tower", "text": "Tall.", "score": 2.5, "cut": False}]
    assert asked == [("tower", 3)]
    assert refusal(call.get("corpora/towers/search", q="x", k=101)) == (422, "k")
    assert refusal(call.get("corpora/towers/search", q="x", kind="other")) == (422, "kind")
    assert refusal(call.get("corpora/towers/search")) == (422, "q")

    def slow(*_):
        raise searching.SearchError("the search took longer than 60 s")

    monkeypatch.setattr(searching.SearchProcess, "ask", slow)
    assert refusal(call.get("corpora/towers/search", q="x")) == (409, "")


def test_a_stopped_index_is_queued_again_and_a_ready_one_stays(call, researcher):
    corpus = making.corpus(researcher)
    services.stop_index(corpus=corpus, kind="bm25")
    (index,) = call.post("corpora/towers/indexes/bm25").json()["indexes"]
    assert index["state"] == "queued"
    making.build(corpus)
    (index,) = call.post("corpora/towers/indexes/bm25").json()["indexes"]
    assert index["state"] == "ready"


def test_an_export_is_the_file_and_a_deleted_corpus_is_gone(call, researcher):
    making.corpus(researcher)
    assert b"".join(call.get("corpora/towers/export").streaming_content) == making.lines()
    assert call.delete("corpora/towers").status_code == 204
    assert refusal(call.get("corpora/towers")) == (404, "")


def test_others_neither_see_a_private_corpus_nor_change_any(call, researcher, other_researcher):
    making.corpus(researcher, private=True)
    other = Caller(other_researcher)
    assert other.get("corpora").json()["items"] == []
    for path in ("corpora/towers", "corpora/towers/search?q=x", "corpora/towers/export"):
        assert refusal(other.get(path)) == (404, "")
    services.share(corpus=Corpus.objects.get(), private=False)
    assert other.get("corpora/towers").status_code == 200
    assert refusal(other.delete("corpora/towers")) == (404, "")
    assert refusal(other.post("corpora/towers/indexes/bm25")) == (404, "")
