"""Play now: a table that waits, else a model that is ready, else a scripted player."""

from datetime import timedelta

import pytest
from django.urls import reverse

from tests.webapp.arena.conftest import negotiation
from webapp.arena import clock
from webapp.arena.models import Match, MatchSeat
from webapp.arena.play import services
from webapp.arena.setup import finding, tables, waiting_room
from webapp.runs.models import Checkpoint
from webapp.serving.models import Deployment

pytestmark = pytest.mark.django_db


def play(client, game):
    """Press Play now, and answer the question about consent where it comes first."""
    address = reverse("arena:play-now", args=[game])
    answer = client.post(address)
    return client.post(address, {"consent": "no"}) if answer.status_code == 200 else answer


@pytest.mark.parametrize("game", [spec.name for spec in finding.games()])
def test_every_game_for_several_begins_after_one_answer(client_of, player, game):
    client = client_of(player)
    answer = play(client, game)
    match = Match.objects.get()
    assert answer.url == reverse("arena:table", args=[match.pk])
    if match.countdown_ends_at is None:
        assert client.get(answer.url).url == reverse("arena:consent", args=[match.pk])
        client.post(reverse("arena:consent", args=[match.pk]), {"consent": "no"})
    else:
        client.post(reverse("arena:fill", args=[match.pk]))
        match.refresh_from_db()
        assert match.countdown_ends_at <= services.database_now() + waiting_room.LAST_SEATS
        Match.objects.update(countdown_ends_at=services.database_now())
        assert clock.finish_countdowns() == 1
    match.refresh_from_db()
    assert (match.state, match.game) == (Match.State.RUNNING, game)
    kinds = sorted(match.seats.values_list("kind", flat=True))
    assert kinds == ["person", *["scripted"] * (match.seats.count() - 1)]


def waiting(host, number=1):
    places = [tables.Place(user=host), tables.Place()]
    match = tables.create(host=host, start=tables.Start(negotiation(number)), places=places, consent=True)
    match.seats.filter(user=host).update(seen_at=services.database_now())
    return match


def test_a_person_who_waits_comes_first(client_of, player, ben):
    first, second = waiting(ben), waiting(ben, 2)
    assert f"{ben.shown_name} is waiting at a table" in client_of(player).get("/play/").content.decode()
    assert play(client_of(player), "negotiation").url == reverse("arena:table", args=[first.pk])
    assert first.seats.get(seat=1).user == player
    assert second.seats.get(seat=1).user is None


def test_a_host_who_has_gone_is_not_waiting(client_of, player, ben):
    match = waiting(ben)
    match.seats.filter(user=ben).update(seen_at=services.database_now() - 2 * finding.WAITS_WITHIN)
    play(client_of(player), "negotiation")
    assert match.seats.get(seat=1).user is None
    assert Match.objects.count() == 2


def test_ones_own_table_is_no_company(client_of, ben):
    match = waiting(ben)
    play(client_of(ben), "negotiation")
    assert match.seats.get(seat=1).user is None


def test_a_model_that_is_open_and_ready_plays(client_of, player, researcher):
    checkpoint = Checkpoint.objects.create(name="haggler", kind="base", base="x", path="/nowhere", open_to_players=True)
    model = Deployment.objects.create(checkpoint=checkpoint)
    for state in Deployment.State.values:
        Deployment.objects.update(state=state)
        text = f"against {model}" if state == Deployment.State.READY else "against a scripted player"
        assert text in client_of(player).get("/play/").content.decode(), state
    Deployment.objects.update(state=Deployment.State.READY)
    play(client_of(player), "kuhn_poker")
    assert Match.objects.get().seats.get(seat=1).deployment == model
    Checkpoint.objects.update(open_to_players=False)
    assert "haggler" not in client_of(player).get("/play/").content.decode()


def test_at_larger_tables_seats_and_names_are_drawn(client_of, player):
    play(client_of(player), "werewolf")
    play(client_of(player), "tic_tac_toe")
    assert dict(Match.objects.values_list("game", "shuffled")) == {"werewolf": True, "tic_tac_toe": False}


def test_what_cannot_be_played_now_is_refused(client_of, player, monkeypatch):
    assert play(client_of(player), "shop").status_code == 404
    assert play(client_of(player), "chess").status_code == 404
    monkeypatch.setattr("webapp.core.quotas.check", refuse)
    answer = client_of(player).post(reverse("arena:play-now", args=["kuhn_poker"]), follow=True)
    assert "You are not seated: enough tables." in answer.content.decode()
    assert (Match.objects.count(), MatchSeat.objects.count()) == (0, 0)


def refuse(**_):
    from training.errors import BadInput

    raise BadInput("enough tables")


def test_the_seat_that_somebody_else_took_is_not_taken_again(player, ben, annotator):
    match = waiting(ben)
    waiting_room.take_seat(match=match, user=annotator)
    waiting_room.answer_consent(match=match, user=annotator, agreed=True)
    seating = finding.play_now(user=player, game="negotiation")
    assert seating.pk != match.pk
    assert timedelta(0) < finding.WAITS_WITHIN
