"""Corpora are stored once by their content, indexed once, and forgotten with their last owner's copy."""

from datetime import timedelta

import pytest
from django.core.files.storage import default_storage
from django.db.models.functions import Now

from tests.webapp.corpora import making
from training.errors import BadInput
from training.retrieval.index import build, name_of, names, open_index
from webapp.core import queue
from webapp.core.models import QuotaUse
from webapp.corpora import clock, indexing, services
from webapp.corpora.models import Corpus, CorpusFile, Index

pytestmark = pytest.mark.django_db(transaction=True)
HERE = {"host": "here"}


@pytest.fixture
def sent(monkeypatch):
    calls = []
    monkeypatch.setattr(queue.sender, "send_task", lambda name, args, **_: calls.append((name, *args)))
    return calls


def test_a_new_corpus_is_stored_and_its_index_asked_for(corpus, sent, researcher):
    assert (corpus.owner, corpus.filename, corpus.file.passages) == (researcher, "towers.jsonl", None)
    with default_storage.open(corpus.file.storage_name) as file:
        assert file.read() == making.lines()
    index = corpus.index("bm25")
    assert (index.state, index.is_worked_at, corpus.index("dense")) == ("queued", True, None)
    services.request_index(corpus=corpus, kind="bm25")
    assert sent == [("corpora.build_index", index.pk)]


def test_the_same_content_is_stored_and_indexed_once_whoever_uploads_it(corpus, sent, other_researcher, monkeypatch):
    making.build(corpus)
    monkeypatch.setattr(default_storage, "save", lambda *_: pytest.fail("it is stored"))
    again = making.corpus(other_researcher, "mine")
    assert again.file == corpus.file
    assert again.index("bm25").state == "ready"
    assert sent == [], "there is no work"
    assert indexing.claim(pk=again.index("bm25").pk, **HERE) is None
    assert clock.resend_indexes() == 0


def test_an_index_is_claimed_by_one_worker_until_its_lease_lapses(corpus, settings):
    pk = corpus.index("bm25").pk
    first = indexing.claim(pk=pk, **HERE)
    assert indexing.claim(pk=pk, host="there") is None
    indexing.beat(index=first, phase="words", done=2, total=3)
    Index.objects.filter(pk=pk).update(claimed_until=Now() - timedelta(seconds=1))
    assert clock.resend_indexes() == 1
    second = indexing.claim(pk=pk, host="there")
    assert (second.fence, second.tries) == (2, 2)
    for write in (
        lambda: indexing.beat(index=first, phase="words", done=3, total=3),
        lambda: indexing.finish(index=first, passages=3, size=1, seconds=1.0),
        lambda: indexing.fail(index=first, why="x"),
        lambda: indexing.refuse(index=first, where="", why="x"),
        lambda: indexing.give_back(index=first, why="x"),
    ):
        with pytest.raises(indexing.Superseded):
            write()
    indexing.release(index=first)
    second.refresh_from_db()
    assert (second.state, second.host, second.done) == ("building", "there", 2)
    assert second.claimed_until is not None


def test_a_machine_builds_one_index_of_a_kind_at_a_time(corpus, researcher):
    vectors = Index.objects.create(file=corpus.file, kind="dense")
    other = making.corpus(researcher, "cats", making.lines(making.PASSAGES[2]))
    first = indexing.claim(pk=corpus.index("bm25").pk, **HERE)
    assert indexing.claim(pk=other.index("bm25").pk, **HERE) is None
    assert indexing.claim(pk=vectors.pk, **HERE) is not None, "the other kind does not wait"
    assert indexing.claim(pk=other.index("bm25").pk, host="there") is not None
    indexing.fail(index=first, why="no memory")
    assert indexing.claim(pk=corpus.index("bm25").pk, **HERE) is None, "nobody has asked again"
    services.request_index(corpus=corpus, kind="bm25")
    assert indexing.claim(pk=corpus.index("bm25").pk, **HERE) is not None


