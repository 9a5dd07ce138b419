"""Indexes as folders: built once, complete or absent, opened by name, and refused where they do not fit."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from training.errors import BadInput
from training.retrieval import index
from training.retrieval.bm25 import Bm25Settings
from training.retrieval.index import build, find, names, open_index, read_info
from training.store import verify_directory

ROOT = Path(__file__).resolve().parents[2]
TEXTS = ("cats sleep", "dogs bark", "birds sing")
BM25 = Bm25Settings()


def phases(path, settings=BM25):
    """The folder of an index, and the reports of progress of `build`."""
    calls = []
    return build(path, settings, lambda *call: calls.append(call)), calls


def test_an_index_is_built_once_for_the_same_content_and_settings(corpus):
    folder, calls = phases(corpus(*TEXTS))
    assert [phase for *_, phase in calls] == ["checksum", "read", "words", "scores"]
    again, calls = phases(corpus(*TEXTS, name="copy.jsonl"))
    assert again == folder
    assert [phase for *_, phase in calls] == ["checksum"]
    others = {build(corpus(*TEXTS, "more"), BM25), build(corpus(*TEXTS), Bm25Settings(k1=1.2))}
    assert len({folder, *others}) == 3
    assert names() == sorted(each.name for each in (folder, *others))
    info = read_info(folder)
    assert (info.corpus, info.passages, info.settings) == ("corpus.jsonl", 3, BM25)
    verify_directory(folder)


def test_two_builds_have_the_same_bytes(corpus, tmp_path, monkeypatch):
    first = verify_directory(build(corpus(*TEXTS), BM25))
    monkeypatch.setenv("PARLEY_HOME", str(tmp_path / "other"))
    assert verify_directory(build(corpus(*TEXTS), BM25)) == first


def test_progress_rises_to_its_total_in_every_phase(corpus, monkeypatch):
    for module in (index, index.bm25):
        monkeypatch.setattr(module, "STEP", 10)
    _, calls = phases(corpus(*(f"word{number}" for number in range(25))))
    for phase, total in (("read", 25), ("words", 25), ("scores", 75)):
        done = [call[:2] for call in calls if call[2] == phase]
        steps = [*range(10, total, 10), total]
        assert done == [(step, total) for step in steps]


@pytest.mark.parametrize("phase", ["checksum", "read", "words", "scores"])
def test_an_exception_of_the_progress_stops_the_work_and_nothing_remains(corpus, home, phase):
    class StoppedError(Exception):
        pass

    def stop(done, total, current):
        if current == phase:
            raise StoppedError

    with pytest.raises(StoppedError):
        build(corpus(*TEXTS), BM25, stop)
    assert [*home.rglob("*")] in ([], [home / "indexes"])
    assert open_index(build(corpus(*TEXTS), BM25)).search("cats", 1)[0].id == "0"


KILLED = """
import os, signal, sys
from pathlib import Path
from training.retrieval.bm25 import Bm25Settings
from training.retrieval.index import build

def kill(done, total, phase):
    if phase == sys.argv[2]:
        os.kill(os.getpid(), signal.SIGKILL)

