"""Probes at the table: which seats are asked, how answers are parsed, and who sees them when."""

import re

import pytest

from tests.stub import Status, Stub
from tests.webapp.arena import vigil
from training.records import ALL, Move, Probe
from webapp.arena.models import Match
from webapp.arena.play import probes, services
from webapp.arena.setup import tables
from webapp.serving.models import Deployment, RemoteModel
from worker.play import play

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("registered", "unpaced")]
registered = vigil.registered


@pytest.fixture
def stub(monkeypatch):
    with Stub() as server:
        monkeypatch.setenv("MODEL_ADDRESSES", server.url)
        yield server


@pytest.fixture
def match(stub, admin, player):
    """The day of a vigil: a person, who watched (seat 0, Ada), a model (Bo) and a scripted player (Cy)."""
    remote = RemoteModel.objects.create(name="stub", address=stub.url, model="stub", added_by=admin)
    deployment = Deployment.objects.create(remote=remote, state=Deployment.State.READY)
    places = [tables.Place(user=player), tables.Place(deployment=deployment), tables.Place(scripted="random")]
    match = tables.create(host=player, start=tables.Start(vigil.vigil()), places=places, consent=True, deadline_s=60)
    services.submit(match_id=match.pk, seat=0, step=0, move=Move(action="name", args={"who": "Bo"}))
    return match


def play_out(match):
    """Everybody presses a lamp: the worker's seats by their workers, the person last."""
    for due in match.due.exclude(seat=0).order_by("seat"):
        play(due.pk)
    pressed = Move(action="answer", args={"lamp": "A"}, text="<answer><A></answer>")
    services.submit(match_id=match.pk, seat=0, step=1, move=pressed)
    return Match.objects.get(pk=match.pk)


def test_a_model_is_asked_after_its_move_and_nobody_else(match, stub):
    stub.script("<answer><B></answer>", "<think>Cy? no</think> Ada.")
    rows = match.rows.count()
    over = play_out(match)
    moved, asked = stub.requests
    assert asked.messages[: len(moved.messages) - 1] == moved.messages[:-1]
    assert "Who watched?" in asked.messages[-1]["content"]
    assert "Ada, Cy" in asked.messages[-1]["content"]
    assert "Who watched?" not in str(moved.messages)
    assert asked.body["temperature"] == 0
    kept = over.beliefs.get()
    assert (kept.step, kept.seat, kept.answer, kept.choices, kept.truth) == (1, 1, "Ada", ["Ada", "Cy"], ["Ada"])
    assert over.moves.count() == 4
    said = [str(row.message) for row in over.rows.order_by("pk")][rows:]
    assert said
    assert not any("Who watched?" in line for line in said)
    (one,) = probes.believed(over)
    assert one.probabilities == {"Ada": 1.0, "Cy": 0.0}
    assert one.shares == (1.0, 0.5)


@pytest.mark.parametrize("answer", ["Ada or Cy", "no idea", "", Status(500)], ids=repr)
def test_an_answer_that_says_nothing_is_no_belief_and_the_move_stays(match, stub, answer):
    stub.script("<answer><B></answer>", answer)
    over = play_out(match)
    assert over.moves.get(seat=1).move["origin"] == "seat"
    assert over.state == Match.State.FINISHED
    assert not over.beliefs.exists()


def test_a_seat_that_did_not_move_itself_is_not_asked(match, stub):
    stub.answer = Status(500)
    over = play_out(match)
    assert over.moves.get(seat=1).move["origin"] == "default"
    assert "Who watched?" not in str([asked.messages for asked in stub.requests])


@pytest.mark.parametrize(
    "reply, choice",
    [
        ("ada", "Ada"),
        ("I would vote for Ada Lovelace!", None),  # both names occur in it
        ("**Ada Lovelace**", "Ada Lovelace"),
        ("Certainly Bo, not Bob", "Bo"),
        ("Bob", None),
        ("<think>Bo</think>Ada", "Ada"),
    ],
)
def test_a_choice_is_read_only_where_it_is_plain(reply, choice):
    assert probes.read(reply, Probe(question="?", choices=("Ada", "Ada Lovelace", "Bo"))) == choice


def test_beliefs_are_shown_after_the_game_to_those_who_may_know_the_models(match, stub, client_of, player, admin):
    stub.script("<answer><B></answer>", "Ada")
    address = f"/play/{match.pk}/replay/"
    play(match.due.get(seat=1).pk)
    assert match.beliefs.exists()
    for user in (player, admin):
        assert "Who watched?" not in client_of(user).get(address).content.decode()
    play_out(match)

    def shown(user, **query):
        return client_of(user).get(address, query).content.decode()

    page = shown(admin, viewer=ALL)
    assert '<tr><th scope="row">Ada <span class="right-answer">right</span></th><td class="number">1.00</td>' in page
    assert re.findall(r'data-value="([^"]*)"', page) == ["1", "1.0000", "0.5000"]
    assert "Who watched?" not in shown(admin, viewer=ALL, step=0)
    assert "Who watched?" not in shown(admin, viewer=1)
    assert "Who watched?" not in shown(player, viewer=ALL), "it would tell who is a model before the rating"


def test_roles_are_revealed_at_the_end_to_those_who_may_see_all(match, stub, client_of, player, ben):
    stub.script("<answer><B></answer>", "Ada")
    address = f"/play/{match.pk}/replay/"
    roles = r'<span class="role">(\w+)</span>'
    assert re.findall(roles, client_of(player).get(address).content.decode()) == []
    play_out(match)
    Match.objects.update(visibility="open")

    def told(user, **query):
        return re.findall(roles, client_of(user).get(address, query).content.decode())

    dealt = ["watcher", "sleeper", "sleeper"]
    assert told(player, viewer=ALL, step=0) == dealt
    assert told(player, viewer=2) == dealt
    assert told(player, viewer=2, step=1) == []
    assert told(ben) == [], "who sees only what spectators saw"
