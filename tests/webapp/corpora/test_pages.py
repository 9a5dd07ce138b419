"""Pages of the corpora, as a researcher uses them."""

import html
import os
import re

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from tests.webapp.corpora import making
from webapp.corpora import indexing, searching, services
from webapp.corpora.models import Corpus, Index
from webapp.corpora.searching import FoundPassage

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def client(client_of, researcher):
    return client_of(researcher)


@pytest.fixture
def answers(monkeypatch):
    """What the search process would answer."""
    asked = []
    passages = [
        FoundPassage(id="<i>7</i>", title="Tower <b>", text=f"A tower & a moat. {'More of it. ' * 40}", score=7.25),
        FoundPassage(id="8", title="", text="Tower.", score=1.0),
    ]

    def ask(process, index, query, k, by):
        asked.append((query, k))
        return searching.Results(passages[:k], frozenset({"tower"}))

    monkeypatch.setattr(searching.SearchProcess, "ask", ask)
    return asked


def page_of(client, name, *arguments, **query):
    return client.get(reverse(f"corpora:{name}", args=arguments), query).content.decode()


def post_upload(client, data=None, **fields):
    file = SimpleUploadedFile("towers.jsonl", data or making.lines())
    return client.post(reverse("corpora:upload"), {"file": file, "name": "towers", **fields})


def test_an_empty_list_names_the_next_step(client):
    page = page_of(client, "list")
    assert "There is no corpus yet" in page
    assert reverse("corpora:upload") in page
    assert "Nothing matches" in page_of(client, "list", q="x")


def test_the_whole_way_of_an_upload(client, researcher):
    address = post_upload(client, source="an encyclopedia", licence="CC0")["Location"]
    corpus = Corpus.objects.get()
    assert (corpus.owner, corpus.filename, corpus.source, corpus.licence) == (
        researcher, "towers.jsonl", "an encyclopedia", "CC0",
    )  # fmt: skip
    page = client.get(address).content.decode()
    assert "Waiting for a worker" in page
    making.build(corpus)
    page = client.get(address).content.decode()
    assert "3 passages" in page
    assert corpus.file.indexes.get().name in page
    listed = page_of(client, "list")
    assert '<td class="number">3</td>' in listed
    assert '<span class="state state-ready">BM25</span>' in listed


def test_the_dense_index_is_built_where_it_is_wanted(client, monkeypatch):
    monkeypatch.setattr(services.dense, "installed", lambda: True)
    post_upload(client, dense="on")
    assert set(Index.objects.values_list("kind", flat=True)) == {"bm25", "dense"}


def test_without_its_packages_the_dense_index_is_not_offered(client, monkeypatch):
    monkeypatch.setattr(services.dense, "installed", lambda: False)
    assert "run `make dense`" in page_of(client, "upload")
    page = client.get(post_upload(client, dense="on")["Location"]).content.decode()
    assert Index.objects.get().kind == "bm25"
    assert "run `make dense`" in page
    assert 'id="build-dense"' not in page
    results = page_of(client, "results", "towers", "dense", q="x")
    assert "Dense retrieval is not installed; run `make dense`" in results
    assert reverse("corpora:build", args=["towers", "dense"]) not in results


def test_a_watched_page_hears_of_each_change_once(client):
    address = post_upload(client)["Location"]

    def asked_by(page):
        asked = re.search(rf'hx-get="({address}[^"]+)"', page)[1]
        return client.get(html.unescape(asked), headers={"HX-Request": "true"})

    page = client.get(address).content.decode()
    assert asked_by(page).status_code == 204
    index = indexing.claim(pk=Index.objects.get().pk, host="here")
    indexing.beat(index=index, phase="words", done=2, total=3)
    building = asked_by(page).content.decode()
    assert '<p id="corpus-status" hx-swap-oob="innerHTML">BM25: building</p>' in building
    assert '<progress value="2" max="3"' in building
    assert "Splitting the passages into words: 2 of 3" in building
    indexing.beat(index=index, phase="scores", done=2, total=9)
    further = asked_by(building).content.decode()
    assert "Computing the scores: 2 of 9" in further
    assert "hx-swap-oob" not in further, "it was said"
    Index.objects.update(claimed_until=None, state="queued")
    making.build(Corpus.objects.get())
    done = asked_by(further).content.decode()
    assert "BM25: ready" in done
    assert "hx-get" not in done


