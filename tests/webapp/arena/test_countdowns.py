"""Countdowns: when they begin and end, who plays then, what everybody sees of them, and who may stop them."""

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from tests.webapp.arena import vigil
from tests.webapp.arena.conftest import negotiation
from training.errors import BadInput
from webapp.arena import clock
from webapp.arena.models import Match, MatchSeat
from webapp.arena.play import services
from webapp.arena.setup import countdowns, finding, links, tables, waiting_room
from webapp.runs.models import Checkpoint
from webapp.serving.models import Deployment, RemoteModel

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("registered")]
registered = vigil.registered


class Time:
    """The database's clock, moved by a test."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def passes(self, seconds: float) -> None:
        self.ahead += timedelta(seconds=seconds)


@pytest.fixture
def time(monkeypatch):
    moved, real = Time(), services.database_now
    monkeypatch.setattr(services, "database_now", lambda: real() + moved.ahead)
    return moved


def table(host, *, seats=3, seconds=30, model=None, consent=True, shuffled=True):
    scenario = vigil.vigil(seats) if seats > 2 else negotiation()
    places = [tables.Place(user=host), *[tables.Place()] * (seats - 1)]
    return tables.create(
        host=host,
        start=tables.Start(scenario, countdown=tables.Countdown(seconds, model)),
        places=places,
        consent=consent,
        shuffled=shuffled and seats > 2,
    )


def kinds(match):
    return sorted(match.seats.values_list("kind", flat=True))


def state(match):
    return Match.objects.get(pk=match.pk).state


@pytest.mark.parametrize("full", [False, True])
def test_neither_ready_nor_a_link_says_whether_seats_are_empty(player, ben, annotator, full):
    match = table(player)
    for user in (ben, annotator) if full else (ben,):
        waiting_room.take_seat(match=match, user=user, consent=True)
    with pytest.raises(BadInput, match="when its countdown ends"):
        waiting_room.say_ready(match=match, user=ben)
    with pytest.raises(BadInput, match="send the link to the table"):
        links.invite(match=match, number=2)


def test_the_game_begins_at_the_end_and_not_before(player, time):
    match = table(player)
    assert match.countdown_ends_at - services.database_now() <= timedelta(seconds=30)
    time.passes(29)
    assert clock.finish_countdowns() == 0
    assert state(match) == Match.State.OPEN
    time.passes(1.1)
    assert clock.finish_countdowns() == 1
    assert state(match) == Match.State.RUNNING
    assert kinds(match) == ["person", "scripted", "scripted"]
    assert clock.finish_countdowns() == 0


def test_a_table_full_of_people_begins_at_the_same_moment(player, ben, annotator, time):
    """Whoever waits could otherwise tell that nobody is a bot."""
    match = table(player)
    for user in (ben, annotator):
        waiting_room.take_seat(match=match, user=user, consent=True)
    assert state(match) == Match.State.OPEN
    assert not waiting_room.needs_ready(list(match.seats.select_related("match")))
    time.passes(30.1)
    assert clock.finish_countdowns() == 1
    assert (state(match), kinds(match)) == (Match.State.RUNNING, ["person"] * 3)


def test_a_table_for_two_begins_as_soon_as_both_have_answered(player, ben, time):
    match = table(player, seats=2)
    waiting_room.take_seat(match=match, user=ben, consent=True)
    assert state(match) == Match.State.RUNNING
    time.passes(60)
    assert clock.finish_countdowns() == 0


def test_it_begins_with_the_first_answer(player, time):
    match = table(player, consent=None)
    assert match.countdown_ends_at is None
    time.passes(100)
    assert clock.finish_countdowns() == 0
    waiting_room.answer_consent(match=match, user=player, agreed=False)
    match.refresh_from_db()
    assert timedelta(seconds=29) < match.countdown_ends_at - services.database_now() <= timedelta(seconds=30)


def test_nobody_plays_without_an_answer(player, ben, client_of, time):
    match = table(player)
    waiting_room.take_seat(match=match, user=ben)
    time.passes(30.1)
    clock.finish_countdowns()
    assert not match.seats.filter(user=ben).exists()
    assert kinds(match) == ["person", "scripted", "scripted"]
    assert client_of(ben).get(f"/play/{match.pk}/").status_code == 404


def test_the_last_seconds_are_for_those_who_have_answered(player, ben, annotator, time):
    match = table(player)
    time.passes(21)
    with pytest.raises(BadInput, match="the game begins in a moment"):
        waiting_room.take_seat(match=match, user=ben)
    waiting_room.take_seat(match=match, user=annotator, consent=True)
    assert match.seats.filter(user=annotator, consent=True).exists()


def test_a_table_that_everybody_left_waits_again(player, ben, time):
    match = table(player)
    waiting_room.leave(match=match, user=player)
    time.passes(31)
    assert clock.finish_countdowns() == 1
    assert (state(match), Match.objects.get().countdown_ends_at, kinds(match)) == (Match.State.OPEN, None, ["open"] * 3)
    waiting_room.take_seat(match=match, user=ben, consent=True)
    assert Match.objects.get().countdown_ends_at is not None


def test_a_reserved_seat_that_nobody_claimed_is_filled_and_its_link_is_gone(player, time):
    match = table(player, shuffled=False)
    token = links.invite(match=match, number=2)
    time.passes(31)
    clock.finish_countdowns()
    assert kinds(match) == ["person", "scripted", "scripted"]
    assert links.find_link(token) is None


def base_model(state=Deployment.State.COLD):
    name = f"x{Checkpoint.objects.count()}"
    checkpoint = Checkpoint.objects.create(name=name, kind="base", base=name, path="/nowhere", open_to_players=True)
    return Deployment.objects.create(checkpoint=checkpoint, state=state)


@pytest.mark.parametrize("full", [False, True])
def test_a_table_waits_for_its_model_whether_or_not_it_sits_there(player, ben, annotator, client_of, time, full):
    """Else the moment at which the game begins would say that nobody is a bot."""
    model = base_model()
    match = table(player, model=model)
    model.refresh_from_db()
    assert model.requested_at is not None, "it starts during the countdown"
    for user in (ben, annotator) if full else (ben,):
        waiting_room.take_seat(match=match, user=user, consent=True)
    for state_of_model in (Deployment.State.COLD, Deployment.State.STARTING):
        Deployment.objects.update(state=state_of_model)
        time.passes(31)
        assert clock.finish_countdowns() + clock.begin_with_models() == 0
        assert state(match) == Match.State.OPEN
        assert "Start in 10 seconds" in client_of(player).get(f"/play/{match.pk}/").content.decode()
    client_of(player).post(f"/play/{match.pk}/fill/")
    assert state(match) == Match.State.OPEN, "nor does its host learn it by starting early"
    Deployment.objects.update(state=Deployment.State.READY)
    assert clock.finish_countdowns() == 1
    bots = [] if full else ["model"]
    assert (state(match), kinds(match)) == (Match.State.RUNNING, sorted([*bots, *["person"] * (3 - len(bots))]))


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("state_of_model, seconds", [("failed", 31), ("starting", 31 + 180)])
def test_a_model_that_does_not_start_holds_up_no_table(player, ben, annotator, time, full, state_of_model, seconds):
    match = table(player, model=base_model())
    for user in (ben, annotator) if full else (ben,):
        waiting_room.take_seat(match=match, user=user, consent=True)
    Deployment.objects.update(state=state_of_model)
    time.passes(seconds)
    assert clock.finish_countdowns() == 1
    assert (state(match), "scripted" in kinds(match)) == (Match.State.RUNNING, not full)


def test_tables_that_wait_for_their_model_hold_up_no_others(player, ben, annotator, time):
    waiting = table(player, model=base_model())
    waiting_room.take_seat(match=waiting, user=annotator, consent=True)  # the players are hidden from somebody
    time.passes(1)
    remote = Deployment.objects.create(
        remote=RemoteModel.objects.create(name="r", address="https://r.example/v1", model="m", added_by=player)
    )
    others = [table(ben), table(ben, model=remote), table(ben, model=base_model(Deployment.State.READY))]
    time.passes(31)
    assert countdowns.ended(limit=9) == [*(match.pk for match in others), waiting.pk]
    time.passes(180)
    assert countdowns.ended(limit=1) == [waiting.pk], "it begins without its model"


def test_to_press_start_again_does_not_prolong_the_wait_for_a_model(player, annotator, time):
    match = table(player, model=base_model())
    waiting_room.take_seat(match=match, user=annotator, consent=True)
    countdowns.end_early(match=match)
    ends_at = Match.objects.get().countdown_ends_at
    time.passes(180)
    countdowns.end_early(match=match)
    assert Match.objects.get().countdown_ends_at == ends_at
    time.passes(11)
    assert clock.finish_countdowns() == 1
    assert state(match) == Match.State.RUNNING


def test_the_models_of_a_table_are_locked_in_one_statement(player, annotator, time, settings):
    """Two tables that each lock the other's models first would deadlock."""
    settings.SERVE_SLOTS = 2
    seated, fills = base_model(Deployment.State.READY), base_model(Deployment.State.READY)
    match = tables.create(
        host=player,
        start=tables.Start(vigil.vigil(4), countdown=tables.Countdown(30, fills)),
        places=[tables.Place(user=player), tables.Place(deployment=seated), tables.Place(), tables.Place()],
        consent=True,
        shuffled=True,
    )
    waiting_room.take_seat(match=match, user=annotator, consent=True)
    time.passes(31)
    with CaptureQueriesContext(connection) as queries:
        assert clock.finish_countdowns() == 1
    assert sorted(match.seats.exclude(deployment=None).values_list("deployment", flat=True)) == [seated.pk, fills.pk]
    statements = [each["sql"] or "" for each in queries]  # those of a pipeline are not recorded
    locks = [each for each in statements if 'FROM "serving_deployment"' in each and "FOR UPDATE" in each]
    named = re.search(r'"id" IN \(([\d, ]+)\)', locks[0]).group(1)
    assert {int(key) for key in named.split(",")} == {seated.pk, fills.pk}


