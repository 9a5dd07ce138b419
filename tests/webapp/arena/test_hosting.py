"""Paused, away, replaced, sent away: the clock, the sockets, the flag, and that nothing hidden is revealed."""

from datetime import timedelta

import pytest
from channels.db import database_sync_to_async

from tests.webapp.arena import vigil
from tests.webapp.arena.browser import Tab
from tests.webapp.arena.conftest import dialogue, negotiation
from training.errors import BadInput, IllegalMove
from training.records import Move
from webapp.arena import clock
from webapp.arena.live import client_state, consumers
from webapp.arena.models import DueSeat, Match, MatchSeat
from webapp.arena.play import hosting, human_moves, model_seats, pace, services, statements
from webapp.arena.setup import links, tables, waiting_room
from worker.play import play

pytestmark = pytest.mark.django_db
registered = vigil.registered
TALK = {"turn": "0", "action": "talk", "text": "hello"}


def fresh(match):
    return Match.objects.get(pk=match.pk)


def gone_for(match, seat, seconds):
    match.seats.filter(seat=seat).update(seen_at=services.database_now() - timedelta(seconds=seconds))


# --- pause ---


def test_a_pause_moves_the_clock_and_refuses_moves(client_of, player, ben, two_people):
    due, until = two_people.due.get(), fresh(two_people).step_until
    address = f"/play/{two_people.pk}/"
    assert client_of(ben).post(f"{address}pause/").status_code == 404
    client_of(player).post(f"{address}pause/")
    page = client_of(ben).get(address).content.decode()
    assert "Paused by the host" in page
    assert "data-until" not in page
    with pytest.raises(IllegalMove, match="paused by its host"):
        human_moves.play(match_id=two_people.pk, user=player, data=TALK)
    assert client_of(player).post(f"{address}move/", TALK).status_code == 400
    since = timedelta(seconds=500)
    Match.objects.update(paused_at=services.database_now() - since)
    DueSeat.objects.update(deadline=services.database_now() - timedelta(seconds=100))
    assert clock.time_out() == 0, "while the clock stands nobody is late"
    DueSeat.objects.update(deadline=due.deadline)
    client_of(player).post(f"{address}resume/")
    moved = two_people.due.get().deadline - due.deadline
    assert since <= moved < since + timedelta(seconds=30)
    assert fresh(two_people).step_until - until == moved
    assert fresh(two_people).paused_at is None
    human_moves.play(match_id=two_people.pk, user=player, data=TALK)


def test_a_paused_game_asks_no_model_and_asks_again_afterwards(player):
    places = [tables.Place(scripted="scripted"), tables.Place(user=player)]
    match = tables.create(host=player, start=tables.Start(negotiation()), places=places, consent=True)
    due = match.due.get()
    hosting.pause(match=match)
    DueSeat.objects.update(hint_at=services.database_now() - timedelta(seconds=9))
    assert model_seats.claim(due_id=due.pk) is None
    assert model_seats.tell_workers() == []
    hosting.resume(match=match)
    assert model_seats.tell_workers() == [due.pk]
    play(due.pk)
    assert match.moves.get().seat == 0


def test_what_was_answered_before_a_pause_counts_no_more(player):
    places = [tables.Place(scripted="scripted"), tables.Place(user=player)]
    match = tables.create(host=player, start=tables.Start(negotiation()), places=places, consent=True)
    claim = model_seats.claim(due_id=match.due.get().pk)
    hosting.pause(match=match)
    hosting.resume(match=match)
    with pytest.raises(IllegalMove, match="another worker"):
        model_seats.answer(answering=model_seats.Answering(claim, move=claim.game.default(0)))
    assert match.moves.count() == 0


def test_pausing_is_for_running_games_and_once(player, two_people):
    with pytest.raises(BadInput, match="not paused"):
        hosting.resume(match=two_people)
    hosting.pause(match=two_people)
    with pytest.raises(BadInput, match="already"):
        hosting.pause(match=two_people)
    services.abort(match_id=two_people.pk, why="x")
    with pytest.raises(BadInput, match="not running"):
        hosting.resume(match=two_people)


def test_a_game_resumes_after_its_host_paused_it_and_left(player, ben, two_people):
    due = two_people.due.get().deadline
    hosting.pause(match=two_people)
    assert clock.go_on() == 0
    since = hosting.LONGEST_PAUSE + timedelta(seconds=5)
    Match.objects.update(paused_at=services.database_now() - since)
    assert (clock.go_on(), clock.go_on()) == (1, 0)
    assert fresh(two_people).paused_at is None
    assert since <= two_people.due.get().deadline - due < since + timedelta(seconds=30)
    human_moves.play(match_id=two_people.pk, user=player, data=TALK)
    assert hosting.end_pause(match_id=two_people.pk) is None, "the host was quicker"