def test_a_refused_corpus_names_file_line_and_field(client):
    address = post_upload(client, making.lines() + b'{"id": "x"}\n')["Location"]
    watching = html.unescape(re.search(rf'hx-get="({address}[^"]+)"', client.get(address).content.decode())[1])
    index = indexing.claim(pk=Index.objects.get().pk, host="here")
    indexing.refuse(index=index, where=" line 4, text", why="the field is missing: <b>")
    assert client.get(watching, headers={"HX-Request": "true"})["HX-Refresh"] == "true"
    page = client.get(address).content.decode()
    assert "towers.jsonl line 4, text: the field is missing: &lt;b&gt;" in page
    assert "Build it" not in page
    assert "Search the passages" not in page
    assert reverse("corpora:export", args=["towers"]) not in page
    assert post_upload(client)["Location"] == address, "its name is free for a correct file"


@pytest.mark.parametrize(
    "fields, problem",
    [
        ({"name": "a b"}, "Use letters, digits, hyphens and underscores only."),
        ({"name": "upload"}, "and not upload"),
        ({"name": ""}, "This field is required"),
        ({"file": ""}, "This field is required"),
        ({"file": SimpleUploadedFile("x.jsonl", b"")}, "The submitted file is empty"),
    ],
)
def test_a_wrong_field_is_refused_with_what_was_entered(client, fields, problem):
    response = post_upload(client, source="kept", **fields)
    assert response.status_code == 400
    assert problem in response.content.decode()
    assert 'value="kept"' in response.content.decode()
    assert not Corpus.objects.exists()


def test_a_taken_name_and_a_used_up_quota_are_refused_at_the_form(client, corpus, settings):
    assert "exists already" in post_upload(client).content.decode()
    settings.QUOTAS = {**settings.QUOTAS, "corpora": {"researcher": 1}}
    assert "limit of 1 corpora" in post_upload(client, name="more").content.decode()


def test_too_large_a_file_is_refused(client, monkeypatch):
    monkeypatch.setattr(services, "MAX_BYTES", 2**20)
    response = post_upload(client, b" " * (2**20 + 1))
    assert "at most 1 MiB" in response.content.decode()


def test_a_search_asks_both_indexes(client, corpus, answers):
    page = page_of(client, "corpus", "towers", q="tower & moat")
    for kind in ("bm25", "dense"):
        assert f'hx-get="{reverse("corpora:results", args=["towers", kind])}?q=tower%20%26%20moat"' in page
    assert 'value="tower &amp; moat"' in page
    assert answers == [], "the page does not wait for them"


def test_results_are_text_with_marked_words(client, researcher, answers):
    making.built(researcher)
    page = page_of(client, "results", "towers", "bm25", q=" tower ")
    assert answers == [("tower", 10)]
    assert "<strong><mark>Tower</mark> &lt;b&gt;</strong>" in page
    assert "&lt;i&gt;7&lt;/i&gt;</span> · score 7.25" in page
    assert "A <mark>tower</mark> &amp; a moat." in page
    assert page.count("<summary>Whole passage</summary>") == 1
    assert "More passages" not in page
    fragment = client.get(
        reverse("corpora:results", args=["towers", "bm25"]), {"q": "x", "k": 2}, headers={"HX-Request": "true"}
    ).content.decode()
    assert "<html" not in fragment
    assert "q=x&amp;k=12" in fragment


def test_a_long_passage_says_that_it_is_cut(client, researcher, monkeypatch):
    making.built(researcher)
    texts = [("tower " * 4000, False), ("tower " * 60, True), ("tower " * 60, False)]  # 24,000 and 360 characters
    passages = [FoundPassage(id="a", title="", text=text, score=1.0, cut=cut) for text, cut in texts]
    results = searching.Results(passages, frozenset({"tower"}))
    monkeypatch.setattr(searching.SearchProcess, "ask", lambda *_: results)
    page = page_of(client, "results", "towers", "bm25", q="tower")
    assert page.count("<summary>Beginning of the passage</summary>") == page.count("too long to be shown whole") == 2
    assert page.count("<summary>Whole passage</summary>") == 1
    shown = 20_000 // 6 + 1  # a tenth of the page's characters
    assert shown <= page.count("<mark>tower</mark>") <= shown + 5 * 60