def test_a_process_that_keeps_dying_fails_its_index(corpus):
    pk = corpus.index("bm25").pk
    for _ in range(indexing.TRIES):
        indexing.give_back(index=indexing.claim(pk=pk, **HERE), why="the process ended with code -9.")
    assert indexing.claim(pk=pk, **HERE) is None
    index = Index.objects.get(pk=pk)
    assert (index.state, index.error) == ("failed", "the process ended with code -9.")
    services.request_index(corpus=corpus, kind="bm25")
    assert indexing.claim(pk=pk, **HERE).tries == 1


def test_a_worker_that_is_shut_down_does_not_count_as_a_try(corpus):
    pk = corpus.index("bm25").pk
    for _ in range(indexing.TRIES + 1):
        indexing.give_back(index=indexing.claim(pk=pk, **HERE))
    assert Index.objects.get(pk=pk).state == "queued"


def test_stopped_work_is_taken_away_and_can_be_asked_for_again(corpus):
    claimed = indexing.claim(pk=corpus.index("bm25").pk, **HERE)
    services.stop_index(corpus=corpus, kind="bm25")
    with pytest.raises(indexing.Superseded):
        indexing.beat(index=claimed, phase="words", done=1, total=3)
    indexing.release(index=claimed)
    index = Index.objects.get(pk=claimed.pk)
    assert (index.state, index.claimed_until) == ("stopped", None)
    assert services.request_index(corpus=corpus, kind="bm25").state == "queued"


def test_a_refused_corpus_keeps_no_file_and_its_name_is_free_for_its_owner(researcher, other_researcher):
    bad = making.corpus(researcher, data=making.lines() + b'{"id": "late"}\n')
    indexing.refuse(
        index=indexing.claim(pk=bad.index("bm25").pk, **HERE), where=indexing.place_of("x.jsonl line 4, text"), why="no"
    )
    bad = Corpus.objects.get()
    assert bad.problem == "towers.jsonl line 4, text: no"
    assert not Index.objects.exists()
    assert not default_storage.exists(bad.file.storage_name)
    with pytest.raises(BadInput, match=r"towers.jsonl line 4, text: no"):
        services.request_index(corpus=bad, kind="bm25")
    with pytest.raises(BadInput, match="exists already"):
        making.corpus(other_researcher)
    good = making.corpus(researcher)
    assert Corpus.objects.get() == good
    assert CorpusFile.objects.get() == good.file, "what was refused is forgotten"


def test_refused_content_is_checked_again_when_it_comes_again(researcher):
    data = making.lines() + b"nonsense\n"
    bad = making.corpus(researcher, data=data)
    indexing.refuse(index=indexing.claim(pk=bad.index("bm25").pk, **HERE), where=" line 4", why="not JSON")
    again = making.corpus(researcher, data=data)
    assert (again.problem, again.index("bm25").state) == ("", "queued")
    assert default_storage.exists(again.file.storage_name)


@pytest.mark.parametrize(
    "name", ["", "a b", "ä", "x" * 81, "upload", "bm25-0123456789abcdef", "dense-0123456789abcdef", "towers"]
)
def test_a_name_that_cannot_be_given_leaves_nothing(corpus, name, other_researcher):
    with pytest.raises(BadInput) as raised:
        making.corpus(other_researcher, name, making.lines(making.PASSAGES[0]))
    assert raised.value.where == "name"
    assert CorpusFile.objects.count() == Corpus.objects.count() == 1


def test_an_index_that_cannot_be_built_here_is_refused(corpus, monkeypatch):
    monkeypatch.setattr(services.dense, "installed", lambda: False)
    with pytest.raises(BadInput, match="run `make dense`"):
        services.request_index(corpus=corpus, kind="dense")
    with pytest.raises(BadInput, match="no index of kind 'other': choose bm25 or dense"):
        services.request_index(corpus=corpus, kind="other")


def test_quotas_count_corpora_and_their_bytes(researcher, settings, admin):
    settings.QUOTAS = {**settings.QUOTAS, "corpora": {"researcher": 1}, "corpus_mebibytes": {"researcher": 1}}
    with pytest.raises(BadInput, match="2 would be more than the limit of 1 MiB of corpora in all") as raised:
        making.corpus(researcher, data=making.lines() + b" " * 2**20)
    assert raised.value.where == "corpus_mebibytes"
    assert services.forget_unused() == 1, "its row came first"
    making.corpus(researcher)
    with pytest.raises(BadInput, match="limit of 1 corpora for the role researcher: delete one") as raised:
        making.corpus(researcher, "more", making.lines(making.PASSAGES[0]))
    assert raised.value.where == "corpora"


