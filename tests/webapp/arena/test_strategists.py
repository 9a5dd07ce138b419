"""Seats of two voices: what strategist and speaker are asked, who reads the strategies and when, and who speaks."""

import json
from datetime import timedelta

import pytest
from django.utils import timezone

from tests.chat_tokenizers import tokenizer
from tests.stub import Status, Stub
from tests.webapp.api.test_api import Caller, refusal
from tests.webapp.arena.conftest import negotiation
from tests.webapp.runs.making import make_run
from training.errors import BadInput
from training.games.base import FORFEIT
from training.records import SPECTATOR, Move
from training.run_sections import SpeakerSection
from training.text.conversations import traces
from training.text.template import ChatTokenizer
from webapp.arena import clock
from webapp.arena.live import client_state, fragments
from webapp.arena.models import DueSeat, Match
from webapp.arena.play import hosting, probes, services
from webapp.arena.setup import speakers, tables, waiting_room
from webapp.judgments import games
from webapp.judgments.models import GameRating
from webapp.runs.models import Checkpoint
from webapp.serving import services as serving
from webapp.serving.models import Deployment, RemoteModel
from worker.play import play

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("unpaced")]
SECRET = "ask for the food first"


@pytest.fixture
def strategist_stub():
    with Stub("Strategy: wait") as server:
        yield server


@pytest.fixture
def stub(stub):
    stub.answer = "Well."
    return stub


@pytest.fixture
def speaker(stub, admin):
    remote = RemoteModel.objects.create(
        name="the speaker", address=stub.url, model="stub", added_by=admin, open_to_players=True
    )
    return Deployment.objects.create(remote=remote, state=Deployment.State.READY)


def served(name, stub, **fields):
    checkpoint = Checkpoint.objects.create(
        name=name, kind="full", base="tiny", path=name, open_to_players=True, **fields
    )
    ready = {"state": Deployment.State.READY, "address": stub.url, "key": "k"}
    return Deployment.objects.create(checkpoint=checkpoint, **ready)


def trained(researcher, stub, **section):
    """A checkpoint of a run whose models advise a speaker."""
    run = make_run(researcher, config={"speaker": {"source": "", **section}})
    return served("a strategist", stub, run=run)


@pytest.fixture
def strategist(researcher, strategist_stub, stub, speaker):
    return trained(researcher, strategist_stub, source=f"{stub.url} stub", label="Thought", words=6)


def table(host, place, **fields):
    """The place is at seat 0 and begins; the host sits at seat 1."""
    start = tables.Start(negotiation(first_seat=0))
    places = [place, tables.Place(user=host)]
    return tables.create(host=host, start=start, places=places, consent=True, deadline_s=60, **fields)


def answered(match, text="No."):
    services.submit(match_id=match.pk, seat=1, step=match.moves.count(), move=Move(action="talk", text=text))


def read_by(stub, number=-1):
    return "\n".join(message["content"] for message in stub.requests[number].messages)


def test_a_checkpoint_of_a_run_with_a_speaker_advises_it_at_the_table(
    player, strategist, speaker, strategist_stub, stub
):
    match = table(player, speakers.place_of(strategist, "", player))
    strategist_stub.script(f"Thought: {SECRET} and then some more", "Thought: insist")
    stub.script("I would like the food.", "I insist.")
    play(match.due.get().pk)
    answered(match)
    play(match.due.get().pk)
    moves = match.moves.filter(seat=0).order_by("number")
    assert [(move.move["text"], move.strategy) for move in moves] == [
        ("I would like the food.", f"{SECRET} and"),  # of at most six words
        ("I insist.", "insist"),
    ]
    asked = read_by(strategist_stub)
    assert "You are the strategist of Ann" in asked
    order = [f"Thought: {SECRET} and", "Ann: I would like the food.", "Ben: No."]
    assert [asked.index(part) for part in order] == sorted(asked.index(part) for part in order)
    heard = read_by(stub)
    assert "You are the strategist" not in heard
    order = [f"advises: {SECRET} and", "I would like the food.", "Ben: No.", "advises: insist"]
    assert [heard.index(part) for part in order] == sorted(heard.index(part) for part in order)
    assert match.seats.get(seat=0).who == "a strategist, advising the speaker"


def test_a_refused_reply_has_a_strategy_of_its_own_that_both_read_later(player, strategist, strategist_stub, stub):
    match = table(player, speakers.place_of(strategist, "", player))
    strategist_stub.script("Thought: accept", "Thought: talk", "Thought: insist")
    stub.script("<accept/>", "Hello.", "I insist.")
    play(match.due.get().pk)
    answered(match)
    play(match.due.get().pk)
    stored = match.moves.order_by("number")[0]
    assert [attempt["strategy"] for attempt in stored.attempts] == ["accept"]
    assert stored.strategy == "talk"
    for server in (strategist_stub, stub):
        retried, later = ([message["content"] for message in request.messages] for request in server.requests[1:])
        assert later[: len(retried)] == retried, "what was read once stays as it was"
    heard = read_by(stub)
    order = ["advises: accept", "not an action", "advises: talk", "Hello.", "No.", "advises: insist"]
    assert [heard.index(part) for part in order] == sorted(heard.index(part) for part in order)


