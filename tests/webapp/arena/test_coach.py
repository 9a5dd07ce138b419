"""A coach: what it reads, who reads its advice and when, and what becomes of the game."""

from datetime import timedelta

import pytest
from django.utils import timezone

from tests.stub import Status, Stub
from tests.webapp.api.test_api import Caller
from tests.webapp.arena.conftest import negotiation
from training.errors import BadInput, IllegalMove
from training.games.base import FORFEIT
from training.records import SPECTATOR, Move
from webapp.arena.live import client_state, fragments
from webapp.arena.models import Advice, Match
from webapp.arena.play import coach, moves, services
from webapp.arena.setup import tables
from webapp.judgments import games
from webapp.judgments.models import Guess
from webapp.ladder import log
from webapp.serving.models import Deployment, RemoteModel
from worker.advise import advise

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("unpaced")]
ADVICE = "ask for the food first"


@pytest.fixture
def stub(monkeypatch):
    with Stub() as server:
        monkeypatch.setenv("MODEL_ADDRESSES", server.url)
        yield server


@pytest.fixture
def deployment(stub, admin):
    remote = RemoteModel.objects.create(
        name="stub", address=stub.url, model="stub", added_by=admin, open_to_players=True
    )
    return Deployment.objects.create(remote=remote, state=Deployment.State.READY)


@pytest.fixture
def match(player, ben):
    """A running negotiation; `player` sits at seat 0 and begins."""
    start = tables.Start(negotiation(first_seat=0))
    places = [tables.Place(user=player), tables.Place(user=ben)]
    match = tables.create(host=player, start=start, places=places, consent=True, visibility="public")
    tables.answer_consent(match=match, user=ben, agreed=True)
    match.refresh_from_db()
    return match


def asked(match, user, deployment, turn=0):
    return coach.ask(match_id=match.pk, user=user, turn=turn, coach=f"deployment:{deployment.pk}")


def advised(match, user, deployment, stub, text=ADVICE):
    stub.script(f"Strategy: {text}")
    advise(asked(match, user, deployment).pk)
    return match.advice.get()


def finish(match):
    services.submit(match_id=match.pk, seat=0, step=0, move=FORFEIT)
    match.refresh_from_db()


def test_a_coach_reads_what_the_seat_reads_and_no_more(match, player, deployment, stub):
    advice = advised(match, player, deployment, stub)
    assert (advice.seat, advice.step, advice.text, advice.why) == (0, 0, ADVICE, "")
    assert advice.took_s > 0
    (request,) = stub.requests
    assert "You are the strategist of Ann" in request.messages[0]["content"]
    assert "big appetite" in str(request.messages)
    assert "cold nights" not in str(request.messages)


def test_a_coach_reads_its_earlier_advice(match, player, ben, deployment, stub):
    advised(match, player, deployment, stub)
    for step, text in enumerate(("hello", "hello to you")):
        services.submit(match_id=match.pk, seat=step, step=step, move=talk(text))
    stub.script("Strategy: now propose")
    advise(asked(match, player, deployment, turn=1).pk)
    assert ADVICE in str(stub.requests[1].messages)
    assert [row.text for row in match.advice.order_by("step")] == [ADVICE, "now propose"]


def talk(text):
    return Move(action="talk", text=text, origin="seat")


def test_a_script_can_be_the_coach(match, player, stub):
    advise(coach.ask(match_id=match.pk, user=player, turn=0, coach="scripted").pk)
    advice = match.advice.get()
    assert advice.coach == "a scripted player"
    offered = [moves.label(action) for action in services.fold(match).game.observe(0).actions]
    assert any(advice.text.startswith(label) for label in offered)
    assert stub.requests == []


def test_only_the_seat_reads_the_advice_until_the_players_are_revealed(
    client_of, match, player, ben, annotator, deployment, stub
):
    advised(match, player, deployment, stub)
    table, matches = f"/play/{match.pk}/", f"matches/{match.pk}"
    assert ADVICE in client_of(player).get(table).content.decode()
    assert Caller(player).get(matches).json()["advice"] == [
        {"seat": 0, "coach": "stub", "text": ADVICE, "why": ""},
    ]
    for other in (ben, annotator):
        page = client_of(other).get(table).content.decode()
        assert ADVICE not in page
        assert Caller(other).get(matches).json()["advice"] == []
    for viewer in (1, SPECTATOR):
        parts = fragments.contents(client_state.look(match, viewer))
        assert ADVICE not in "".join(parts.values())
    finish(match)
    result = f"/play/{match.pk}/result/"
    assert ADVICE in client_of(player).get(result).content.decode()
    assert ADVICE not in client_of(ben).get(result).content.decode(), "he has yet to guess who played"
    assert ADVICE not in client_of(ben).get(f"/play/{match.pk}/replay/?viewer=-2").content.decode()
    mine = match.seats.get(user=ben)
    Guess.objects.create(by=mine, about=match.seats.exclude(pk=mine.pk).get(), person=True)
    assert ADVICE in client_of(ben).get(result).content.decode()
    assert [row["text"] for row in Caller(ben).get(matches).json()["advice"]] == [ADVICE]


