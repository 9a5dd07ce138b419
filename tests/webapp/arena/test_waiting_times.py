"""How long people recently waited for each other, against times that are written down here."""

from datetime import timedelta

import pytest

from tests.webapp.arena.conftest import negotiation
from webapp.arena.models import Match
from webapp.arena.play import services
from webapp.arena.setup import finding, tables, waiting_room, waiting_times
from webapp.arena.setup.waiting_times import WaitingTime

pytestmark = pytest.mark.django_db


@pytest.fixture
def table(player, ben):
    """Makes a game of two people that began and ended `ago`, and a day, after its first person waited for `seconds`."""

    def make(seconds, *, ago=timedelta(hours=1), game="negotiation", **changes):
        places = [tables.Place(user=player), tables.Place(user=ben)]
        match = tables.create(host=player, start=tables.Start(negotiation()), places=places, consent=True)
        waiting_room.answer_consent(match=match, user=ben, agreed=True)
        began = services.database_now() - waiting_times.HIDDEN_FOR - ago
        Match.objects.filter(pk=match.pk).update(**{"started_at": began, "ended_at": began, "game": game} | changes)
        match.seats.filter(user=player).update(consented_at=began - timedelta(seconds=seconds))
        match.seats.filter(user=ben).update(consented_at=began)
        return match

    return make


def test_the_median_is_that_of_each_game(table):
    for number, seconds in enumerate((12, 40, 8, 20)):  # sorted 8, 12, 20, 40: the median is (12 + 20) / 2
        table(seconds, ago=timedelta(hours=1 + number))
    table(300, game="dialogue")
    times = waiting_times.by_game()
    assert times["negotiation"].seconds == pytest.approx((12, 40, 8, 20))
    assert times["negotiation"].median_s == pytest.approx(16)
    assert (times["negotiation"].has_enough, times["dialogue"].has_enough) == (True, False)
    assert times["dialogue"].median_s == pytest.approx(300)
    assert WaitingTime().median_s is None


def test_only_the_newest_tables_count(table, monkeypatch):
    monkeypatch.setattr(waiting_times, "NEWEST", 3)
    for number, seconds in enumerate((10, 20, 30, 4000)):
        table(seconds, ago=timedelta(hours=1 + number))
    assert waiting_times.by_game()["negotiation"].median_s == pytest.approx(20)


def test_old_games_experiments_and_rematches_do_not_count(table):
    first = table(10, ago=waiting_times.RECENT)
    table(20, shown_as="person")
    table(30, swapped_from=first)
    assert waiting_times.by_game() == {}


def test_a_game_whose_players_are_hidden_does_not_count(table):
    """Its waiting time would say that two people play."""
    now = services.database_now()
    table(20, started_at=now - timedelta(minutes=5), ended_at=None, state=Match.State.RUNNING)
    table(20, started_at=now - timedelta(hours=2), ended_at=now - waiting_times.HIDDEN_FOR + timedelta(minutes=1))
    assert waiting_times.by_game() == {}


def test_nobody_waits_for_a_bot(player):
    places = [tables.Place(user=player), tables.Place(scripted="scripted")]
    tables.create(host=player, start=tables.Start(negotiation()), places=places, consent=True)
    assert waiting_times.by_game() == {}


def test_a_consent_that_was_withdrawn_during_the_game_is_no_beginning(table, player):
    match = table(25)
    match.seats.filter(user=player).update(consented_at=services.database_now())
    # since ben's answer, with which it began
    assert waiting_times.by_game()["negotiation"].seconds == pytest.approx((0,))


def test_the_lobby_says_so_and_says_nothing_where_nothing_is_known(table, client_of, player):
    page = client_of(player).get("/play/").content.decode()
    assert "wait" in page
    assert page.count("Nobody has waited") == page.count("Nobody has waited for other people recently.") == 1
    assert "People usually wait" not in page
    table(20)
    page = client_of(player).get("/play/").content.decode()
    assert page.count("People recently waited about 20 s for each other.") == 1
    assert "Nobody has waited for other people recently" not in page
    assert page.count("Nobody has waited recently.") == len(finding.games()) - 1
    table(20)
    table(25)
    assert "People usually wait about 20 s for each other." in client_of(player).get("/play/").content.decode()