def test_a_model_at_an_empty_seat_has_the_name_by_which_it_was_chosen(player, time):
    model = base_model(Deployment.State.READY)
    model.checkpoint.chosen_as = "best"
    seated = [tables.Place(user=player), tables.Place(deployment=model), tables.Place()]
    start = tables.Start(vigil.vigil(3), countdown=tables.Countdown(30, model))
    match = tables.create(host=player, start=start, places=seated, consent=True, shuffled=True)
    time.passes(31)
    assert clock.finish_countdowns() == 1
    first, second = match.seats.filter(kind="model").order_by("seat")
    assert first.who == second.who
    assert first.who.endswith("(as best)")


def test_a_model_that_is_gone_is_replaced_by_a_scripted_player(player, time):
    checkpoint = Checkpoint.objects.create(name="x", kind="base", base="x", path="/nowhere", open_to_players=True)
    match = table(player, model=Deployment.objects.create(checkpoint=checkpoint))
    Deployment.objects.all().delete()
    time.passes(31)
    assert clock.finish_countdowns() == 1
    assert kinds(match) == ["person", "scripted", "scripted"]


def test_two_clocks_begin_it_once(player, time):
    match = table(player)
    time.passes(31)
    assert countdowns.ended(limit=9) == [match.pk]
    assert countdowns.finish(match_id=match.pk) is not None
    assert countdowns.finish(match_id=match.pk) is None