# --- a seat that changes hands while an answer for it is on its way ---


def first(happens, of, name, monkeypatch):
    """Let something happen right before a function is called, once the caller has looked at everything else."""
    function = getattr(of, name)

    def called(**kwargs):
        monkeypatch.setattr(of, name, function)
        happens()
        return function(**kwargs)

    monkeypatch.setattr(of, name, called)


@pytest.mark.parametrize("changed, why", [(hosting.replace, "take your seat back"), (hosting.kick, "do not sit")])
def test_a_persons_move_does_not_outrun_the_host(player, ben, two_people, monkeypatch, changed, why):
    first(lambda: changed(match=two_people, number=0), services, "submit", monkeypatch)
    with pytest.raises(IllegalMove, match=why):
        human_moves.play(match_id=two_people.pk, user=player, data=TALK)
    assert two_people.moves.count() == 0


def test_a_stand_ins_move_does_not_outrun_a_returning_person(player, ben, two_people, monkeypatch):
    hosting.replace(match=two_people, number=0)
    claim = model_seats.claim(due_id=two_people.due.get().pk)
    first(lambda: hosting.take_back(match=two_people, user=player), services, "submit", monkeypatch)
    with pytest.raises(IllegalMove, match="another worker"):
        model_seats.answer(answering=model_seats.Answering(claim, move=claim.game.default(0)))
    assert two_people.moves.count() == 0
    human_moves.play(match_id=two_people.pk, user=player, data=TALK)


def test_a_move_that_the_clock_outruns_is_not_taken_for_the_next_turn(player, ben, monkeypatch):
    places = [tables.Place(user=player), tables.Place(user=ben)]
    match = tables.create(host=player, start=tables.Start(dialogue(order="simultaneous")), places=places, consent=True)
    waiting_room.answer_consent(match=match, user=ben, agreed=True)
    DueSeat.objects.update(deadline=services.database_now() - timedelta(seconds=1))
    read = statements.sitting_of

    def before_the_clock(*of):
        sitting = read(*of)
        assert clock.time_out() == 2
        return sitting

    monkeypatch.setattr(statements, "sitting_of", before_the_clock)
    with pytest.raises(IllegalMove, match="too late") as refused:
        human_moves.play(match_id=match.pk, user=player, data={"turn": "0", "action": "speak", "text": "hello"})
    assert "kept" not in human_moves.explain(refused.value)
    assert {move["origin"] for move in match.moves.values_list("move", flat=True)} == {"timeout"}


# --- away ---


def test_an_absent_person_is_replaced_and_can_come_back(client_of, player, ben, two_people):
    Match.objects.update(deadline_s=90)
    gone_for(two_people, 0, 85)
    gone_for(two_people, 1, 5)
    assert clock.stand_in() == 0
    gone_for(two_people, 0, 95)
    assert clock.stand_in() == 1
    assert clock.stand_in() == 0
    match, seat = fresh(two_people), two_people.seats.get(seat=0)
    assert (seat.kind, seat.user, seat.stand_in) == ("person", player, True)
    assert (match.rated, match.unrated_why) == (False, "a stand-in moved for Ann")
    assert "stand-in" not in client_of(ben).get(f"/play/{match.pk}/").content.decode(), "only people are ever away"
    with pytest.raises(IllegalMove, match="take your seat back"):
        human_moves.play(match_id=match.pk, user=player, data=TALK)
    page = client_of(player).get(f"/play/{match.pk}/").content.decode()
    assert "Take your seat back" in page
    assert "say-button" not in page
    play(match.due.get().pk)
    assert match.moves.get().seat == 0
    services.submit(match_id=match.pk, seat=1, step=1, move=services.fold(match).game.default(1))
    claim = model_seats.claim(due_id=match.due.get().pk)
    client_of(player).post(f"/play/{match.pk}/return/")
    with pytest.raises(IllegalMove, match="another worker"):
        model_seats.answer(answering=model_seats.Answering(claim, move=claim.game.default(0)))
    assert match.moves.count() == 2, "the stand-in's answer counts no more"
    assert not two_people.seats.get(seat=0).stand_in
    human_moves.play(match_id=match.pk, user=player, data={**services_form(match)})
    assert match.moves.count() == 3
    assert not fresh(match).rated, "it stays out of the ratings"
    assert Match.objects.exportable().count() == 0


