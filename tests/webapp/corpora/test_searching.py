"""The site's search process: it is started when it is needed, replaced when it has ended, and never waited for long."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter

import pytest
from django.db import connection

from tests.webapp.corpora import making
from training.errors import BadInput
from webapp.accounts.models import User
from webapp.core import pids
from webapp.corpora import searching, services
from webapp.corpora.models import Index

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.process]


@pytest.fixture(autouse=True)
def processes():
    yield searching.PROCESSES
    for process in searching.PROCESSES.values():
        process.close()


@pytest.fixture
def ready(researcher):
    return making.built(researcher)


ROSA, OTTO, ADA, ANNA = (User(pk=number) for number in range(1, 5))


def pid_of(kind="bm25"):
    return searching.PROCESSES[kind]._process.pid


def ids(results):
    return [passage.id for passage in results.passages]


def test_one_process_answers_all_searches(ready):
    first = searching.search(ready, "bm25", "a tower of concrete", 5, ROSA)
    assert ids(first) == ["cn", "eiffel"]
    assert first.words == {"tower", "concrete"}
    pid = pid_of()
    answers = []

    def ask(by):
        answers.append(ids(searching.search(ready, "bm25", "cat", 5, by)))
        connection.close()

    threads = [threading.Thread(target=ask, args=[by]) for by in [ROSA, OTTO] * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [["cat"]] * 8
    assert pid_of() == pid


def test_a_process_that_has_ended_is_replaced_without_a_word(ready):
    searching.search(ready, "bm25", "tower", 1, ROSA)
    pid = pid_of()
    os.kill(pid, signal.SIGKILL)
    assert ids(searching.search(ready, "bm25", "cat", 1, ROSA)) == ["cat"]
    assert pid_of() != pid


def test_a_process_that_cannot_start_is_an_error(ready, monkeypatch):
    monkeypatch.setattr(searching, "COMMAND", [sys.executable, "-c", "raise SystemExit(3)"])
    with pytest.raises(searching.SearchError, match="ended before it answered"):
        searching.search(ready, "bm25", "tower", 1, ROSA)


def test_a_search_that_takes_too_long_is_ended(ready, monkeypatch):
    monkeypatch.setattr(searching, "TIMEOUT_S", 0.5)
    monkeypatch.setattr(searching, "COMMAND", [sys.executable, "-c", "import time; time.sleep(60)"])
    with pytest.raises(searching.SearchError, match="took longer"):
        searching.search(ready, "bm25", "tower", 1, ROSA)
    assert searching.PROCESSES["bm25"]._process is None
    monkeypatch.setattr(searching, "WAIT_S", 0.1)
    with searching.PROCESSES["bm25"]._lock, pytest.raises(searching.SearchError, match="too many people"):
        searching.search(ready, "bm25", "tower", 1, ROSA)


def test_slow_searches_of_one_person_leave_room_for_others_and_nobody_waits_without_end(ready, monkeypatch):
    searching.search(ready, "bm25", "tower", 1, ROSA)
    process = searching.PROCESSES["bm25"]
    outcomes, lock = Counter(), process._lock

    def ask(by):
        try:
            searching.search(ready, "bm25", "cat", 1, by)
            outcomes[by.pk, "answered"] += 1
        except searching.SearchError as error:
            outcomes[by.pk, str(error)] += 1
        finally:
            connection.close()

    askers = [*[ROSA] * 6, *[OTTO] * 4, *[ADA] * 4, ANNA]
    with lock:  # as while a search takes its time
        threads = [threading.Thread(target=ask, args=[by]) for by in askers]
        for number, thread in enumerate(threads):
            thread.start()
            while process._asked.total() + outcomes.total() <= number:
                time.sleep(0.01)
        refused = dict(outcomes)
    for thread in threads:
        thread.join()
    refusal = "your earlier searches are not answered yet; wait for them"
    others = "too many people search at the same time; try again in a minute"
    assert refused == {(ROSA.pk, refusal): 2, (ANNA.pk, others): 1}
    assert {key: outcomes[key] for key in outcomes if key[1] == "answered"} == {
        (by.pk, "answered"): 4 for by in (ROSA, OTTO, ADA)
    }
    assert not process._asked
    searching.search(ready, "bm25", "cat", 1, ANNA)


def test_the_process_ends_with_the_site(tmp_path):
    code = (
        "import django; django.setup()\n"
        "from webapp.corpora.searching import SearchProcess\n"
        "process = SearchProcess()\n"
        "print(process._running().pid, flush=True)\n"
        "import os; os.kill(os.getpid(), 9)\n"
    )
    environment = {**os.environ, "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    pid = int(done.stdout)
    deadline = 300
    while pids.start_time(pid) is not None and deadline:
        deadline -= 1
        threading.Event().wait(0.1)
    assert deadline, "it is still there"


def test_it_gets_no_secrets(monkeypatch, ready):
    monkeypatch.setenv("HF_TOKEN", "secret")
    code = "import os, json; input(); print(json.dumps({'where': '', 'why': ' '.join(os.environ)}))"
    monkeypatch.setattr(searching, "COMMAND", [sys.executable, "-c", code])
    with pytest.raises(BadInput) as raised:
        searching.search(ready, "bm25", "tower", 1, ROSA)
    names = raised.value.why.split()
    assert "PARLEY_HOME" in names
    assert not {"HF_TOKEN", "DATABASE_URL", "REDIS_URL"} & set(names)


def test_what_cannot_be_searched_is_said(ready, corpus_of, monkeypatch):
    with pytest.raises(BadInput, match="1000 characters"):
        searching.search(ready, "bm25", "x" * 1001, 1, ROSA)
    with pytest.raises(BadInput, match="from 1 to 100"):
        searching.search(ready, "bm25", "x", 101, ROSA)
    with monkeypatch.context() as patched:
        patched.setattr(services.dense, "installed", lambda: False)
        with pytest.raises(BadInput, match="dense retrieval is not installed; run `make dense`"):
            searching.search(ready, "dense", "x", 1, ROSA)
        patched.setattr(services.dense, "installed", lambda: True)
        with pytest.raises(BadInput, match="there is no dense vectors index of towers yet"):
            searching.search(ready, "dense", "x", 1, ROSA)
    Index.objects.update(state="stopped")
    with pytest.raises(BadInput, match="the BM25 index of towers is stopped"):
        searching.search(corpus_of(ready), "bm25", "x", 1, ROSA)
    Index.objects.update(state="failed", error="no space is left")
    with pytest.raises(BadInput, match="is failed: no space is left"):
        searching.search(corpus_of(ready), "bm25", "x", 1, ROSA)
    Index.objects.update(state="ready")
    services.delete_folder(Index.objects.get().name)
    with pytest.raises(BadInput, match="the files of the index are gone: build it again"):
        searching.search(corpus_of(ready), "bm25", "x", 1, ROSA)


@pytest.fixture
def corpus_of():
    """The corpus as a new request reads it."""
    return lambda corpus: type(corpus).objects.get(pk=corpus.pk)