def test_the_host_stops_it_and_people_press_ready(player, ben, annotator, client_of, time):
    match = table(player)
    assert client_of(ben).post(f"/play/{match.pk}/stop-countdown/").status_code == 404
    client_of(player).post(f"/play/{match.pk}/stop-countdown/")
    assert Match.objects.get().countdown_ends_at is None
    time.passes(60)
    assert clock.finish_countdowns() == 0
    for user in (ben, annotator):
        waiting_room.take_seat(match=match, user=user, consent=True)
    assert state(match) == Match.State.OPEN
    for user in (player, ben, annotator):
        waiting_room.say_ready(match=match, user=user)
    assert state(match) == Match.State.RUNNING
    answer = client_of(player).post(f"/play/{match.pk}/stop-countdown/", follow=True)
    assert 'role="alert"' in answer.content.decode()


def test_a_host_who_chose_the_players_cuts_it_short(player, ben, client_of):
    match = table(player, shuffled=False)
    waiting_room.take_seat(match=match, user=ben)
    client_of(player).post(f"/play/{match.pk}/fill/")
    assert state(match) == Match.State.OPEN, "somebody reads about consent"
    waiting_room.answer_consent(match=match, user=ben, agreed=True)
    client_of(player).post(f"/play/{match.pk}/fill/")
    assert (state(match), kinds(match)) == (Match.State.RUNNING, ["person", "person", "scripted"])


@pytest.mark.parametrize("seconds", [9, 3601])
def test_its_length_is_bounded(player, seconds):
    with pytest.raises(BadInput, match="between 10 and 3600 seconds"):
        table(player, seconds=seconds)
    assert not Match.objects.exists()


def test_a_table_without_an_empty_seat_has_none(player):
    places = [tables.Place(user=player), tables.Place(scripted="scripted")]
    match = tables.create(
        host=player, start=tables.Start(negotiation(), countdown=tables.Countdown(30)), places=places, consent=True
    )
    assert (match.countdown_s, match.countdown_ends_at, state(match)) == (None, None, Match.State.RUNNING)


# --- what is seen ---


def seats_of_page(client, match):
    page = client.get(f"/play/{match.pk}/").content.decode()
    return page.split('<ul class="chairs" aria-label="Seats">')[1].split("</ul>")[0]


