"""Corpora that a run on the site searches: named in its configuration, checked, resolved, and kept from deletion."""

import shutil

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from tests.webapp.corpora import making
from training.config import parse
from training.errors import BadInput
from training.rundir import RunDir
from webapp.corpora import services as corpora
from webapp.corpora.models import Corpus, Index
from webapp.runs import services
from webapp.runs.models import Run
from worker.kinds import filled_in

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch, settings):
    monkeypatch.setenv("PARLEY_HOME", str(tmp_path / "home"))
    settings.HOME = tmp_path / "home"
    settings.MEDIA_ROOT = tmp_path / "home" / "files"


@pytest.fixture
def towers(researcher):
    """A private corpus of rosa's with a BM25 index that is ready."""
    return making.built(researcher, private=True)


def config(**indexes):
    small = {"learn": {"steps": 3, "critic_warmup": 1}, "rollout": {"scenarios": 1, "games": 1}}
    return parse({"model": {"base": "tiny"}, "game": {"name": "qa_society"}, "search": {"indexes": indexes}, **small})


def created(owner, **indexes):
    return services.create_run(owner=owner, config=config(**indexes))


def index_name(corpus, kind="bm25"):
    return corpus.file.indexes.get(kind=kind).name


def test_a_corpus_is_named_and_its_index_searched(researcher, towers, tmp_path):
    by_command = "bm25-" + "0" * 16
    run = created(researcher, wiki="towers", press="towers bm25", archive=index_name(towers), atlas=by_command)
    assert run.config["search"]["indexes"]["wiki"] == "towers"
    assert list(run.corpora.all()) == [towers]
    filled = filled_in(run, RunDir(tmp_path))["search"]["indexes"]
    name = index_name(towers)
    assert filled == {"wiki": name, "press": name, "archive": name, "atlas": by_command}


def test_dense_names_the_index_of_the_vectors(researcher, towers, tmp_path):
    words = tmp_path / "home" / "indexes" / index_name(towers)
    folder = shutil.copytree(words, words.with_name("dense-" + "1" * 16))  # a complete folder, whatever is in it
    Index.objects.create(file=towers.file, kind="dense", state="ready", name=folder.name)
    run = created(researcher, wiki="towers dense")
    assert filled_in(run, RunDir(tmp_path))["search"]["indexes"] == {"wiki": folder.name}


@pytest.mark.parametrize(
    "text",
    [
        "nothing",
        "nothing dense",
        "",
        "Towers",
        "towers\x00",
        "bm25",
        "bm25-0123456789abcdef\n",
        "..",
        "~",
        "/etc",
        "../towers",
    ],
)
def test_what_is_no_corpus_is_refused(researcher, towers, text):
    with pytest.raises(BadInput, match="no corpus is named") as caught:
        created(researcher, wiki=text)
    assert caught.value.where == "search.indexes.wiki"
    assert not Run.objects.exists()


def test_somebody_elses_private_corpus_is_not_there_by_any_name(other_researcher, towers, admin):
    for text in ("towers", index_name(towers)):
        with pytest.raises(BadInput, match="no corpus is named"):
            created(other_researcher, wiki=text)
    assert created(admin, wiki="towers").corpora.get() == towers
    corpora.share(corpus=towers, private=False)
    assert created(other_researcher, wiki=index_name(towers)).corpora.get() == towers


def test_the_index_of_a_private_corpus_is_searched_by_whoever_has_the_same_content(other_researcher, towers):
    same = making.corpus(other_researcher, "same")
    assert created(other_researcher, wiki=index_name(towers)).corpora.get() == same


def test_an_index_that_is_not_ready_is_refused_with_its_state(researcher, towers, monkeypatch):
    monkeypatch.setattr(corpora.dense, "installed", lambda: True)
    with pytest.raises(BadInput, match="there is no dense vectors index of towers yet") as caught:
        created(researcher, wiki="towers dense")
    assert caught.value.where == "search.indexes.wiki"
    with pytest.raises(BadInput, match="no index of kind 'other'"):
        created(researcher, wiki="towers other")
    Index.objects.update(state="building")
    with pytest.raises(BadInput, match="the BM25 index of towers is building"):
        created(researcher, wiki="towers")


def test_a_run_goes_on_with_a_corpus_that_became_private(researcher, other_researcher, towers, tmp_path):
    corpora.share(corpus=towers, private=False)
    run = created(other_researcher, wiki="towers")
    corpora.share(corpus=towers, private=True)
    assert filled_in(run, RunDir(tmp_path))["search"]["indexes"] == {"wiki": index_name(towers)}


def test_an_index_whose_files_are_gone_fails_the_start_with_its_field(researcher, towers, tmp_path):
    run = created(researcher, wiki="towers")
    corpora.delete_folder(index_name(towers))
    with pytest.raises(BadInput, match="the files of the index are gone") as caught:
        filled_in(run, RunDir(tmp_path))
    assert caught.value.where == "search.indexes.wiki"


def test_a_corpus_of_a_run_is_kept_until_the_run_is_deleted(researcher, towers, client_of):
    run = created(researcher, wiki="towers")
    client = client_of(researcher)
    page = client.post(reverse("corpora:delete", args=["towers"]), follow=True).content.decode()
    assert f"towers was not deleted: it is still used by run {run.name}: delete that first." in page
    assert reverse("runs:detail", args=[run.pk]) in page
    services.stop_run(run=run)
    services.delete_run(run=run)
    corpora.delete_corpus(corpus=towers)
    assert not Corpus.objects.exists()


def test_the_lineage_links_a_corpus_that_the_reader_may_see(researcher, other_researcher, towers, client_of):
    run = created(researcher, wiki="towers")
    lineage, corpus = reverse("runs:lineage", args=[run.pk]), reverse("corpora:corpus", args=["towers"])
    assert corpus in client_of(researcher).get(lineage).content.decode()
    page = client_of(other_researcher).get(lineage).content.decode()
    assert "Searches: towers" in page
    assert corpus not in page


def test_many_indexes_cost_as_many_queries_as_few(researcher, towers):
    counts = []
    for number in (3, 300):
        indexes = {f"corpus{at}": ("towers", f"bm25-{at:016x}", index_name(towers))[at % 3] for at in range(number)}
        with CaptureQueriesContext(connection) as queries:
            created(researcher, **indexes)
        counts.append(len(queries))
    assert counts[0] == counts[1]
