"""How many queries a list of matches takes must not depend on how many there are."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from tests.webapp.arena.conftest import negotiation
from tests.webapp.judgments.make import finished_match
from webapp.arena.setup import tables, waiting_room

pytestmark = pytest.mark.django_db
MOST = 23
"""Of the lobby; eight of them ask whether any queue names the reader."""


def more(host, partner, count):
    """So many more matches of every kind that a list shows: waiting for somebody, running, finished."""
    for number in range(count):
        open_seat = [tables.Place(user=host), tables.Place()]
        tables.create(host=host, start=tables.Start(negotiation(number)), places=open_seat, consent=True)
        both = [tables.Place(user=host), tables.Place(user=partner)]
        match = tables.create(host=host, start=tables.Start(negotiation(number)), places=both, consent=True)
        waiting_room.answer_consent(match=match, user=partner, agreed=True)
        finished_match(host, partner)


@pytest.mark.parametrize("name", ["lobby", "matches"])
def test_a_list_takes_the_same_queries_however_long_it_is(client_of, researcher, player, ben, name):
    clients = [client_of(who) for who in (researcher, player)]
    counts = []
    for count in (1, 5):
        more(player, ben, count)
        counts.append([])
        for client in clients:
            with CaptureQueriesContext(connection) as captured:
                assert client.get(reverse(f"arena:{name}")).status_code == 200
            counts[-1].append(len(captured))
    assert counts[0] == counts[1]
    assert max(counts[0]) <= MOST
