"""A coach: what it reads, who reads its advice and when, and what becomes of the game."""

from datetime import timedelta

import pytest
from channels.db import database_sync_to_async
from django.utils import timezone

from tests.games.worlds import CASES
from tests.stub import Status
from tests.webapp.api.test_api import Caller
from tests.webapp.arena.browser import Tab
from tests.webapp.arena.conftest import dialogue, negotiation
from tests.webapp.runs.making import make_run
from training.errors import BadInput, IllegalMove
from training.games.base import FORFEIT
from training.records import SPECTATOR, Move, Scenario
from webapp.arena.live import client_state, fragments
from webapp.arena.models import Advice, Match
from webapp.arena.play import coach, moves, services
from webapp.arena.setup import tables, waiting_room
from webapp.judgments import games
from webapp.judgments.models import Guess
from webapp.ladder import log
from webapp.runs.models import Checkpoint
from webapp.serving import services as serving
from webapp.serving.models import Deployment, RemoteModel
from worker.advise import advise

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("unpaced")]
ADVICE = "ask for the food first"


@pytest.fixture
def deployment(deployment):
    RemoteModel.objects.update(open_to_players=True)
    return deployment


@pytest.fixture
def match(player, ben):
    """A running negotiation; `player` sits at seat 0 and begins."""
    start = tables.Start(negotiation(first_seat=0))
    places = [tables.Place(user=player), tables.Place(user=ben)]
    match = tables.create(host=player, start=start, places=places, consent=True, visibility="public")
    waiting_room.answer_consent(match=match, user=ben, agreed=True)
    match.refresh_from_db()
    return match


def talk(text):
    return Move(action="talk", text=text, origin="seat")


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
    [seen] = Caller(player).get(matches).json()["advice"]
    assert {name: seen[name] for name in ("seat", "turn", "coach", "text", "why")} == {
        "seat": 0, "turn": 0, "coach": "stub", "text": ADVICE, "why": "",
    }  # fmt: skip
    assert 0 < seen["seconds"] < 60
    for other in (ben, annotator):
        page = client_of(other).get(table).content.decode()
        assert ADVICE not in page
        assert Caller(other).get(matches).json()["advice"] == []
    for viewer in (1, SPECTATOR):
        parts = fragments.contents(client_state.read(match, viewer))
        assert ADVICE not in "".join(parts.values())
    finish(match)
    result = f"/play/{match.pk}/result/"
    page = client_of(player).get(result).content.decode()
    assert ADVICE in page
    own_step = f"/play/{match.pk}/replay/?viewer=0&amp;step=1"
    assert own_step in page, "before the rating only their own viewpoint has it"
    assert ADVICE in client_of(player).get(own_step.replace("&amp;", "&")).content.decode()
    assert ADVICE not in client_of(player).get(f"/play/{match.pk}/replay/?viewer=0&step=2").content.decode()
    assert ADVICE not in client_of(ben).get(result).content.decode(), "he has yet to guess who played"
    assert ADVICE not in client_of(ben).get(f"/play/{match.pk}/replay/?viewer=-2").content.decode()
    mine = match.seats.get(user=ben)
    Guess.objects.create(by=mine, about=match.seats.exclude(pk=mine.pk).get(), person=True)
    shown = client_of(ben).get(result).content.decode()
    assert ADVICE in shown
    assert f"/play/{match.pk}/replay/?step=1" in shown
    replay = f"/play/{match.pk}/replay/"
    assert ADVICE in client_of(ben).get(f"{replay}?step=1").content.decode()
    assert ADVICE not in client_of(ben).get(f"{replay}?step=1&viewer=0").content.decode(), "it stands in the whole view"
    assert [row["text"] for row in Caller(ben).get(matches).json()["advice"]] == [ADVICE]


def test_an_advised_move_is_shown_without_its_tag(client_of, match, player, deployment, stub):
    advised(match, player, deployment, stub, text="<propose>947</propose>")
    page = client_of(player).get(f"/play/{match.pk}/").content.decode()
    assert '<span class="deed">propose: 947</span>' in page
    assert "&lt;propose&gt;" not in page


def test_advice_is_text_and_never_markup(client_of, match, player, deployment, stub):
    advised(match, player, deployment, stub, "<script>alert(1)</script> take <img src=x onerror=alert(2)> it")
    page = client_of(player).get(f"/play/{match.pk}/").content.decode()
    assert "<script>alert(1)" not in page
    assert '<span class="deed">script: alert(1)</span> take &lt;img src=x onerror=alert(2)&gt; it' in page


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
    with pytest.raises(BadInput, match="too often"):
        asked(match, player, deployment)
    assert advice.coach in client_of(player).get(f"/play/{match.pk}/").content.decode()


