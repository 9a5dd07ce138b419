"""Searches at a table: a person and a script get passages as the site is installed, and a failed one ends no game."""

import shutil
from datetime import timedelta

import pytest
from django.core.files.base import ContentFile

from tests.stub import Stub
from training import samples
from training.dataset import DatasetLine
from training.games.qa_society import alone
from training.games.qa_society.scoring import best_f1
from training.records import ALL, SPECTATOR
from training.retrieval import index as indexes
from training.retrieval.bm25 import Bm25Settings
from webapp.arena import clock
from webapp.arena.models import DueSeat, Match
from webapp.arena.play import hosting, human_moves, services
from webapp.arena.setup import tables
from webapp.corpora import services as corpora
from webapp.corpora.models import Corpus, Index
from webapp.scenarios.models import Dataset
from webapp.scenarios.services import create_dataset
from webapp.serving.models import Deployment, RemoteModel
from worker.play import play as work

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("unpaced")]

RIVER = next(start for start in samples.load("qa_society") if start.id == "river-of-prague")
ASKER, WIKI, PUBMED, TOOL = range(4)


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """An installation without any index."""
    monkeypatch.setenv("PARLEY_HOME", str(tmp_path / "home"))


def table(user, start=RIVER, seat=WIKI, author=None):
    """A running match in which `user` has one seat and scripts have the others; `author`'s scenario, else a sample."""
    source = None
    if author is not None:
        name = f"questions-{Dataset.objects.count()}"
        source = create_dataset(name=name, owner=author, lines=[DatasetLine(scenario=start)]).scenarios.get()
    places = [tables.Place(scripted="scripted") for _ in start.seats]
    places[seat] = tables.Place(user=user)
    return tables.create(host=user, start=tables.Start(start, source), places=places, consent=True)


def naming(corpus):
    """The scenario, with a search in a corpus of this name."""
    return RIVER.model_copy(update={"settings": {**RIVER.settings, "tools": [corpus, "pubmed"]}})


def let_work(match):
    """Play the seats of scripts and searches, as workers do, until a person is to move or the game is over."""
    while due := match.due.exclude(hint_at=None).first():
        work(due.pk)
    match.refresh_from_db()
    return match


def act(match, user, seat=WIKI, **data):
    turn = match.moves.filter(seat=seat).count()
    human_moves.play(match_id=match.pk, user=user, data={"turn": str(turn), **data})


def read_by(match, viewer):
    return [row.message["text"] for row in match.rows.filter(viewer=viewer).order_by("number")]


def searched(match, user, seat=WIKI):
    """The evidence that a person read after their search, which a worker made."""
    let_work(match)
    act(match, user, seat, action="search")
    let_work(match)
    return read_by(match, seat)[-1]


def test_a_person_gets_passages_without_any_set_up(player):
    match = table(player)
    evidence = searched(match, player).splitlines()
    assert 1 <= len(evidence) <= 3
    assert all(line.startswith("RETRIEVAL: ") for line in evidence)
    assert any("runs through Prague" in line and "Vltava" in line for line in evidence)
    move = match.moves.get(seat=TOOL).move
    assert (move["action"], move["origin"]) == ("found", "tool")
    for viewer in (ASKER, PUBMED, SPECTATOR):
        assert not any("RETRIEVAL" in text for text in read_by(match, viewer)[1:])
    assert read_by(match, ALL)[-1] == "\n".join(evidence)
    act(match, player, action="answer", **{"answer.answer": "the Vltava"})
    assert let_work(match).state == Match.State.FINISHED
    assert match.metrics["f1"] == 1.0
    assert match.metrics["found"] == 1.0
    assert list(match.returns.values()) == [pytest.approx(1 - 0.01 * match.metrics["searches"])] * 3


def test_a_person_reads_no_examples_of_a_models_replies(client_of, player):
    match = let_work(table(player))
    assert "Examples:" in read_by(match, WIKI)[0]
    page = client_of(player).get(f"/play/{match.pk}/").content.decode()
    assert "You can search the corpus wiki" in page
    assert "Examples:" not in page