def test_corpora_within_an_hour_are_counted_though_they_were_deleted(researcher, other_researcher, settings):
    settings.QUOTAS = {**settings.QUOTAS, "corpora_per_hour": {"researcher": 2}}
    for _ in range(2):
        with pytest.raises(BadInput, match="there is no index of kind"):
            making.corpus(researcher, kinds=["other"])  # what is refused does not count
        services.delete_corpus(corpus=making.corpus(researcher))
    with pytest.raises(BadInput, match="3 would be more than the limit of 2 corpora that were uploaded") as raised:
        making.corpus(researcher)
    assert raised.value.where == "corpora_per_hour"
    assert not Corpus.objects.exists()
    assert making.corpus(other_researcher)
    QuotaUse.objects.update(at=Now() - timedelta(minutes=61))
    assert making.corpus(researcher, "more")


def test_a_failing_storage_leaves_no_file_that_is_taken_for_whole(researcher, monkeypatch):
    def half(name, file):
        default_storage._save(name, making.content(b"half").file)
        raise OSError("full")

    with monkeypatch.context() as broken:
        broken.setattr(default_storage, "save", half)
        with pytest.raises(OSError, match="full"):
            making.corpus(researcher)
    assert not Corpus.objects.exists()
    made = making.corpus(researcher)
    with default_storage.open(made.file.storage_name) as file:
        assert file.read() == making.lines()


def test_the_last_corpus_takes_file_and_index_with_it(corpus, other_researcher):
    folder = making.build(corpus)
    copy = making.corpus(other_researcher, "mine")
    services.delete_corpus(corpus=corpus)
    assert open_index(folder.name).search("tower", 1)
    services.delete_corpus(corpus=copy)
    assert names() == []
    assert not CorpusFile.objects.exists()
    assert not default_storage.exists(copy.file.storage_name)


def test_an_index_that_a_command_made_stays(corpus, tmp_path):
    (path := tmp_path / "same.jsonl").write_bytes(making.lines())
    folder = build(path, indexing.settings_of("bm25"))
    assert making.build(corpus) == folder
    assert corpus.file.indexes.get().built is False
    services.delete_corpus(corpus=corpus)
    assert names() == [folder.name]


def test_an_index_that_survives_its_worker_is_still_the_sites(corpus):
    claimed = indexing.claim(pk=corpus.index("bm25").pk, **HERE)
    indexing.begun(index=claimed)
    with services.local_copy(claimed.file) as path:
        folder = build(path, indexing.settings_of("bm25"))
    Index.objects.update(claimed_until=Now() - timedelta(seconds=1))  # the worker is gone before it could say so
    assert making.build(corpus) == folder
    assert folder.name == name_of(corpus.file.sha256, indexing.settings_of("bm25"))
    services.delete_corpus(corpus=corpus)
    assert names() == []


def test_a_corpus_that_is_being_indexed_is_forgotten_once_its_worker_has_left(corpus):
    claimed = indexing.claim(pk=corpus.index("bm25").pk, **HERE)
    indexing.begun(index=claimed)
    services.delete_corpus(corpus=corpus)
    assert clock.forget_unused() == 0
    assert Index.objects.get().state == "stopped"
    assert default_storage.exists(corpus.file.storage_name), "it is being read"
    indexing.release(index=claimed)
    assert clock.forget_unused() == 1
    assert not CorpusFile.objects.exists()


def test_private_corpora_are_seen_by_their_owner_and_admins(corpus, researcher, other_researcher, admin, player):
    def seen(user):
        return list(Corpus.objects.visible_to(user)), list(Corpus.objects.changeable_by(user))

    assert seen(other_researcher) == ([corpus], [])
    services.share(corpus=corpus, private=True)
    assert seen(researcher) == seen(admin) == ([corpus], [corpus])
    assert seen(other_researcher) == seen(player) == ([], [])
