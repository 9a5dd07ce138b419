"""Whose times say how long models take: no guest's at a table that they opened, also once they have an account."""

from datetime import timedelta

import pytest

from tests.webapp.ladder.make import played
from webapp.arena.models import MatchMove
from webapp.arena.play import pace, services

pytestmark = pytest.mark.django_db


def test_times_at_tables_of_guests_do_not_count_after_they_make_an_account(researcher, person):
    guest = person("guest", "guest-a")
    played(researcher, "scripted", returns=(1.0, 0.0), host=researcher, moves=[(0, "seat", [])])
    played(guest, "scripted", returns=(1.0, 0.0), host=guest, moves=[(0, "seat", [])])
    MatchMove.objects.filter(match__host=researcher).update(took_s=4.0)
    MatchMove.objects.filter(match__host=guest).update(took_s=99.0)
    assert pace.times_of_people("negotiation") == [4.0]
    guest.role, guest.member_since = "player", services.database_now() + timedelta(seconds=1)
    guest.save()
    assert pace.times_of_people("negotiation") == [4.0]
    guest.member_since -= timedelta(minutes=5)
    guest.save()
    assert pace.times_of_people("negotiation") == [99.0, 4.0], "the table was a member's"