def test_everybody_who_waits_sees_the_same_ring(player, ben, annotator, client_of):
    match = table(player)
    waiting_room.take_seat(match=match, user=ben, consent=True)
    until = f'data-until="{int(match.countdown_ends_at.timestamp())}" data-of="30"'
    for user in (player, ben, annotator):
        assert until in client_of(user).get(f"/play/{match.pk}/").content.decode()
    assert "Stop the countdown" in client_of(player).get(f"/play/{match.pk}/").content.decode()
    assert "Stop the countdown" not in client_of(ben).get(f"/play/{match.pk}/").content.decode()


def test_nobody_who_sits_sees_how_many_seats_a_bot_will_take(player, ben, client_of):
    """Not even the host, who did not choose the players: neither at the table nor in the lobby."""
    match = table(player)
    before = seats_of_page(client_of(player), match), marks(client_of(player))
    waiting_room.take_seat(match=match, user=ben, consent=True)
    assert (seats_of_page(client_of(player), match), marks(client_of(player))) == before
    assert "empty" not in before[0]
    page = client_of(player).get(f"/play/{match.pk}/").content.decode()
    assert "Guest link" not in page


def marks(client):
    return re.findall(r'class="mark mark-(\w+)', client.get("/play/").content.decode().split("Your matches")[1])


def test_a_form_offers_it(player, client_of):
    data = {"game": "werewolf", "scenario": "sample", "deadline_s": "60", "visibility": "private", "consent": "yes"}
    data |= {"seat_0": "me", **{f"seat_{n}": "open" for n in range(1, 6)}, "shuffled": "on"}
    answer = client_of(player).post("/play/new/", data | {"countdown_s": "120", "fill_with": ""})
    match = Match.objects.get()
    assert answer.url == f"/play/{match.pk}/"
    assert match.countdown_s == 120
    assert match.countdown_ends_at is not None
    refused = client_of(player).post("/play/new/", data | {"countdown_s": "7"})
    assert (refused.status_code, Match.objects.count()) == (400, 1)


# --- play now ---


def test_play_now_seats_people_together_and_bots_at_the_rest(player, ben, client_of, time):
    address = reverse("arena:play-now", args=["werewolf"])
    asked = client_of(player).post(address)
    assert (asked.status_code, Match.objects.count()) == (200, 0), "first the question about consent"
    assert 'name="consent" value="yes"' in asked.content.decode()
    client_of(player).post(address, {"consent": "yes"})
    match = Match.objects.get()
    assert match.countdown_ends_at is not None
    client_of(player).get(f"/play/{match.pk}/")  # is there
    client_of(ben).post(address, {"consent": "no"})
    assert list(match.seats.exclude(user=None).order_by("seat").values_list("user", "consent")) == [
        (player.pk, True),
        (ben.pk, False),
    ]
    time.passes(finding.COUNTDOWN_S + 0.1)
    assert clock.finish_countdowns() == 1
    assert kinds(match) == ["person"] * 2 + ["scripted"] * 4


def test_a_guest_plays_alone_at_once(client_of):
    client = client_of(None)
    client.post(reverse("arena:play-now", args=["werewolf"]))
    match = Match.objects.get()
    assert (match.countdown_s, match.seats.filter(kind=MatchSeat.Kind.OPEN).count()) == (None, 0)


# --- more models than the site serves at once ---


@pytest.mark.parametrize("slots, refused", [(1, True), (2, False)])
def test_a_table_that_would_wait_for_ever_for_its_models_is_refused(player, ben, settings, slots, refused):
    """It would keep the model that has started, and no other table could have its slot."""
    settings.SERVE_SLOTS = slots
    first, second = base_model(), base_model()
    me, one, two, free = (
        tables.Place(user=player),
        *(tables.Place(deployment=m) for m in (first, second)),
        tables.Place(),
    )
    for places, more in [
        ([me, one, two], {"visibility": "public"}),
        ([me, one, two], {"shuffled": True}),
        ([me, one, two, tables.Place(user=ben)], {}),
        ([me, one, two, free], {}),
        ([me, one, free], {"countdown": second}),
    ]:
        countdown = tables.Countdown(30, more["countdown"]) if "countdown" in more else None
        start = tables.Start(vigil.vigil(len(places)), countdown=countdown)
        options = {name: value for name, value in more.items() if name != "countdown"}
        if refused:
            with pytest.raises(BadInput, match="serves 1 at once of the 2 models"):
                tables.create(host=player, start=start, places=places, consent=True, **options)
        else:
            tables.create(host=player, start=start, places=places, consent=True, **options)
    alike = [me, one, one]
    tables.create(host=player, start=tables.Start(vigil.vigil(3)), places=alike, consent=True, visibility="public")
    match = tables.create(host=player, start=tables.Start(vigil.vigil(3)), places=[me, one, two], consent=True)
    assert state(match) == Match.State.RUNNING, "whoever knows the players waits for one model after the other"