def test_a_strategist_or_speaker_that_fails_is_asked_again_with_nothing_added(
    player, strategist, strategist_stub, stub
):
    match = table(player, speakers.place_of(strategist, "", player))
    strategist_stub.script(Status(500), "Thought: lost with the reply", "Thought: talk")
    stub.script(Status(500), "Hello.")
    play(match.due.get().pk)
    stored = match.moves.get()
    assert (stored.move["text"], stored.strategy) == ("Hello.", "talk")
    assert len(stored.attempts) == 2
    assert not any("strategy" in attempt for attempt in stored.attempts)
    assert "lost with the reply" not in read_by(stub) + read_by(strategist_stub)


def test_a_model_that_writes_both_is_asked_once_a_turn(player, researcher, strategist_stub):
    match = table(player, speakers.place_of(trained(researcher, strategist_stub, source="self"), "", player))
    strategist_stub.script(f"Strategy: {SECRET}\nAll the food?", "Strategy: insist\nI insist.")
    play(match.due.get().pk)
    answered(match)
    play(match.due.get().pk)
    moves = match.moves.filter(seat=0).order_by("number")
    assert [(move.move["text"], move.strategy) for move in moves] == [
        ("All the food?", SECRET),
        ("I insist.", "insist"),
    ]
    assert len(strategist_stub.requests) == 2
    assert f"Your earlier strategy: {SECRET}" in read_by(strategist_stub)
    assert match.seats.get(seat=0).who == "a strategist, with strategies of its own"


def test_a_follower_of_the_run_speaks_at_the_table(player, researcher, strategist_stub):
    match = table(player, speakers.place_of(trained(researcher, strategist_stub, source="follower:100"), "", player))
    strategist_stub.script("Strategy: propose food 2, water 1, firewood 0")
    play(match.due.get().pk)
    assert match.moves.get().move["args"] == {"food": 2, "water": 1, "firewood": 0}
    assert match.seats.get(seat=0).who == "a strategist, advising a follower of strategies (100)"


@pytest.mark.parametrize(
    "choice, source, asked", [("", "", 0), ("none", "", 0), ("self", "self", 0), ("speaker", "deployment:", 1)]
)
def test_any_model_can_have_a_speaker_or_none(player, speaker, strategist_stub, stub, choice, source, asked):
    model = served("a base model", strategist_stub)
    value = f"deployment:{speaker.pk}" if choice == "speaker" else choice
    place = speakers.place_of(model, value, player)
    assert place.form.get("source", "").startswith(source)
    assert bool(place.form) == bool(source)
    strategist_stub.answer = "Strategy: wait\nHello."
    play(table(player, place).due.get().pk)
    assert (len(strategist_stub.requests), len(stub.requests)) == (1, asked)


def test_a_strategist_can_speak_itself(player, strategist, strategist_stub, stub):
    match = table(player, speakers.place_of(strategist, "none", player))
    play(match.due.get().pk)
    assert stub.requests == []
    assert "strategist" not in read_by(strategist_stub)
    assert match.moves.get().after is None


@pytest.mark.parametrize(
    "value", ["checkpoint:0", "deployment:99", "deployment:", "me", "scripted:scripted", "speaker"]
)
def test_a_speaker_that_is_none_is_refused_by_its_field(player, strategist, value):
    with pytest.raises(BadInput, match="no such speaker") as caught:
        speakers.place_of(strategist, value, player)
    assert caught.value.where == "speaker"


def test_a_speaker_that_is_not_open_to_the_host_is_none(player, researcher, strategist, speaker):
    RemoteModel.objects.update(open_to_players=False)
    for value in ("", f"deployment:{speaker.pk}"):
        with pytest.raises(BadInput, match=r"not open to you|no such speaker"):
            speakers.place_of(strategist, value, player)
    assert speakers.place_of(strategist, "", researcher).speaker == speaker


def test_two_models_of_this_site_need_two_slots(player, strategist_stub, settings):
    settings.SERVE_SLOTS = 1
    first, other = served("one", strategist_stub), served("other", strategist_stub)
    with pytest.raises(BadInput, match="serves 1 model at once"):
        speakers.place_of(first, f"checkpoint:{other.checkpoint_id}", player)
    assert speakers.place_of(first, f"checkpoint:{first.checkpoint_id}", player).speaker == first
    settings.SERVE_SLOTS = 2
    assert speakers.place_of(first, f"checkpoint:{other.checkpoint_id}", player).speaker == other