def test_nothing_found_and_nothing_asked_say_so(client, researcher, monkeypatch):
    making.built(researcher)
    monkeypatch.setattr(searching.SearchProcess, "ask", lambda *_: searching.Results([], frozenset()))
    assert "No passage shares a word" in page_of(client, "results", "towers", "bm25", q="x")
    assert "Enter a query" in page_of(client, "results", "towers", "bm25")


def test_a_search_that_cannot_be_answered_says_what_to_do(client, client_of, researcher, other_researcher, monkeypatch):
    corpus = making.built(researcher)
    services.delete_folder(corpus.file.indexes.get().name)
    page = page_of(client, "results", "towers", "bm25", q="x")
    assert "The files of the index are gone: build it again" in page
    build = reverse("corpora:build", args=["towers", "bm25"])
    assert build in page
    assert build not in page_of(client_of(other_researcher), "results", "towers", "bm25", q="x")
    client.post(build)
    assert Index.objects.get().state == "queued"
    assert "The BM25 index of towers is queued." in page_of(client, "results", "towers", "bm25", q="x")
    making.build(corpus)

    def slow(*_):
        raise searching.SearchError("the search took longer than 60 s")

    monkeypatch.setattr(searching.SearchProcess, "ask", slow)
    assert "The search took longer than 60 s" in page_of(client, "results", "towers", "bm25", q="x")
    assert client.get(reverse("corpora:results", args=["towers", "bm25"]), {"q": "x", "k": 101}).status_code == 404
    assert client.get(reverse("corpora:results", args=["towers", "other"]), {"q": "x"}).status_code == 404


def test_work_is_stopped_and_started_again(client, corpus):
    stop, build = (reverse(f"corpora:{name}", args=["towers", "bm25"]) for name in ("stop", "build"))
    assert stop in page_of(client, "corpus", "towers")
    page = client.post(stop, follow=True).content.decode()
    assert "stopped" in page
    assert build in page
    assert "Waiting for a worker" in client.post(build, follow=True).content.decode()


def test_an_export_is_the_file_as_it_was_uploaded(client, corpus):
    response = client.get(reverse("corpora:export", args=["towers"]))
    assert b"".join(response.streaming_content) == making.lines()
    assert response["Content-Disposition"] == 'attachment; filename="towers.jsonl"'
    assert response["X-Content-SHA256"] == corpus.file.sha256
    services.default_storage.delete(corpus.file.storage_name)
    assert "its file is gone" in client.get(reverse("corpora:export", args=["towers"]), follow=True).content.decode()


def test_a_private_corpus_is_not_there_for_others(client, client_of, other_researcher, corpus):
    other = client_of(other_researcher)
    assert "Make private" not in page_of(other, "corpus", "towers")
    client.post(reverse("corpora:share", args=["towers"]), {"private": "1"})
    assert "its owner and administrators" in page_of(client, "corpus", "towers")
    assert "towers" not in page_of(other, "list")
    for name, arguments in (("corpus", []), ("results", ["bm25"]), ("export", [])):
        assert other.get(reverse(f"corpora:{name}", args=["towers", *arguments])).status_code == 404
    client.post(reverse("corpora:share", args=["towers"]), {"private": "0"})
    assert other.get(reverse("corpora:corpus", args=["towers"])).status_code == 200


def test_a_deleted_corpus_is_gone(client, corpus):
    page = client.post(reverse("corpora:delete", args=["towers"]), follow=True).content.decode()
    assert "towers was deleted." in page
    assert not Corpus.objects.exists()


def test_temporary_files_of_requests_that_never_ended_are_deleted(settings, tmp_path):
    settings.UPLOADS_ROOT = tmp_path / "uploads"
    assert services.forget_uploads() == 0
    settings.UPLOADS_ROOT.mkdir()
    old, new = (settings.UPLOADS_ROOT / name for name in ("old.upload", "new.upload"))
    for path in (old, new):
        path.write_bytes(b"x")
    os.utime(old, (0, 0))
    assert services.forget_uploads() == 1
    assert list(settings.UPLOADS_ROOT.iterdir()) == [new]