build(Path(sys.argv[1]), Bm25Settings(), kill)
"""


@pytest.mark.process
@pytest.mark.parametrize("phase", ["read", "words", "scores"])
def test_a_killed_build_leaves_no_index_and_the_next_one_clears_its_files(corpus, home, phase):
    path = corpus(*TEXTS)
    done = subprocess.run([sys.executable, "-c", KILLED, str(path), phase], cwd=ROOT, env=os.environ, check=False)
    assert done.returncode == -signal.SIGKILL
    assert len(list((home / "indexes").iterdir())) == 1  # what it had written
    assert names() == []
    folder = build(path, BM25)
    assert list((home / "indexes").iterdir()) == [folder]
    assert open_index(folder).search("dogs", 1)[0].id == "1"


def test_an_invalid_corpus_leaves_nothing(corpus, home, tmp_path):
    path = corpus(*TEXTS)
    path.write_text(path.read_text() + '{"id": "3"}\n')
    with pytest.raises(BadInput, match=r"corpus\.jsonl line 4, text"):
        build(path, BM25)
    (empty := tmp_path / "empty.jsonl").write_text("\n")
    with pytest.raises(BadInput, match=r"empty\.jsonl: the file has no passage"):
        build(empty, BM25)
    assert list((home / "indexes").iterdir()) == []


def test_a_corpus_that_changes_while_it_is_read_is_refused(corpus, home):
    path = corpus(*TEXTS)

    def change(done, total, phase):
        if phase == "read":
            path.write_text(path.read_text() + '{"id": "3", "text": "late"}\n')

    with pytest.raises(BadInput, match="changed while it was read"):
        build(path, BM25, change)
    assert list((home / "indexes").iterdir()) == []


def test_a_home_that_cannot_be_written_is_said(corpus, home):
    home.mkdir()
    (home / "indexes").write_text("a file")
    with pytest.raises(BadInput, match="the index cannot be written"):
        build(corpus(*TEXTS), BM25)


def test_threads_that_build_the_same_index_share_it(corpus, home):
    path, folders = corpus(*TEXTS), []
    threads = [threading.Thread(target=lambda: folders.append(build(path, BM25))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert folders == [folders[0]] * 4
    assert list((home / "indexes").iterdir()) == [folders[0]]


def test_an_index_is_opened_by_name_or_path_once_per_process(corpus, tmp_path):
    folder = build(corpus(*TEXTS), BM25)
    assert find(folder.name) == find(folder) == folder
    assert open_index(folder.name) is open_index(folder) is open_index(str(folder))
    moved = folder.rename(tmp_path / "moved")
    assert open_index(moved).search("sing", 5)[0].text == "birds sing"  # it needs neither its corpus nor its place


def test_an_unknown_or_incomplete_index_is_refused(corpus):
    folder = build(corpus(*TEXTS), BM25)
    for name in ("nothing", "", "~nobody/index", "x" * 5000, "a\0b"):
        with pytest.raises(BadInput, match="no such index; `python -m training index CORPUS`"):
            open_index(name)
    (folder / "vocab.index.json").unlink()
    with pytest.raises(BadInput, match="incomplete: delete the folder"):
        open_index(folder)
    assert names() == []
    assert build(corpus(*TEXTS), BM25) == folder  # an incomplete one is built again
    assert names() == [folder.name]


def test_an_index_of_another_corpus_or_of_other_settings_is_refused(corpus):
    path = corpus(*TEXTS)
    folder = build(path, BM25)
    other = corpus("something else", name="other.jsonl")
    open_index(folder, corpus_file=path, settings=BM25)
    with pytest.raises(BadInput, match=r"index of another corpus \(corpus.jsonl, SHA-256 "):
        open_index(folder, corpus_file=other)
    with pytest.raises(BadInput, match=r'other settings .*"k1":1\.5'):
        open_index(folder, settings=Bm25Settings(k1=1.2))
    folder.rename(index.root() / index.name_of(index.corpus.checksum(other).sha256, BM25))
    with pytest.raises(BadInput, match="index of another corpus"):
        build(other, BM25)


def test_a_broken_description_is_refused(corpus):
    folder = build(corpus(*TEXTS), BM25)
    (folder / index.INFO).write_text("{")
    with pytest.raises(BadInput, match=r"index\.json: cannot be read"):
        read_info(folder)


@pytest.mark.process
def test_neither_importing_nor_opening_loads_what_searching_needs(corpus):
    code = (
        "import sys; from training.retrieval.index import open_index; open_index(sys.argv[1]); "
        "sys.exit(bool({'torch', 'transformers', 'sentence_transformers', 'bm25s'} & set(sys.modules)))"
    )
    name = build(corpus(*TEXTS), BM25).name
    command = [sys.executable, "-c", code, name]
    assert subprocess.run(command, cwd=ROOT, env=os.environ, check=False).returncode == 0