def replay_text(client_of, user, match):
    """All that this user gets of a match: its pages, the API, and the parts of a socket."""
    client, address = client_of(user), f"/play/{match.pk}/"
    pages = [client.get(address + rest).content.decode() for rest in ("", "result/", "replay/", "replay/?viewer=-2")]
    pages += [client.get(f"{address}replay/?viewer=-2&step=1").content.decode()]
    pages += [json.dumps(Caller(user).get(f"matches/{match.pk}").json())]
    viewer = next((seat.seat for seat in match.seats.filter(user=user)), SPECTATOR)
    pages += fragments.contents(client_state.read(match, viewer, user)).values()
    pages += [str(row.message) for row in match.rows.filter(viewer=viewer)]
    return "\n".join(pages)


def test_strategies_are_told_with_the_players_and_not_before(
    client_of, player, ben, researcher, admin, strategist, strategist_stub, stub
):
    places = [speakers.place_of(strategist, "", player), tables.Place(user=ben)]
    start = tables.Start(negotiation(first_seat=0))
    match = tables.create(host=player, start=start, places=places, visibility="public")
    waiting_room.answer_consent(match=match, user=ben, agreed=True)
    strategist_stub.script("Thought: accept it", f"Thought: {SECRET} <b>")
    stub.script("<accept/>", "Hello.")
    play(match.due.get().pk)
    for user in (player, ben, researcher, admin):
        assert SECRET not in replay_text(client_of, user, match), user
    services.submit(match_id=match.pk, seat=1, step=1, move=FORFEIT)
    match.refresh_from_db()
    assert match.state == Match.State.FINISHED
    assert SECRET not in replay_text(client_of, ben, match), "he has yet to guess who played"
    GameRating.objects.create(by=match.seats.get(user=ben), voted=False)
    shown = replay_text(client_of, ben, match)
    assert f"{SECRET} &lt;b&gt;" in shown
    assert f"{SECRET} <b>" not in shown
    assert "Its strategy: accept it" in shown


def test_an_export_has_the_strategies_and_a_judge_does_not_read_them(player, strategist, strategist_stub, stub):
    match = table(player, speakers.place_of(strategist, "", player))
    strategist_stub.script("Thought: accept it", f"Thought: {SECRET}")
    stub.script("<accept/>", "Hello.")
    play(match.due.get().pk)
    services.submit(match_id=match.pk, seat=1, step=1, move=Move(action="talk", text="No."))
    services.submit(match_id=match.pk, seat=0, step=2, move=FORFEIT)
    record = games.of_match(match)
    turns = [(turn.seat, turn.move_index, turn.strategy) for turn in record.episode().turns]
    assert turns == [(0, 0, SECRET), (1, 1, "")]
    assert SECRET not in str(record.transcript())
    chat = ChatTokenizer(tokenizer("chatml"))
    [trace] = traces(record.episode(), chat, seats=[0], form=SpeakerSection(label="Thought"))
    learned = [token for token, sampled in zip(trace.tokens, trace.mask, strict=True) if sampled]
    assert chat.decode(learned).removesuffix("<|im_end|>") == f"Thought: {SECRET}"


def test_the_clock_of_a_seat_starts_when_both_models_are_ready(player, strategist_stub, settings):
    settings.SERVE_SLOTS = 2
    first, other = served("one", strategist_stub), served("other", strategist_stub)
    Deployment.objects.filter(pk=other.pk).update(state=Deployment.State.COLD)
    match = table(player, speakers.place_of(first, f"checkpoint:{other.checkpoint_id}", player))
    assert DueSeat.objects.get().deadline is None
    assert Deployment.objects.get(pk=other.pk).requested_at is not None
    assert clock.start_clocks() == 0
    Deployment.objects.update(requested_at=None)
    assert clock.request_models() == 1
    Deployment.objects.update(state=Deployment.State.READY)
    assert clock.start_clocks() == 1
    assert DueSeat.objects.get().deadline is not None
    DueSeat.objects.update(deadline=None)
    Deployment.objects.filter(pk=other.pk).update(state=Deployment.State.FAILED)
    clock.start_clocks()
    match.refresh_from_db()
    assert (match.state, match.aborted_why) == (Match.State.ABORTED, "a model could not be started")


def test_a_table_of_hidden_players_begins_when_both_models_are_ready(player, ben, strategist_stub, settings):
    settings.SERVE_SLOTS = 2
    first, other = served("one", strategist_stub), served("other", strategist_stub)
    Deployment.objects.filter(pk=other.pk).update(state=Deployment.State.COLD)
    places = [speakers.place_of(first, f"checkpoint:{other.checkpoint_id}", player), tables.Place(user=ben)]
    match = tables.create(host=player, start=tables.Start(negotiation()), places=places)
    waiting_room.answer_consent(match=match, user=ben, agreed=True)
    assert clock.begin_with_models() == 0
    Deployment.objects.update(state=Deployment.State.READY)
    assert clock.begin_with_models() == 1
    match.refresh_from_db()
    assert match.state == Match.State.RUNNING


