"""Corpora that a run on the site searches: named in its configuration, checked, resolved, and kept from deletion."""

import shutil

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from tests.webapp.corpora import making
from training.config import parse
from training.dataset import DatasetLine
from training.errors import BadInput
from training.records import Scenario
from training.rundir import RunDir
from webapp.corpora import services as corpora
from webapp.corpora.models import Corpus, Index
from webapp.runs import services
from webapp.runs.models import Run
from webapp.scenarios.services import create_dataset
from worker.kinds import filled_in

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("home")]


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


def test_a_corpus_that_the_questions_search_is_named_before_the_run_begins(researcher, towers):
    settings = {"question": "How high?", "answers": ["300 m"], "tools": ["steel", "wiki"]}
    line = DatasetLine(scenario=Scenario(id="high", game="qa_society", settings=settings, seats=("Ann", "Bob", "Cleo")))
    version = create_dataset(name="heights", owner=researcher, lines=[line])
    with pytest.raises(BadInput, match="no index is named for the corpus 'steel'") as caught:
        services.create_run(owner=researcher, config=config(), dataset_version=version)
    assert caught.value.where == "search.indexes"
    assert services.create_run(owner=researcher, config=config(steel="towers"), dataset_version=version)
    assert created(researcher), "the samples' questions are searched in the samples' corpora"


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


def test_a_corpus_is_kept_while_a_run_that_searches_it_is_not_over(researcher, other_researcher, towers, client_of):
    corpora.share(corpus=towers, private=False)
    run = created(other_researcher, wiki="towers")
    client = client_of(researcher)
    page = client.post(reverse("corpora:delete", args=["towers"]), follow=True).content.decode()
    assert f"towers was not deleted: the run {run.name} searches it and is queued: wait until it is over" in page
    assert "make it private" in page
    assert reverse("runs:detail", args=[run.pk]) in page
    for state in ("starting", "running", "stopping"):
        Run.objects.update(state=state)
        with pytest.raises(BadInput, match=f"is {state}"):
            corpora.delete_corpus(corpus=towers)
    for state in ("stopped", "failed", "succeeded"):
        Run.objects.update(state=state)
        corpora.delete_corpus(corpus=Corpus.objects.get())
        assert not Corpus.objects.exists()
        making.built(researcher)
        run.searched.update(corpus=Corpus.objects.get())


def test_a_run_keeps_name_and_hash_of_a_corpus_that_was_deleted(researcher, towers, client_of):
    address, warning = reverse("corpora:corpus", args=["towers"]), "runs that searched it cannot be resumed"
    assert warning not in client_of(researcher).get(address).content.decode()
    run, digest = created(researcher, wiki="towers"), towers.file.sha256
    services.stop_run(run=run)
    assert warning in client_of(researcher).get(address).content.decode()
    corpora.delete_corpus(corpus=towers)
    record = run.searched.get()
    assert (record.name, record.sha256, record.corpus) == ("towers", digest, None)
    page = client_of(researcher).get(reverse("runs:lineage", args=[run.pk])).content.decode()
    assert "Searches for wiki: towers" in page
    assert "deleted" in page
    assert digest in page


def test_a_run_is_resumed_with_the_same_content_only(researcher, other_researcher, towers, tmp_path):
    run = created(researcher, wiki="towers")
    services.stop_run(run=run)
    corpora.delete_corpus(corpus=towers)
    other = making.built(other_researcher, data=making.lines(making.PASSAGES[2]))
    with pytest.raises(BadInput, match="it searched the corpus towers, which has been deleted"):
        services.resume_run(run=run)
    run.refresh_from_db()
    assert run.state == Run.State.STOPPED
    with pytest.raises(BadInput, match="the corpus towers has been deleted") as caught:
        filled_in(run, RunDir(tmp_path))
    assert caught.value.where == "search.indexes.wiki"
    corpora.delete_corpus(corpus=other)
    same = making.built(researcher)
    services.resume_run(run=run)
    assert filled_in(run, RunDir(tmp_path))["search"]["indexes"] == {"wiki": index_name(same)}
    with pytest.raises(BadInput, match="searches it"):
        corpora.delete_corpus(corpus=same)


def test_the_lineage_links_a_corpus_that_the_reader_may_see(researcher, other_researcher, towers, client_of):
    run = created(researcher, wiki="towers")
    lineage, corpus = reverse("runs:lineage", args=[run.pk]), reverse("corpora:corpus", args=["towers"])
    assert corpus in client_of(researcher).get(lineage).content.decode()
    page = client_of(other_researcher).get(lineage).content.decode()
    assert "Searches for wiki: towers" in page
    assert corpus not in page


def migrate(name):
    executor = MigrationExecutor(connection)
    executor.migrate([("runs", name)] if name else executor.loader.graph.leaf_nodes())


def test_a_run_of_an_older_database_gets_name_and_hash_and_a_step_back_drops_what_is_gone(researcher, towers):
    cats = making.built(researcher, "cats", making.lines(making.PASSAGES[2]))
    run, digest = created(researcher, wiki="towers", press="cats"), towers.file.sha256
    services.stop_run(run=run)
    corpora.delete_corpus(corpus=cats)
    try:
        migrate("0003_run_corpora")
    finally:
        migrate(None)
    assert list(run.searched.values_list("corpus", "name", "sha256")) == [(towers.pk, "towers", digest)]


def test_many_indexes_cost_as_many_queries_as_few(researcher, towers):
    counts = []
    for number in (3, 300):
        indexes = {f"corpus{at}": ("towers", f"bm25-{at:016x}", index_name(towers))[at % 3] for at in range(number)}
        with CaptureQueriesContext(connection) as queries:
            created(researcher, **indexes)
        counts.append(len(queries))
    assert counts[0] == counts[1]