@pytest.mark.parametrize(
    "answer, why",
    [(Status(500, "secret-token"), coach.UNUSABLE), (Status(400, "context_length_exceeded"), coach.TOO_LONG)],
)
def test_a_player_reads_nothing_of_what_a_models_server_says(match, player, deployment, stub, answer, why):
    stub.script(answer)
    advise(asked(match, player, deployment).pk)
    assert match.advice.get().why == why
    shown = str(Caller(player).get(f"matches/{match.pk}").json())
    assert why in shown
    assert "127.0.0.1" not in shown


def test_a_player_does_not_read_which_address_is_no_longer_allowed(match, player, deployment, monkeypatch):
    advice = asked(match, player, deployment)
    monkeypatch.setenv("MODEL_ADDRESSES", "")
    advise(advice.pk)
    assert match.advice.get().why == coach.UNUSABLE


def test_a_failed_coach_leaves_the_game_on_the_ladder(match, player, deployment, stub):
    stub.script(*[Status(500)] * 10)
    advise(asked(match, player, deployment).pk)
    assert match.advice.get().why
    services.submit(match_id=match.pk, seat=0, step=0, move=talk("Hello."))
    services.submit(match_id=match.pk, seat=1, step=1, move=FORFEIT)
    Match.objects.update(ended_at=timezone.now() - log.HELD_BACK)
    assert log.numbers("negotiation") == [match.pk]


@pytest.mark.parametrize("ends", [talk("Hello."), FORFEIT], ids=["moved", "over"])
def test_advice_that_comes_after_the_turn_is_dropped(match, player, deployment, stub, ends):
    question = coach.claim(advice_id=asked(match, player, deployment).pk)
    services.submit(match_id=match.pk, seat=0, step=0, move=ends)
    coach.keep(question=question, text=ADVICE)
    advice = match.advice.get()
    assert (advice.text, advice.why) == ("", coach.TURN_OVER)


def test_advice_within_a_joint_step_is_dropped_once_its_seat_has_moved(player, ben, deployment):
    places = [tables.Place(user=player), tables.Place(user=ben)]
    match = tables.create(host=player, start=tables.Start(dialogue(order="simultaneous")), places=places, consent=True)
    waiting_room.answer_consent(match=match, user=ben, agreed=True)
    questions = [coach.claim(advice_id=asked(match, user, deployment).pk) for user in (player, ben)]
    services.submit(match_id=match.pk, seat=0, step=0, move=Move(action="speak", text="Hello."))
    for question in questions:
        coach.keep(question=question, text=ADVICE)
    assert [row.text for row in match.advice.order_by("seat")] == ["", ADVICE]


def test_advice_counts_against_a_quota(match, player, ben, deployment, settings):
    settings.QUOTAS = {**settings.QUOTAS, "advice_per_hour": {"player": 1}}
    asked(match, player, deployment)
    for step in range(2):
        services.submit(match_id=match.pk, seat=step, step=step, move=talk("Hello."))
    with pytest.raises(BadInput, match="limit of 1 turns with advice") as caught:
        asked(match, player, deployment, turn=1)
    assert caught.value.where == "advice_per_hour"
    services.submit(match_id=match.pk, seat=0, step=2, move=talk("Hello."))
    assert asked(match, ben, deployment, turn=1).seat == 1, "another person has a quota of their own"


def test_a_coach_that_sleeps_counts_among_the_models_that_a_person_waits_for(match, player, settings):
    settings.QUOTAS = {**settings.QUOTAS, "requested_models": {"researcher": 1}}
    small, large = (
        Checkpoint.objects.create(name=name, kind="base", base=name, path="x", open_to_players=True)
        for name in ("small", "large")
    )
    advice = coach.ask(match_id=match.pk, user=player, turn=0, coach=f"checkpoint:{small.pk}")
    assert Deployment.objects.get(pk=advice.deployment_id).requested_by == player
    Advice.objects.update(why="it failed")
    with pytest.raises(BadInput, match="models that wait to be started"):
        coach.ask(match_id=match.pk, user=player, turn=0, coach=f"checkpoint:{large.pk}")


def test_a_model_that_advises_keeps_its_slot(match, player, admin):
    checkpoint = Checkpoint.objects.create(name="small", kind="base", base="x", path="x", open_to_players=True)
    long_ago = timezone.now() - timedelta(minutes=5)
    served = Deployment.objects.create(checkpoint=checkpoint, state=Deployment.State.READY)
    advice = coach.ask(match_id=match.pk, user=player, turn=0, coach=f"checkpoint:{checkpoint.pk}")
    Deployment.objects.update(used_at=long_ago, requested_at=None)
    assert serving._yield_slot() == 0
    advice.match.advice.update(text="wait")
    assert serving._yield_slot() == 1
    served.refresh_from_db()
    assert served.state == Deployment.State.STOPPING


def test_a_game_without_a_coach_says_so(client_of, player, ben):
    scenario = Scenario(id="x", game="openspiel:tic_tac_toe", seats=("Ann", "Ben"))
    places = [tables.Place(user=player), tables.Place(user=ben)]
    match = tables.create(host=player, start=tables.Start(scenario), places=places, consent=True)
    waiting_room.answer_consent(match=match, user=ben, agreed=True)
    assert coach.coaches(player, scenario.game) == []
    assert "There is no coach: no model is open to you" in client_of(player).get(f"/play/{match.pk}/").content.decode()