@pytest.mark.parametrize("start", samples.load("qa_society"), ids=lambda start: start.id)
def test_scripts_find_what_the_samples_ask(player, start):
    """As the asker, a person reads what the script in each helper's seat found in the corpora that come along."""
    match = let_work(table(player, start, ASKER))
    act(match, player, ASKER, action="ask")
    let_work(match)
    assert match.state == Match.State.RUNNING
    actions = [move.move["action"] for move in match.moves.filter(seat=start.tool_seat)]
    assert actions
    assert set(actions) == {"found"}
    replies = [line.partition(": ")[2] for line in read_by(match, ASKER)[-1].splitlines()]
    assert max(best_f1(reply, start.settings["answers"]) for reply in replies) == 1.0


def test_pages_show_the_search_and_the_bounds_of_the_scenario(client_of, player):
    match, client = let_work(table(player)), client_of(player)
    act(match, player, action="search")
    assert "Searching" in client.get(f"/play/{match.pk}/").content.decode()
    let_work(match)
    page = client.get(f"/play/{match.pk}/").content.decode()
    assert "Searching" not in page
    assert "Vltava" in page.split("What your search found")[-1]
    act(match, player, action="answer", **{"answer.answer": "the Vltava"})
    let_work(match)
    # one ask comes before at most eleven searches, each of which takes 0.01
    assert "between -0.11 and 1<" in client.get(f"/play/{match.pk}/result/").content.decode()


def test_a_model_reads_what_its_search_found(player, admin, monkeypatch):
    with Stub() as stub:
        monkeypatch.setenv("MODEL_ADDRESSES", stub.url)
        remote = RemoteModel.objects.create(name="stub", address=stub.url, model="stub", added_by=admin)
        model = Deployment.objects.create(remote=remote, state=Deployment.State.READY)
        places = [tables.Place(user=player), tables.Place(deployment=model), tables.Place(scripted="scripted")]
        match = tables.create(host=player, start=tables.Start(RIVER), places=places, consent=True)
        stub.script("<search/>", "<answer>the Moldau</answer>")
        act(match, player, ASKER, action="ask")
        let_work(match)
        first, second = (request.messages[-1]["content"] for request in stub.requests)
        assert "RETRIEVAL: Vltava: The Vltava" not in first
        assert "RETRIEVAL: Vltava: The Vltava" in second
    assert read_by(match, ASKER)[-1].startswith("FRIEND_ANSWER: the Moldau")


def test_an_agent_alone_searches_too(player):
    match = table(player, alone(RIVER, "wiki"), seat=0)
    assert "Vltava" in searched(match, player, seat=0)


def test_a_corpus_that_is_not_there_is_named(player):
    match = table(player, naming("lexicon"))
    assert searched(match, player) == "RETRIEVAL: the search failed: there is no corpus called lexicon here."
    act(match, player, action="hedge", **{"hedge.answer": "Elbe"})
    assert let_work(match).state == Match.State.FINISHED
    assert match.metrics["searches"] >= 1
    assert match.metrics["found"] < 1


