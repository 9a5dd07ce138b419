"""Probes at the table: which seats are asked, how answers are parsed, and who sees them when."""

import json
import math
import re

import pytest
from django.db import connection

from tests.stub import Raw, Status
from tests.webapp.arena import vigil
from tests.webapp.arena.deduction import match_of_models
from tests.webapp.runs.making import make_checkpoint, make_run, ship
from training.errors import OutsideError
from training.records import ALL, Move, Probe
from webapp.arena.models import Match
from webapp.arena.play import probes, services
from webapp.arena.setup import tables
from webapp.core import queue
from webapp.runs.episodes import replaying
from webapp.serving import services as serving
from webapp.serving.models import Deployment, RemoteModel
from worker.play import play
from worker.probe import MOST_FAILURES, probe

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("registered", "unpaced")]
registered = vigil.registered


@pytest.fixture
def match(deployment, player):
    """The day of a vigil: a person, who watched (seat 0, Ada), a model (Bo) and a scripted player (Cy)."""
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


def test_a_model_is_asked_once_the_game_is_over_and_nobody_else(match, stub):
    stub.script("<answer><B></answer>", "<think>Cy? no</think> Ada.")
    rows = match.rows.count()
    over = play_out(match)
    assert len(stub.requests) == 1, "no question while they play"
    probe(over.pk)
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


def test_a_refused_reply_is_part_of_what_a_model_had_read_only_afterwards(match, stub):
    stub.script("<nonsense>", "<answer><B></answer>", "Ada")
    over = play_out(match)
    (question,) = probes.unanswered(over)
    assert "nonsense" not in str(question.context), "it was refused after this point of the game"
    assert over.moves.get(seat=1).attempts[0]["reply"] == "<nonsense>"


@pytest.mark.parametrize("answer", ["Ada or Cy", "no idea", "", Status(500)], ids=repr)
def test_an_answer_that_says_nothing_is_no_belief(match, stub, answer):
    stub.script("<answer><B></answer>", answer)
    over = play_out(match)
    probe(over.pk)
    assert len(stub.requests) == 2
    assert not over.beliefs.exists()
    stub.script("Cy")
    probe(over.pk)  # asked again
    assert over.beliefs.get().answer == "Cy"
    probe(over.pk)
    assert len(stub.requests) == 3, "what is known is not asked again"


def test_nobody_is_asked_during_a_game_or_after_one_that_was_closed(match, stub):
    stub.script("<answer><B></answer>")
    play(match.due.get(seat=1).pk)
    probe(match.pk)
    services.abort(match_id=match.pk, why="closed")
    probe(match.pk)
    assert len(stub.requests) == 1
    assert list(probes.unanswered(Match.objects.get(pk=match.pk))) == []


def test_the_end_of_a_game_with_a_model_sends_the_task(match, stub, player, monkeypatch):
    sent = []
    monkeypatch.setattr(queue, "publish", lambda task, *args, **_: sent.append((task.name, args)))
    stub.script("<answer><B></answer>")
    play_out(match)
    assert sent.count(("arena.probe_match", (match.pk,))) == 1
    sent.clear()
    places = [tables.Place(user=player), tables.Place(scripted="random"), tables.Place(scripted="random")]
    other = tables.create(host=player, start=tables.Start(vigil.vigil()), places=places, consent=True, deadline_s=60)
    services.submit(match_id=other.pk, seat=0, step=0, move=Move(action="name", args={"who": "Bo"}))
    assert play_out(other).state == Match.State.FINISHED
    assert "arena.probe_match" not in dict(sent)


def test_every_model_is_asked_before_and_after_every_message(stub, deployment, player):
    """Ada, Ben and Dan are models, one of whom is the imposter; Cleo and Eva are scripted."""
    match = match_of_models(player, deployment, (0, 1, 3))
    record = ship(lambda after, seat: 0.5)["episode"]
    course = replaying.course(record)
    models = {0, 1, 3} - {record["roles"].index("imposter")}
    planted = {(point.step, point.seat) for point in course.believed if point.seat in models}
    stub.answer = record["scenario"]["seats"][record["roles"].index("imposter")]
    probe(match.pk)
    assert {(row.step, row.seat) for row in match.beliefs.all()} == planted
    assert {row.right for row in probes.believed(match)} == {1.0}