def services_form(match):
    """The default of the seat that is due, as its form would send it."""
    now = services.fold(match)
    move = now.game.default(0)
    fields = {f"{move.action}.{name}": str(value) for name, value in move.args.items()}
    return {"turn": str(now.turns[0]), "action": move.action, "text": "well", **fields}


@pytest.mark.parametrize("seconds, count", [(55, 0), (65, 1)])
def test_nobody_is_replaced_within_a_minute(two_people, seconds, count):
    Match.objects.update(deadline_s=10)
    gone_for(two_people, 1, seconds)
    assert clock.stand_in() == count


def test_a_person_who_returns_before_the_clock_runs_keeps_the_seat(player, two_people):
    gone_for(two_people, 0, 9999)
    assert hosting.away(limit=9) == [(two_people.pk, 0)]
    hosting.note_presence(match_id=two_people.pk, user=player)
    assert hosting.stand_in(match_id=two_people.pk, number=0) is None
    assert fresh(two_people).rated


def test_pages_moves_and_polls_are_presence(client_of, player, ben, two_people):
    gone_for(two_people, 0, 500)
    client_of(player).get(f"/play/{two_people.pk}/")
    assert services.database_now() - two_people.seats.get(seat=0).seen_at < timedelta(seconds=30)
    gone_for(two_people, 0, 500)
    human_moves.play(match_id=two_people.pk, user=player, data=TALK)
    assert services.database_now() - two_people.seats.get(seat=0).seen_at < timedelta(seconds=30)


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("seed", [0, 1])
def test_a_stand_in_at_night_does_not_reveal_who_acts(player, ben, annotator, seed):
    """Seat 0 is gone; whether it is the one that acts in this night changes nothing that seat 2 sees."""
    places = [tables.Place(user=user) for user in (player, ben, annotator)]
    match = tables.create(host=player, start=tables.Start(vigil.vigil(3, seed=seed)), places=places, consent=True)
    for user in (ben, annotator):
        waiting_room.answer_consent(match=match, user=user, agreed=True)
    waiting_room.fill(match=match)
    gone_for(match, 0, 500)
    assert clock.stand_in() == 1
    state = client_state.read(fresh(match), 2, annotator)
    shown = [(chair.name, chair.acting, chair.starting, chair.seat.stand_in) for chair in state.chairs]
    assert shown == [("Ada", False, False, True), ("Bo", False, False, False), ("Cy", False, False, False)]
    assert state.deadline is None


# --- replaced and sent away ---


def test_the_host_replaces_a_seat(client_of, player, ben, two_people):
    address = f"/play/{two_people.pk}/replace/1/"
    assert client_of(ben).post(address).status_code == 404
    client_of(player).post(address)
    seat = two_people.seats.get(seat=1)
    assert (seat.user, seat.stand_in, fresh(two_people).rated) == (ben, True, False)
    hosting.replace(match=two_people, number=1)
    assert two_people.seats.get(seat=1) == seat, "pressing it again changes nothing, and tells nothing"
    with pytest.raises(BadInput, match="no such seat"):
        hosting.replace(match=two_people, number=7)


def test_a_bot_is_offered_where_none_is_known_to_move(client_of, player, ben, two_people):
    places = [tables.Place(user=player), tables.Place(scripted="scripted")]
    match = tables.create(host=player, start=tables.Start(negotiation()), places=places, consent=True)

    def offered(match):
        return f"/play/{match.pk}/replace/1/" in client_of(player).get(f"/play/{match.pk}/").content.decode()

    assert not offered(match), "its host put a bot there"
    Match.objects.filter(pk=match.pk).update(swapped_from=two_people)
    assert not offered(match), "of a rematch of their own table the host knows as much"
    Match.objects.filter(pk=two_people.pk).update(host=ben)
    assert offered(match), "who only asked for a rematch is not to know which seats are scripted"
    Match.objects.filter(pk=two_people.pk).update(host=player)
    assert offered(two_people)
    hosting.replace(match=two_people, number=1)
    assert not offered(two_people), "it could only be refused"


def test_sending_a_person_away_frees_the_seat_and_excludes_the_game_from_exports(client_of, player, ben, two_people):
    agreed_at = two_people.seats.get(seat=1).consented_at
    client_of(player).post(f"/play/{two_people.pk}/kick/1/")
    seat = two_people.seats.get(seat=1)
    assert (seat.kind, seat.user, seat.consent) == ("scripted", None, False)
    assert seat.consented_at > agreed_at, "the no has its own time, not that of the yes"
    assert client_of(ben).get(f"/play/{two_people.pk}/").status_code == 404
    with pytest.raises(IllegalMove, match="do not sit"):
        human_moves.play(match_id=two_people.pk, user=ben, data=TALK)
    services.submit(match_id=two_people.pk, seat=0, step=0, move=Move(action="talk", text="hm"))
    play(two_people.due.get().pk)
    assert two_people.moves.get(step=1).seat == 1, "a scripted player goes on"
    Match.objects.update(state=Match.State.FINISHED, rated=True)
    assert not Match.objects.exportable().exists()