def test_an_index_that_cannot_be_read_names_no_folder(player, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PARLEY_HOME", str(tmp_path / "file"))  # nothing can be written below a file
    evidence = searched(table(player), player)
    assert evidence == "RETRIEVAL: the search failed: the index of the corpus wiki cannot be searched."


def test_a_search_that_no_worker_makes_fails_in_time(player):
    match = let_work(table(player))
    act(match, player, action="search")
    due = match.due.get()
    assert due.seat == TOOL
    assert timedelta(0) < due.deadline - due.created_at <= timedelta(seconds=services.SEARCH_SECONDS)
    assert clock.time_out() == 0
    DueSeat.objects.filter(pk=due.pk).update(deadline=services.database_now())
    assert clock.time_out() == 1
    assert read_by(match, WIKI)[-1] == "RETRIEVAL: the search failed: there was no answer in time."
    match.refresh_from_db()
    assert match.state == Match.State.RUNNING
    assert [due.seat for due in match.due.all()] == [WIKI]
    work(due.pk)  # too late
    assert match.moves.filter(seat=TOOL).count() == 1


def test_a_lost_hint_is_sent_again_and_a_pause_waits(player, ben):
    match = let_work(table(player))
    act(match, player, action="search")
    due = match.due.get()
    hosting.pause(match=match)
    work(due.pk)
    assert match.due.filter(pk=due.pk).exists()
    hosting.resume(match=match)
    DueSeat.objects.filter(pk=due.pk).update(hint_at=services.database_now())
    assert clock.tell_workers() == 1
    work(due.pk)
    assert "Vltava" in read_by(match, WIKI)[-1]


def test_only_one_worker_answers(player, monkeypatch):
    match = let_work(table(player))
    act(match, player, action="search")
    due = match.due.get()
    build = indexes.build

    def slowly(path, settings):
        """Meanwhile another worker claims the search, as this one's lease is over, and answers."""
        monkeypatch.setattr(indexes, "build", build)
        DueSeat.objects.filter(pk=due.pk).update(claimed_until=services.database_now() - timedelta(seconds=1))
        work(due.pk)
        return build(path, settings)

    monkeypatch.setattr(indexes, "build", slowly)
    work(due.pk)
    assert match.moves.filter(seat=TOOL).count() == 1
    assert sum("Vltava" in text for text in read_by(match, WIKI)) == 1


def corpus_of(owner, name, text, *, ready=True, private=False):
    """A corpus on the site with one passage, whose index is ready or not."""
    file = ContentFile(f'{{"id": "a", "title": "", "text": "{text}"}}\n'.encode(), "mine.jsonl")
    corpus = corpora.create(owner=owner, name=name, content=corpora.content_of(file, "mine.jsonl"), private=private)
    with corpora.local_copy(corpus.file) as path:
        folder = indexes.build(path, Bm25Settings())
    if ready:
        Index.objects.filter(file=corpus.file).update(state=Index.State.READY, name=folder.name)
    return Corpus.objects.get(pk=corpus.pk)


def test_a_private_corpus_is_searched_for_its_owners_scenarios_at_its_owners_tables_alone(
    player, researcher, other_researcher, admin
):
    corpus_of(researcher, "wiki", "The river of Prague is called otherwise", private=True)
    corpus_of(researcher, "rivers", "The river of Prague is called otherwise", private=True)
    assert "called otherwise" in searched(table(researcher, author=researcher), researcher)
    assert "called otherwise" in searched(table(researcher, naming("rivers"), author=researcher), researcher)
    for host, author in (
        (player, None), (researcher, None), (researcher, other_researcher), (researcher, admin),
        (other_researcher, researcher), (admin, researcher), (admin, admin), (admin, None),
    ):  # fmt: skip
        evidence = searched(table(host, author=author), host)
        assert "Vltava" in evidence
        assert "called otherwise" not in evidence
        evidence = searched(table(host, naming("rivers"), author=author), host)
        assert evidence == "RETRIEVAL: the search failed: there is no corpus called rivers here."


def test_a_corpus_of_the_samples_is_replaced_by_the_host_or_the_author_alone(researcher, other_researcher, admin):
    corpus_of(researcher, "wiki", "The river of Prague is called otherwise")
    corpus_of(researcher, "rivers", "The river of Prague is called otherwise")
    for host in (other_researcher, admin):
        assert "Vltava" in searched(table(host), host)
        assert "Vltava" in searched(table(host, author=host), host)
        assert "called otherwise" in searched(table(host, naming("rivers"), author=host), host), "no sample's name"
    assert "called otherwise" in searched(table(researcher), researcher)
    assert "called otherwise" in searched(table(other_researcher, author=researcher), other_researcher)


def test_a_rematch_by_another_host_searches_no_private_corpus_of_the_first(researcher, other_researcher):
    corpus_of(researcher, "rivers", "The river of Prague is called otherwise", private=True)
    match = table(researcher, naming("rivers"), author=researcher)
    assert "called otherwise" in searched(match, researcher)
    match.host = other_researcher
    match.save(update_fields=["host"])
    assert "no corpus called rivers" in searched(match, researcher)


def test_an_index_whose_files_are_gone_fails(researcher):
    corpus = corpus_of(researcher, "wiki", "The river of Prague")
    shutil.rmtree(corpora.local_folder(corpus.index("bm25")))
    evidence = searched(table(researcher), researcher)
    assert evidence == "RETRIEVAL: the search failed: the index of the corpus wiki cannot be searched."


def test_a_corpus_whose_index_is_not_ready_is_named(researcher):
    corpus_of(researcher, "wiki", "The river of Prague", ready=False)
    evidence = searched(table(researcher), researcher)
    assert evidence == "RETRIEVAL: the search failed: the index of the corpus wiki is not ready."