@pytest.fixture
def of_two(stub, admin, player, monkeypatch):
    """A match of Among Us whose seats 0 and 3 are of one model and seat 1 of another, asked one after the other."""
    models = []
    for name in ("first", "second"):
        remote = RemoteModel.objects.create(name=name, address=stub.url, model=name, added_by=admin)
        models.append(Deployment.objects.create(remote=remote, state=Deployment.State.READY))
    match = match_of_models(player, models[0], (0, 1, 3))
    match.seats.filter(seat=1).update(deployment=models[1])
    monkeypatch.setattr("worker.probe.AT_ONCE", 1)
    return match


def test_what_was_answered_stays_when_a_worker_ends_in_between(of_two, stub, monkeypatch, client_of, admin):
    questions = list(probes.unanswered(of_two))
    [*_, name] = {*questions[0].probe.choices} & {*questions[1].probe.choices}
    stub.script(name, name, Status(500))
    monkeypatch.setattr("worker.probe.OutsideError", ArithmeticError)  # the third answer ends the worker
    with pytest.raises(OutsideError):
        probe(of_two.pk)
    kept = {(row.step, row.seat) for row in of_two.beliefs.all()}
    assert kept == {(question.step, question.seat) for question in questions[:2]}
    assert len(list(probes.unanswered(of_two))) == len(questions) - 2
    page = client_of(admin).get(f"/play/{of_two.pk}/replay/", {"viewer": ALL}).content.decode()
    assert "some questions have no answer" in page
    assert f"/play/{of_two.pk}/beliefs/" in page, "the others can be asked again"


def test_a_model_that_stops_answering_is_left_alone(of_two, stub):
    stub.answer = lambda body: Status(500) if body["model"] == "first" else "Ada"
    questions = [question.seat for question in probes.unanswered(of_two)]
    assert questions.count(0) + questions.count(3) > MOST_FAILURES
    probe(of_two.pk)
    assert [asked.body["model"] for asked in stub.requests].count("first") == MOST_FAILURES
    assert of_two.beliefs.count() == questions.count(1)


def test_a_model_for_which_some_chats_are_too_long_is_asked_about_the_others(of_two, stub):
    too_long = Status(400, '{"error": {"message": "this model\'s maximum context length is 60 tokens"}}')
    stub.answer = too_long
    probe(of_two.pk)
    assert {asked.body["seed"] for asked in stub.requests} == {each.seed % 2**31 for each in probes.unanswered(of_two)}


def test_one_worker_at_a_time_asks_about_a_match(of_two, stub):
    questions, again = len(list(probes.unanswered(of_two))), [1]

    def answer(body):
        if again:
            again.pop()
            probe(of_two.pk)  # the same task, delivered twice
            connection.close()  # that of the server's thread
        return "Ada"

    stub.answer = answer
    probe(of_two.pk)
    assert len(stub.requests) == questions
    of_two.beliefs.all().delete()
    probe(of_two.pk)
    assert len(stub.requests) == 2 * questions, "the claim ended with the task"


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
    for user in (player, admin):
        assert "Who watched?" not in client_of(user).get(address).content.decode()
    probe(play_out(match).pk)

    def shown(user, **query):
        return client_of(user).get(address, query).content.decode()

    page = shown(admin, viewer=ALL)
    assert '<tr><th scope="row">Ada <span class="right-answer">right</span></th><td class="number">1.00</td>' in page
    assert re.findall(r'data-value="([^"]*)"', page) == ["1", "1.0000", "0.5000"]
    assert "Who watched?" not in shown(admin, viewer=ALL, step=0)
    assert "Who watched?" not in shown(admin, viewer=1)
    assert "Who watched?" not in shown(player, viewer=ALL), "it would tell who is a model before the rating"


def test_the_replay_asks_again_where_nobody_has_answered(match, stub, client_of, player, admin, monkeypatch):
    sent = []
    stub.script("<answer><B></answer>", "Ada")
    asking, replay = f"/play/{match.pk}/beliefs/", f"/play/{match.pk}/replay/"
    assert client_of(admin).post(asking).status_code == 404, "they still play"
    over = play_out(match)
    monkeypatch.setattr(queue, "publish", lambda task, *args, **_: sent.append((task.name, args)) or True)
    assert asking in client_of(admin).get(replay).content.decode()
    assert asking not in client_of(admin).get(replay, {"viewer": 1}).content.decode()
    assert asking not in client_of(player).get(replay).content.decode(), "it would say that there is a model"
    assert client_of(player).post(asking).status_code == 404
    assert client_of(admin).post(asking).url == f"{replay}?viewer={ALL}"
    assert sent == [("arena.probe_match", (match.pk,))]
    probe(over.pk)
    assert asking not in client_of(admin).get(replay).content.decode()