def test_a_speaker_that_is_being_asked_keeps_its_slot(player, strategist_stub, settings):
    from webapp.arena.play import model_seats

    settings.SERVE_SLOTS = 2
    first, other, third = (served(name, strategist_stub) for name in ("one", "other", "third"))
    match = table(player, speakers.place_of(first, f"checkpoint:{other.checkpoint_id}", player))
    assert model_seats.claim(due_id=match.due.get().pk) is not None
    Deployment.objects.update(used_at=timezone.now() - timedelta(minutes=5))
    Deployment.objects.filter(pk=third.pk).update(state=Deployment.State.COLD, requested_at=timezone.now())
    serving._start_requested()
    assert set(Deployment.objects.exclude(pk=third.pk).values_list("state", flat=True)) == {"ready"}
    match.due.update(claimed_until=None)
    serving._start_requested()
    assert "stopping" in Deployment.objects.values_list("state", flat=True)


def test_a_stand_in_or_an_empty_seat_has_no_speaker(player, strategist, strategist_stub):
    place = speakers.place_of(strategist, "", player)
    for change in (hosting.replace, hosting.kick):
        match = table(player, place)
        change(match=match, number=0)
        seat = match.seats.get(seat=0)
        assert (seat.kind, seat.deployment, seat.speaker, seat.form) == ("scripted", None, None, {})
        play(match.due.get().pk)
        assert match.moves.get().move["origin"] == "seat"
    waiting = table(player, place, shuffled=False)
    Match.objects.filter(pk=waiting.pk).update(state=Match.State.OPEN)
    hosting.kick(match=waiting, number=0)
    assert (waiting.seats.get(seat=0).speaker, waiting.seats.get(seat=0).form) == (None, {})
    assert strategist_stub.requests == []


def test_a_rematch_has_the_same_speakers_if_they_are_open_to_its_host(player, strategist, speaker):
    match = table(player, speakers.place_of(strategist, "", player))
    services.abort(match_id=match.pk, why="over")
    following = tables.again(match=match, host=player)
    seat = following.seats.get(seat=1)
    assert (seat.deployment, seat.speaker, seat.form["words"]) == (strategist, speaker, 6)
    services.abort(match_id=following.pk, why="over")
    RemoteModel.objects.update(open_to_players=False)
    with pytest.raises(BadInput, match="not everything at this table is open to you"):
        tables.again(match=match, host=player)


def test_no_question_is_put_to_a_seat_of_two_voices(player, strategist):
    match = table(player, speakers.place_of(strategist, "", player))
    assert probes.model_seats_of(match) == {}


def test_the_form_and_the_api_set_up_the_pairings(client_of, player, strategist, speaker):
    client = client_of(player)
    page = client.get("/play/new/?game=negotiation").content.decode()
    assert "Speaker 2" in page
    form = {"game": "negotiation", "scenario": "sample", "deadline_s": "60", "visibility": "private", "consent": "yes"}
    model, chosen = f"checkpoint:{strategist.checkpoint_id}", f"deployment:{speaker.pk}"
    client.post("/play/new/", {**form, "seat_0": "me", "seat_1": model})
    client.post("/play/new/", {**form, "seat_0": model, "speaker_0": "none", "seat_1": chosen, "speaker_1": chosen})
    first, second = (
        [(seat.speaker, seat.form.get("words")) for seat in match.seats.order_by("seat")]
        for match in Match.objects.order_by("pk")
    )
    assert first == [(None, None), (speaker, 6)]
    assert second == [(None, None), (speaker, 10)]
    refused = client.post("/play/new/", {**form, "seat_0": "me", "seat_1": "open", "speaker_1": chosen})
    assert refused.status_code == 400
    assert "Only a model has a speaker" in refused.content.decode()
    places = [{"me": True}, {"checkpoint": strategist.checkpoint_id, "speaker": chosen}]
    made = Caller(player).post("matches", game="negotiation", places=places, consent=True)
    assert made.status_code == 201
    assert Match.objects.latest("pk").seats.get(seat=1).speaker == speaker
    places = [{"me": True}, {"scripted": "scripted", "speaker": chosen}]
    refused = Caller(player).post("matches", game="negotiation", places=places, consent=True)
    assert refusal(refused) == (422, "places")


def test_a_run_of_an_earlier_release_has_no_speaker(player, researcher, strategist_stub):
    model = trained(researcher, strategist_stub, source="follower:60", unknown="field of a later one")
    assert speakers.place_of(model, "", player).form == {}