def test_before_the_game_a_seat_is_only_freed(player, ben):
    places = [tables.Place(user=player), tables.Place()]
    match = tables.create(host=player, start=tables.Start(negotiation()), places=places, consent=True)
    links.claim(token=links.invite(match=match, number=1), user=ben, shown_name="")
    match.seats.filter(seat=1).update(consent=True, consented_at=services.database_now())
    hosting.kick(match=match, number=1)
    assert match.seats.free().count() == 1
    seat = match.seats.get(seat=1)
    assert (seat.kind, seat.user, fresh(match).rated) == (MatchSeat.Kind.OPEN, None, True)
    assert (seat.consent, seat.consented_at) == (None, None), "nothing of the answer stays at an empty seat"
    services.abort(match_id=match.pk, why="x")
    with pytest.raises(BadInput, match="over"):
        hosting.kick(match=match, number=0)


@pytest.mark.django_db(transaction=True)
async def test_a_person_who_is_sent_away_loses_the_socket(monkeypatch, client_of, player, ben, two_people):
    from webapp.asgi import application

    monkeypatch.setattr(consumers.TableConsumer, "REFRESH_EVERY", 0.3)
    sync = database_sync_to_async
    tab = await (await Tab(application, await sync(client_of)(ben), two_people.pk).load()).open()
    await tab.hear()
    await sync(hosting.kick)(match=two_people, number=1)
    await tab.until(lambda: False, wait=5)
    assert tab.closed == 1008


@pytest.mark.django_db(transaction=True)
async def test_an_open_socket_is_presence_and_a_pause_is_announced(monkeypatch, client_of, player, ben, two_people):
    from webapp.asgi import application

    monkeypatch.setattr(consumers.TableConsumer, "REFRESH_EVERY", 0.3)
    monkeypatch.setattr(hosting, "NOTED_EVERY", timedelta(0))
    sync = database_sync_to_async
    tab = await (await Tab(application, await sync(client_of)(ben), two_people.pk).load()).open()
    await tab.hear()
    await sync(gone_for)(two_people, 1, 500)
    await tab.hear(1.0)
    assert await sync(hosting.away)(limit=9) == []
    await sync(hosting.pause)(match=two_people)
    await tab.until(lambda: "Paused by the host" in tab.page.parts["status"])
    await sync(hosting.resume)(match=two_people)
    await tab.until(lambda: "Paused" not in tab.page.parts["status"])
    await tab.leave()


def at_a_blind_table(host, ben):
    """A game in which Ben does not know that the other seat, whose turn comes second, is played by a script."""
    places = [tables.Place(user=ben), tables.Place(scripted="scripted")]
    match = tables.create(host=host, start=tables.Start(negotiation()), places=places)
    waiting_room.answer_consent(match=match, user=ben, agreed=True)
    return match


def test_a_stand_in_of_a_blind_table_is_asked_shortly_before_its_move(player, ben, monkeypatch):
    """A worker that took the seat at once would sleep until then, and outlive its lease."""
    monkeypatch.setattr(pace, "draw", lambda *_: 40.0)
    match = at_a_blind_table(player, ben)
    hosting.replace(match=match, number=0)
    due = match.due.get()
    assert due.not_before - due.hint_at == pace.AHEAD
    assert timedelta(seconds=35) < due.hint_at - services.database_now() <= timedelta(seconds=38)
    assert model_seats.tell_workers() == []
    hosting.pause(match=match)
    hosting.resume(match=match)
    due = match.due.get()
    assert due.not_before - due.hint_at == pace.AHEAD
    assert model_seats.tell_workers() == []


def test_a_stand_in_moves_before_the_deadline_of_the_seat_that_it_takes(player, ben, monkeypatch):
    monkeypatch.setattr(pace, "draw", lambda *_: 40.0)
    match = at_a_blind_table(player, ben)
    DueSeat.objects.update(deadline=services.database_now() + timedelta(seconds=20))
    hosting.replace(match=match, number=0)
    due = match.due.get()
    assert timedelta(seconds=4) < due.deadline - due.not_before < timedelta(seconds=6), "a quarter of the time is left"