def test_a_strategist_advises_in_the_form_of_its_run(match, player, researcher, stub):
    for source, asks, label in (
        ("follower:60", "You are the strategist of Ann", "Thought"),
        ("self", "a reply", "Thought"),
    ):
        run = make_run(researcher, config={"speaker": {"source": source, "label": label, "words": 3}})
        checkpoint = Checkpoint.objects.create(
            name=source, kind="full", base="x", path="x", run=run, open_to_players=True
        )
        address = {"state": Deployment.State.READY, "address": stub.url, "key": "k"}
        Deployment.objects.create(checkpoint=checkpoint, **address)
        stub.script("Thought: ask for food\nAll the food?")
        advise(coach.ask(match_id=match.pk, user=player, turn=0, coach=f"checkpoint:{checkpoint.pk}").pk)
        assert match.advice.get().text == "ask for food"
        assert asks in stub.requests[-1].messages[0]["content"]
        match.advice.all().delete()
    assert [value for value, _ in coach.coaches(player, "negotiation")][-1] == "scripted"


def test_strategists_are_offered_first_and_chance_is_not(player, researcher):
    run = make_run(researcher, config={"speaker": {"source": "follower:60"}})
    for name, of in (("strategist", run), ("plain", None)):
        Checkpoint.objects.create(name=name, kind="full", base="x", path="x", run=of, open_to_players=True)
    names = [name for _, name in coach.coaches(player, "kuhn_poker")]
    assert names[:2] == ["strategist", "plain"]
    assert "an equilibrium strategy" in names
    assert "a random player" not in names


def test_a_solver_of_the_game_advises(player, ben):
    start = tables.Start(CASES["kuhn_poker"][0])
    places = [tables.Place(user=player), tables.Place(user=ben)]
    match = tables.create(host=player, start=start, places=places, consent=True)
    waiting_room.answer_consent(match=match, user=ben, agreed=True)
    user = match.seats.get(seat=match.due.get().seat).user
    advise(coach.ask(match_id=match.pk, user=user, turn=0, coach="nash").pk)
    advice = match.advice.get()
    assert (advice.coach, advice.scripted, advice.why) == ("an equilibrium strategy", "nash", "")
    assert advice.text


def test_everybody_reads_beforehand_whether_a_coach_may_be_asked(client_of, player, ben):
    for coaching, words in ((True, "Players may ask a coach"), (False, "Nobody may ask a coach")):
        places = [tables.Place(user=player), tables.Place(user=ben)]
        match = tables.create(
            host=player, start=tables.Start(negotiation()), places=places, consent=True, coaching=coaching
        )
        assert words in client_of(ben).get(f"/play/{match.pk}/consent/").content.decode()
        assert words in client_of(player).get(f"/play/{match.pk}/").content.decode()


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
    refused = client_of(ben).post(address, {"turn": "0", "coach": "scripted"})
    assert refused.status_code == 400
    why = "No coach was asked: you can ask a coach when it is your turn."
    assert f'<p id="coach-refusal" class="refusal" role="alert">{why}</p>' in refused.content.decode()
    for data in ({}, {"turn": "x", "coach": "scripted"}, {"turn": "0", "coach": "\x00"}, {"turn": "0"}):
        assert client_of(ben).post(address, data).status_code == 400


async def test_a_socket_asks_and_nobody_else_hears_of_it(client_of, match, player, ben, annotator, deployment, stub):
    from webapp.asgi import application

    def sync(function, *args, **named):
        return database_sync_to_async(function)(*args, **named)

    people = (player, ben, annotator)
    tabs = [await (await Tab(application, await sync(client_of, user), match.pk).load()).open() for user in people]
    for tab in tabs:
        await tab.hear()
    mine, others = tabs[0], tabs[1:]
    heard = [len(tab.frames) for tab in others]
    await mine.play(turn="0", coach="nobody")
    await mine.until(lambda: "No coach was asked: there is no such coach" in "".join(mine.frames))
    await mine.play(turn="0", coach=f"deployment:{deployment.pk}")
    await mine.until(lambda: "stub is thinking about your turn" in mine.page.parts["advice"])
    assert "Ask for advice" not in mine.page.parts["coach"]
    stub.script(f"Strategy: {ADVICE}")
    await sync(lambda: advise(match.advice.get().pk))
    await mine.until(lambda: ADVICE in mine.page.parts["advice"])
    for tab, frames in zip(others, heard, strict=True):
        await tab.hear()
        assert len(tab.frames) == frames
    assert "advice" not in others[1].page.parts
    assert ADVICE not in str([others[0].page.state(), others[1].page.state()])
    for tab in tabs:
        await tab.leave()


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
    assert ADVICE not in str(games.of_match(match).transcript()), "judges do not read it"