def test_advice_is_text_and_never_markup(client_of, match, player, deployment, stub):
    advised(match, player, deployment, stub, "<script>alert(1)</script> take it")
    page = client_of(player).get(f"/play/{match.pk}/").content.decode()
    assert "<script>alert(1)" not in page
    assert "&lt;script&gt;alert(1)" in page


def test_one_turn_has_one_advice(match, player, deployment, stub):
    advice = advised(match, player, deployment, stub)
    assert asked(match, player, deployment) == advice
    advise(advice.pk)
    assert len(stub.requests) == 1


def test_a_request_in_work_is_not_asked_twice(match, player, deployment, stub):
    advice = asked(match, player, deployment)
    assert coach.claim(advice_id=advice.pk) is not None
    assert coach.claim(advice_id=advice.pk) is None
    assert asked(match, player, deployment).tries == 1


def test_a_coach_that_fails_says_why_and_can_be_asked_again_a_few_times(client_of, match, player, deployment, stub):
    for number in range(1, coach.MOST_TRIES + 1):
        stub.script(*[Status(500)] * 10)
        advise(asked(match, player, deployment).pk)
        advice = match.advice.get()
        assert (advice.tries, advice.text) == (number, "")
        assert advice.why
        stub.answers.clear() if hasattr(stub, "answers") else None
    with pytest.raises(BadInput, match="too often"):
        asked(match, player, deployment)
    assert advice.coach in client_of(player).get(f"/play/{match.pk}/").content.decode()


def test_an_answer_without_words_is_a_failure(match, player, deployment, stub):
    stub.script("Strategy:")
    advise(asked(match, player, deployment).pk)
    assert match.advice.get().why == "the coach wrote nothing"


def test_a_request_whose_worker_died_can_be_made_again(match, player, deployment, stub):
    advice = asked(match, player, deployment)
    coach.claim(advice_id=advice.pk)
    Advice.objects.update(asked_at=timezone.now() - coach.LAPSES - timedelta(seconds=1))
    assert advised(match, player, deployment, stub).tries == 2


def test_an_answer_to_an_earlier_request_is_dropped(match, player, deployment):
    question = coach.claim(advice_id=asked(match, player, deployment).pk)
    Advice.objects.update(asked_at=timezone.now() - coach.LAPSES - timedelta(seconds=1))
    asked(match, player, deployment)
    coach.keep(question=question, text="too late")
    assert match.advice.get().text == ""


def test_nobody_asks_out_of_turn_or_for_a_seat_of_others(match, ben, annotator, player, deployment):
    with pytest.raises(BadInput, match="when it is your turn"):
        asked(match, ben, deployment)
    with pytest.raises(BadInput, match="you do not sit"):
        asked(match, annotator, deployment)
    with pytest.raises(IllegalMove, match="moved on"):
        asked(match, player, deployment, turn=1)
    finish(match)
    with pytest.raises(BadInput, match="when it is your turn"):
        asked(match, player, deployment)
    assert not Advice.objects.exists()


def test_a_model_that_is_not_open_to_the_player_is_no_coach(match, player, deployment):
    RemoteModel.objects.update(open_to_players=False)
    with pytest.raises(BadInput, match="no such coach") as caught:
        asked(match, player, deployment)
    assert caught.value.where == "coach"
    assert not Advice.objects.exists()
    assert coach.coaches(player, "negotiation") == [("scripted", "a scripted player")]


def test_a_host_can_forbid_coaches(client_of, player, ben, deployment):
    places = [tables.Place(user=player), tables.Place(scripted="scripted")]
    start = tables.Start(negotiation(first_seat=0))
    match = tables.create(host=player, start=start, places=places, consent=True, coaching=False)
    with pytest.raises(BadInput, match="not allowed"):
        asked(match, player, deployment)
    assert '<details class="coach" hidden>' in client_of(player).get(f"/play/{match.pk}/").content.decode()


def test_the_page_asks_and_says_why_it_cannot(client_of, match, player, ben):
    address = f"/play/{match.pk}/coach/"
    client = client_of(player)
    assert client.post(address, {"turn": "0", "coach": "scripted"}).url == f"/play/{match.pk}/"
    assert "is thinking about your turn" in client.get(f"/play/{match.pk}/").content.decode()
    other = client_of(ben)
    other.post(address, {"turn": "0", "coach": "scripted"})
    assert "No coach was asked: you can ask a coach when it is your turn." in other.get("/play/").content.decode()


def test_a_game_with_advice_is_on_no_ladder_and_its_export_has_the_advice(
    client_of, researcher, match, player, ben, deployment, stub
):
    advised(match, player, deployment, stub)
    services.submit(match_id=match.pk, seat=0, step=0, move=talk("The food is what I need."))
    services.submit(match_id=match.pk, seat=1, step=1, move=FORFEIT)
    Match.objects.update(ended_at=timezone.now() - log.HELD_BACK)
    match.refresh_from_db()
    assert match.rated
    assert log.numbers("negotiation") == []
    Advice.objects.all().delete()
    assert log.numbers("negotiation") == [match.pk]
    Advice.objects.create(match=match, step=0, seat=0, after=2, coach="stub", text=ADVICE, asked_at=timezone.now())
    episode = games.of_match(match).episode()
    assert [(turn.seat, turn.move_index, turn.strategy) for turn in episode.turns] == [(0, 0, ADVICE)]
    assert ADVICE not in str(games.of_match(match).lines()), "judges do not read it"
