"""Reads and renders in the thread that commits a move: for the right viewer, in order, without harm to the move."""

import asyncio
import gc
import math
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from channels.db import database_sync_to_async
from django.db import InterfaceError, connection, transaction

from tests.trust.seated import seated, viewer_named
from tests.webapp.arena import vigil
from tests.webapp.arena.browser import Tab
from training.errors import BadInput
from training.records import SPECTATOR, Move
from webapp.arena import hints
from webapp.arena.live import client_state, updates
from webapp.arena.live.feed import AccessLost, ClientVersions, MatchFeed
from webapp.arena.play import hosting, services

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("registered")]
registered = vigil.registered


class Layer:
    """A channel layer that lists what it is given, and answers nothing."""

    def __init__(self):
        self.here, self.elsewhere, self.sent = [], [], threading.Event()

    def send_local(self, group, message):
        self.here.append(message)

    async def group_send(self, group, message):
        self.elsewhere.append(message)
        self.sent.set()


@pytest.fixture
def layer(monkeypatch):
    layer = Layer()
    asyncio.run_coroutine_threadsafe(asyncio.sleep(0), hints._loop()).result(5)  # hints of earlier changes are sent
    monkeypatch.setattr(hints, "get_channel_layer", lambda: layer)
    return layer


def talk(match, step, text="The food is what I need."):
    return services.submit(match_id=match.pk, seat=step % 2, step=step, move=Move(action="talk", text=text))


def opened(match, *viewers):
    """The feeds of viewers who have read the match, as those of open sockets."""
    feeds = [MatchFeed.of(match.pk, viewer) for viewer in viewers]
    for feed in feeds:
        feed.see()
    return feeds


@pytest.mark.parametrize("error", [BadInput("it cannot be replayed"), KeyError("a bug"), InterfaceError("closed")])
def test_a_viewer_whose_page_cannot_be_made_costs_nobody_else_a_hint(two_people, layer, monkeypatch, error):
    real = client_state.build

    def build(facts, viewer, state):
        if viewer == 1:
            raise error
        return real(facts, viewer, state)

    feeds = opened(two_people, 0, 1, SPECTATOR)
    monkeypatch.setattr(client_state, "build", build)
    assert talk(two_people, 0).pk is not None
    assert services.fold(two_people).moves == 1
    times = {message["viewers"]: message["read_at"] for message in layer.here}
    assert list(times) == [(1,), (SPECTATOR,), (0,)]
    assert [time == math.inf for time in times.values()] == [True, False, False]
    assert layer.sent.wait(5), "other processes are told, too"
    assert len(feeds[0].see().rows) == len(feeds[2].see().rows) == two_people.rows.filter(viewer=0).count()
    monkeypatch.undo()
    assert len(feeds[1].see().rows) == two_people.rows.filter(viewer=1).count(), "the next read is whole again"


def test_a_read_that_hangs_in_another_thread_holds_up_no_move(two_people, layer):
    feeds = opened(two_people, 0, 1)
    with feeds[1]._reading, ThreadPoolExecutor() as pool:

        def move():
            try:
                return talk(two_people, 0)
            finally:
                connection.close()

        assert pool.submit(move).result(timeout=20).step == 0
    assert [(message["viewers"], message["read_at"] == math.inf) for message in layer.here] == [
        ((1,), True),
        ((0,), False),
    ]


def test_a_database_that_fails_after_the_commit_costs_neither_the_move_nor_the_connection(
    two_people, layer, monkeypatch
):
    def read(*_):
        connection.cursor().execute("SELECT no_such_column")

    feeds = opened(two_people, 0, 1)
    with monkeypatch.context() as failing:
        failing.setattr(updates, "read", read)
        talk(two_people, 0)
    assert [message["read_at"] for message in layer.here] == [math.inf] * 2
    talk(two_people, 1)  # the same connection
    assert [len(feed.see().rows) for feed in feeds] == [two_people.rows.filter(viewer=0).count()] * 2


def test_a_move_that_is_taken_back_is_neither_read_nor_told(two_people, layer, monkeypatch):
    feeds = opened(two_people, 0, 1)
    before = [feed.see().stamp for feed in feeds]
    with transaction.atomic():
        talk(two_people, 0)
        transaction.set_rollback(True)
    assert (layer.here, layer.elsewhere) == ([], [])
    assert [feed.see().stamp for feed in feeds] == before


def test_every_frame_is_the_viewers_own_and_what_a_fresh_read_gives(layer, monkeypatch):
    """Three who see different things of one night, and one who watches; moves of all at once, from as many threads."""
    match, people = seated(vigil.vigil(3))
    now = services.database_now()
    monkeypatch.setattr(services, "database_now", lambda: now)
    viewers = (0, 1, 2, SPECTATOR)
    feeds = dict(zip(viewers, opened(match, *viewers), strict=True))
    names = match.scenario["seats"]
    services.submit(match_id=match.pk, seat=0, step=0, move=Move(action="name", args={"who": names[1]}))

    def press(seat):
        try:
            services.submit(match_id=match.pk, seat=seat, step=1, move=Move(action="answer", args={"lamp": "A"}))
        finally:
            connection.close()

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(press, range(3)))
    for viewer, feed in feeds.items():
        user = viewer_named(viewer, people)
        seen = feed.see()
        shown, _ = seen.frame_for(user, ClientVersions(0))
        assert shown == MatchFeed(match.pk, viewer).see().frame_for(user, ClientVersions(0))[0]
        assert ("You are the watcher." in shown) == (viewer == 0)
        numbers = [row.number for row in seen.rows]
        assert numbers == list(range(1, match.rows.filter(viewer=viewer).count() + 1))
    times = {}
    for message in layer.here:
        (viewer,) = message["viewers"]
        assert message["read_at"] >= times.get(viewer, 0.0), "no hint names an earlier read than the last"
        if message["read_at"] < math.inf:
            times[viewer] = message["read_at"]


def test_who_is_sent_away_between_the_move_and_the_frame_gets_none(two_people, ben, layer):
    (feed,) = opened(two_people, 1)
    hosting.kick(match=two_people, number=1)
    assert layer.here[0]["read_at"] < math.inf
    with pytest.raises(AccessLost):
        feed._snapshot.frame_for(ben, ClientVersions(0))


async def test_feeds_go_with_their_sockets(two_people, player, ben, client_of):
    from webapp.asgi import application

    for _ in range(3):
        tabs = []
        for user in (player, ben):
            client = await database_sync_to_async(client_of)(user)
            tabs.append(await (await Tab(application, client, two_people.pk).load()).open())
        await tabs[0].hear(0.2)
        assert MatchFeed.open_at(two_people.pk, 0) is not None
        for tab in tabs:
            await tab.leave()
    tabs.clear()

    def feeds():
        gc.collect()
        return [key for key in MatchFeed._feeds.keys() if key[0] == two_people.pk]  # noqa: SIM118  (it has weak values)

    for _ in range(20):
        if not feeds():
            break
        await asyncio.sleep(0.1)
    assert feeds() == []
