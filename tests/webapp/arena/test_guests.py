"""Guests who never came back: who is removed by the clock, and whose games stay whole."""

from datetime import timedelta

import pytest

from tests.webapp.arena.conftest import negotiation
from tests.webapp.experiments import making
from training.games.base import FORFEIT
from webapp.accounts.models import User
from webapp.accounts.services import create_guest
from webapp.arena import clock, guests
from webapp.arena.models import Match
from webapp.arena.play import services
from webapp.arena.setup import finding, tables, waiting_room
from webapp.experiments.models import Experiment, Participant

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def first_pass(monkeypatch):
    """The passes of other tests are over."""
    monkeypatch.setattr(clock, "GUESTS", guests.Removal())


@pytest.fixture
def later(monkeypatch):
    """Sets the database's clock to so long after now."""
    real = services.database_now

    def pass_time(period):
        monkeypatch.setattr(services, "database_now", lambda: real() + period)

    return pass_time


def names():
    return set(User.objects.filter(role="guest").values_list("first_name", flat=True))


def test_a_guest_without_a_game_goes_after_a_month_and_not_before(later, player):
    create_guest(shown_name="Zoe")
    later(guests.INACTIVE_AFTER - timedelta(minutes=1))
    assert clock.remove_guests() == 0
    later(guests.INACTIVE_AFTER + timedelta(minutes=1))
    assert clock.remove_guests() == 1
    assert list(User.objects.all()) == [player]
    assert clock.remove_guests() == 0


def test_tables_that_a_guest_opened_and_left_go_with_them(later):
    guest = create_guest(shown_name="Zoe")
    match = finding.play_now(user=guest, game="kuhn_poker")
    waiting_room.leave(match=match, user=guest)
    finding.play_now(user=guest, game="tic_tac_toe")
    later(guests.INACTIVE_AFTER + timedelta(days=1))
    assert clock.remove_guests() == 1
    assert (names(), Match.objects.count()) == (set(), 0)


def test_who_has_played_stays_with_the_game(later):
    guest = create_guest(shown_name="Zoe")
    match = finding.play_now(user=guest, game="tic_tac_toe")
    waiting_room.answer_consent(match=match, user=guest, agreed=True)
    services.submit(match_id=match.pk, seat=match.due.get().seat, step=0, move=FORFEIT)
    later(guests.INACTIVE_AFTER + timedelta(days=1))
    assert clock.remove_guests() == 0
    assert Match.objects.get().seats.get(user=guest).user == guest


@pytest.mark.parametrize("state", ["open", "running", "aborted", "finished"])
def test_the_games_of_others_stay_whole(later, player, state):
    guest = create_guest(shown_name="Zoe")
    places = [tables.Place(user=player), tables.Place(user=guest)]
    match = tables.create(host=player, start=tables.Start(negotiation()), places=places, consent=True)
    Match.objects.update(state=state)
    later(guests.INACTIVE_AFTER + timedelta(days=1))
    assert clock.remove_guests() == 0
    assert match.seats.filter(user=guest).exists()


def test_who_came_back_stays(later):
    guest = create_guest(shown_name="Zoe")
    User.objects.filter(pk=guest.pk).update(last_login=services.database_now() + timedelta(days=2))
    later(guests.INACTIVE_AFTER + timedelta(days=1))
    assert clock.remove_guests() == 0


def test_participants_and_accounts_stay(later, researcher, player):
    experiment = making.opened(researcher)
    guest = create_guest(shown_name="Participant")
    Participant.objects.create(experiment=experiment, user=guest)
    later(guests.INACTIVE_AFTER + timedelta(days=400))
    assert clock.remove_guests() == 0
    assert User.objects.filter(pk__in=[guest.pk, player.pk, researcher.pk]).count() == 3


def test_one_tick_removes_a_bounded_number(later, monkeypatch):
    monkeypatch.setattr(clock, "MOST", 2)
    for number in range(3):
        create_guest(shown_name=f"Zoe {number}")
    later(guests.INACTIVE_AFTER + timedelta(days=1))
    assert clock.remove_guests() == 2
    assert names() == {"Zoe 2"}


def test_guests_who_cannot_be_removed_do_not_hold_up_the_others(later, monkeypatch):
    monkeypatch.setattr(clock, "MOST", 2)
    for number in range(2):
        making.experiment(create_guest(shown_name=f"Owner {number}"))  # a row that protects its owner
    create_guest(shown_name="Zoe")
    later(guests.INACTIVE_AFTER + timedelta(days=1))
    assert [clock.remove_guests() for _ in range(2)] == [0, 1]
    assert names() == {"Owner 0", "Owner 1"}
    Experiment.objects.all().delete()
    assert clock.remove_guests() == 2, "the next pass tries them again"
