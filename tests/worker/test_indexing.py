"""A worker builds an index in a process: progress, refusal, stop, crash and shutdown, and nothing half-done remains."""

import os
import signal
import sys
import threading

import pytest
from django.db import connections

from tests.webapp.corpora import making
from tests.worker.conftest import wait_until
from training.retrieval.index import names, open_index
from webapp.core import pids
from webapp.corpora import services
from webapp.corpora.models import Corpus, CorpusFile, Index
from worker import indexing, lifecycle

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.process, pytest.mark.usefixtures("home")]
SLOW = "tests.worker.slow_index"
"""`python -m training` whose indexing waits after it has reported the phase `words`, until it may go on."""


@pytest.fixture(autouse=True)
def quick(settings, monkeypatch):
    settings.RUN_LEASE_SECONDS = 2.0
    monkeypatch.setattr(indexing, "POLL_SECONDS", 0.05)
    monkeypatch.setattr(indexing, "BEAT_SECONDS", 0.05)
    lifecycle.leaving.clear()
    yield settings
    lifecycle.leaving.clear()


@pytest.fixture
def slow(quick):
    quick.RUN_COMMAND = [sys.executable, "-m", SLOW]


@pytest.fixture
def corpus(researcher):
    return making.corpus(researcher)


@pytest.fixture
def background():
    """Builds an index in a thread, as a worker's pool does."""
    threads = []

    def start(index):
        def work():
            try:
                indexing.build(index.pk)
            finally:
                connections.close_all()

        threads.append(threading.Thread(target=work))
        threads[-1].start()
        return threads[-1]

    yield start
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()


def now(index):
    return Index.objects.get(pk=index.pk)


def at_words(index):
    """The index once its process has reported the phase `words`."""
    wait_until(lambda: now(index).phase == "words" and now(index).pid)
    return now(index)


def left(home):
    return sorted(path.name for path in (home / "indexes").glob(".*"))


def test_an_index_is_built_and_found(corpus, home):
    index = corpus.index("bm25")
    indexing.build(index.pk)
    index = now(index)
    assert (index.state, index.error, index.built, index.pid, index.claimed_until) == ("ready", "", True, None, None)
    assert index.seconds > 0
    assert index.bytes == sum(file.stat().st_size for file in (home / "indexes" / index.name).iterdir())
    assert CorpusFile.objects.get().passages == 3
    assert [passage.id for passage in open_index(index.name).search("concrete", 5)] == ["cn"]
    indexing.build(index.pk)  # a second hint
    assert now(index).fence == 1


def test_an_invalid_line_refuses_the_corpus(researcher, home):
    bad = making.corpus(researcher, data=making.lines() + b'{"id": "", "text": "x"}\n')
    indexing.build(bad.index("bm25").pk)
    assert Corpus.objects.get().problem == (
        "towers.jsonl line 4, id: the field is empty: every passage needs an id and a text"
    )
    assert not Index.objects.exists()
    assert (names(), left(home)) == ([], [])


def test_progress_is_stored_and_a_stop_ends_the_process(corpus, slow, background, home):
    index = corpus.index("bm25")
    thread = background(index)
    running = at_words(index)
    assert (running.state, running.done, running.total) == ("building", 3, 3)
    assert len(left(home)) == 1
    services.stop_index(corpus=corpus, kind="bm25")
    thread.join(20)
    assert not pids.same_process(running.pid, running.pid_started)
    assert (now(index).state, now(index).claimed_until) == ("stopped", None)
    assert (names(), left(home)) == ([], [])


def test_a_process_that_is_killed_is_tried_again(corpus, slow, background, quick, home):
    index = corpus.index("bm25")
    thread = background(index)
    os.killpg(at_words(index).pid, signal.SIGKILL)
    thread.join(20)
    assert now(index).state == "queued"
    assert now(index).error.startswith("the process ended with code -9.")
    assert left(home) == []
    quick.RUN_COMMAND = [sys.executable, "-m", "training"]
    indexing.build(index.pk)
    assert (now(index).state, now(index).error, now(index).tries) == ("ready", "", 2)


def test_a_worker_that_shuts_down_queues_it_again(corpus, slow, background, home):
    index = corpus.index("bm25")
    thread = background(index)
    running = at_words(index)
    lifecycle.leaving.set()
    thread.join(20)
    assert not pids.same_process(running.pid, running.pid_started)
    assert (now(index).state, now(index).tries, left(home)) == ("queued", 0, [])


def test_a_corpus_that_is_deleted_meanwhile_leaves_nothing(corpus, slow, background, home):
    index = corpus.index("bm25")
    thread = background(index)
    at_words(index)
    services.delete_corpus(corpus=corpus)
    thread.join(20)
    assert services.forget_unused() == 1
    assert not CorpusFile.objects.exists()
    assert (names(), left(home)) == ([], [])
    assert list((home / "files" / "corpora").iterdir()) == []


def test_the_process_of_a_worker_that_is_gone_is_ended_by_the_next(corpus, slow, background, home):
    index = corpus.index("bm25")
    thread = background(index)
    running = at_words(index)
    Index.objects.filter(pk=index.pk).update(fence=5, state="queued", claimed_until=None)  # as if another had begun
    thread.join(20)
    assert not pids.same_process(running.pid, running.pid_started)
    assert now(index).state == "queued", "nothing more was written"


def test_a_process_without_progress_is_ended(corpus, slow, quick, home):
    quick.RUN_STALL_MINUTES = 3 / 60
    index = corpus.index("bm25")
    indexing.build(index.pk)
    assert now(index).state == "queued"
    assert left(home) == []


def test_a_machine_that_cannot_index_fails_it_with_the_reason(corpus, home):
    home.mkdir(exist_ok=True)
    (home / "indexes").write_text("a file where the folder should be")
    index = corpus.index("bm25")
    indexing.build(index.pk)
    assert now(index).state == "failed"
    assert "cannot be written" in now(index).error
    assert str(home) not in now(index).error