def test_asking_starts_no_more_models_than_a_person_may_wait_for(stub, client_of, researcher, player, settings):
    settings.QUOTAS = {**settings.QUOTAS, "requested_models": {"researcher": 1}}
    waiting, cold = (Deployment.objects.create(checkpoint=make_checkpoint(make_run(researcher))) for _ in range(2))
    serving.request(deployment=waiting, by=player)
    match = match_of_models(player, cold, (0,))
    Match.objects.update(rated=False)
    page = client_of(player).post(f"/play/{match.pk}/beliefs/", follow=True).content.decode()
    assert "more than the limit of 1 models that wait to be started" in page
    cold.refresh_from_db()
    assert cold.requested_at is None
    Deployment.objects.filter(pk=waiting.pk).update(requested_at=None)
    assert "ask again in a moment" in client_of(player).post(f"/play/{match.pk}/beliefs/", follow=True).content.decode()
    cold.refresh_from_db()
    assert cold.requested_by == player


def ours(stub, researcher):
    """A model that the site serves itself, at the stub's address."""
    state = {"state": Deployment.State.READY, "address": stub.url}
    return Deployment.objects.create(checkpoint=make_checkpoint(make_run(researcher)), **state)


def test_a_model_of_our_own_server_has_probabilities(stub, researcher):
    """By hand: log-probabilities of -1 and -1 + ln 3 are 1 to 3; there are as many as choices of the probe."""
    match = match_of_models(researcher, ours(stub, researcher), (0,))

    def answer(body):
        likely = [-1.0 + math.log(3), *[-1.0] * (len(body["choices"]) - 1)]
        return Raw(json.dumps({"logprobs": [number - 3 for number in likely]}))

    stub.answer = answer
    probe(match.pk)
    asked = stub.requests[0]
    assert asked.path.endswith("/v1/choices")
    assert asked.body["choices"][0].startswith("<vote>")
    assert asked.messages[-1]["content"].endswith("Whom would you vote for now?")
    point = probes.believed(match)[0]
    assert sum(point.probabilities.values()) == pytest.approx(1)
    first, *others = point.probabilities.values()
    assert first == pytest.approx(3 / (3 + len(others)))
    assert match.beliefs.first().answer == next(iter(point.probabilities))


@pytest.mark.parametrize(
    "fault", [Status(404), Raw('{"logprobs": [1]}'), Raw('{"logprobs": []}'), Raw("what"), Status(500)], ids=repr
)
def test_without_probabilities_a_model_of_our_own_names_a_choice(stub, researcher, fault):
    match = match_of_models(researcher, ours(stub, researcher), (0,))
    stub.answer = lambda body: fault if "choices" in body else "Dan"
    probe(match.pk)
    assert {row.answer for row in match.beliefs.all()} == {"Dan"}
    assert {row.probabilities for row in match.beliefs.all()} == {None}


def test_what_messages_changed_is_in_the_replay(match, admin, client_of):
    """A model named Cy before, and Ada, who watched, after the person's only move of the step."""
    for step, answer in ((0, "Cy"), (1, "Ada")):
        match.beliefs.create(
            step=step, seat=1, question="Who watched?", choices=["Ada", "Cy"], truth=["Ada"], answer=answer
        )
    Match.objects.filter(pk=match.pk).update(state=Match.State.FINISHED)
    address = f"/play/{match.pk}/replay/"
    page, of_model = (client_of(admin).get(address, {"viewer": viewer}).content.decode() for viewer in (ALL, 1))
    assert "1.00<br><small>+1.00</small>" in page.partition("What messages changed")[2]
    assert "What messages changed" not in of_model


def test_roles_are_revealed_at_the_end_to_those_who_may_see_all(match, stub, client_of, player, ben):
    stub.script("<answer><B></answer>", "Ada")
    address = f"/play/{match.pk}/replay/"
    roles = r'<span class="role">(\w+)</span>'
    assert re.findall(roles, client_of(player).get(address).content.decode()) == []
    play_out(match)
    Match.objects.update(visibility="open")

    def answer_page(user, **query):
        return re.findall(roles, client_of(user).get(address, query).content.decode())

    dealt = ["watcher", "sleeper", "sleeper"]
    assert answer_page(player, viewer=ALL, step=0) == dealt
    assert answer_page(player, viewer=2) == dealt
    assert answer_page(player, viewer=2, step=1) == []
    assert answer_page(ben) == [], "who sees only what spectators saw"
