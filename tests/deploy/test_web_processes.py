"""Several web processes behind a proxy: who sits at which does not matter, and each may be restarted during a game.

The tabs are those of a browser without the browser: what htmx's socket does on a close is done here, too.
"""

import asyncio
import itertools
import json
import re
import signal

import pytest
import websockets
from channels.db import database_sync_to_async

from tests.deploy.conftest import HOST, Client
from tests.webapp.arena.browser import Page
from tests.webapp.arena.conftest import negotiation
from webapp.arena.models import DueSeat, Match, MatchMove
from webapp.arena.setup import tables, waiting_room

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.process, pytest.mark.slow]
RECONNECTED = (1006, 1012, 1013)
"""Close codes after which htmx's socket connects again."""
TEXT = re.compile(r"message (\d+)")


class Proxy:
    """Sends new connections to a process that is ready: the one that is wished for, if it is."""

    def __init__(self, nodes):
        self.ready = list(nodes)

    def choose(self, wished):
        return wished if wished in self.ready else self.ready[0]


class Tab:
    """A person's tab: it connects again after a restart, and sends again what was not stored."""

    def __init__(self, proxy, node, session, match):
        self.proxy, self.wished, self.session, self.match = proxy, node, session, match
        self.frames, self.closed_with = [], []

    async def open(self):
        """Load the page, then open the socket at the same process."""
        self.node = self.proxy.choose(self.wished)
        html = await asyncio.to_thread(Client(self.node, session=self.session).get, f"/play/{self.match.pk}/")
        self.frames.append(html.decode())
        self.page = Page(self.frames[-1])
        await self._connect()
        return self

    async def _connect(self):
        self.socket = await websockets.connect(
            f"ws://{HOST}/ws/play/{self.match.pk}/",
            host=self.node.address,
            port=self.node.port,
            origin=f"https://{HOST}",
            additional_headers={"Cookie": f"__Host-session={self.session}", "X-Forwarded-Proto": "https"},
            open_timeout=30,
        )
        await self.socket.send(self.page.greeting())

    async def hear(self, wait=0.1):
        """Apply what comes; connect again after a close from which a browser comes back, without loading the page."""
        try:
            while True:
                frame = await asyncio.wait_for(self.socket.recv(), wait)
                self.frames.append(frame)
                self.page.apply(frame)
        except TimeoutError:
            return
        except websockets.ConnectionClosed:
            code = self.socket.close_code
            self.closed_with.append(code)
            assert code in RECONNECTED, f"a browser does not come back after {code}"
            self.node = self.proxy.choose(self.wished)
            await self._connect()

    async def until(self, condition, what, wait=30.0):
        ends = asyncio.get_running_loop().time() + wait
        while not condition():
            assert asyncio.get_running_loop().time() < ends, f"{what}: {self.said()}"
            await self.hear()

    async def send(self, number):
        """Send a move as the form does; what is lost with the connection stays in the form. Two people take turns."""
        move = {"turn": str(number // 2), "action": "talk", "text": f"message {number}"}
        try:
            await self.socket.send(json.dumps(move))
        except websockets.ConnectionClosed:
            await self.hear()

    def said(self):
        """The numbers of the messages in the log, in its order."""
        return [int(text[1]) for row in self.page.rows if (text := TEXT.search(row))]

    @property
    def deadline(self):
        """When the move is due, as the page counts down to it."""
        return re.search(r'id="deadline"[^>]*data-until="(\d+)"', "".join(self.page.parts.values()))[1]


@pytest.fixture
def two_people(person):
    """A running negotiation of twenty turns between `pia` and `ben`, who have five minutes for each."""
    pia, ben = person("player", "pia"), person("player", "ben")
    places = [tables.Place(user=pia), tables.Place(user=ben)]
    start = tables.Start(negotiation(turn_limit=20))
    match = tables.create(host=pia, start=start, places=places, consent=True, deadline_s=300)
    waiting_room.answer_consent(match=match, user=ben, agreed=True)
    match.refresh_from_db()
    assert match.state == Match.State.RUNNING
    return match, pia, ben


@pytest.fixture
def webs(nodes):
    """Two machines with a web process each."""
    made = nodes("first", "second")
    for node in made:
        node.start("web")
        node.wait_until_healthy("web")  # one after the other: both migrate
    return made


async def says(speaker, others, turn):
    """Say `message TURN`, again if it was not stored, until all tabs show it."""
    for attempt in itertools.count():
        assert attempt < 5, (speaker.page.refusal, speaker.said(), speaker.closed_with)
        await speaker.send(turn)
        for _ in range(30):
            await speaker.hear()
            if turn in speaker.said():
                break
        else:
            continue
        break
    for tab in others:
        await tab.until(lambda tab=tab: turn in tab.said(), f"message {turn} has not come")


async def session_of(client_of, user):
    return (await database_sync_to_async(client_of)(user)).cookies["session"].value


async def test_people_at_two_processes_play_on_while_each_is_restarted(webs, two_people, client_of):
    match, pia, ben = two_people
    first, second = webs
    proxy = Proxy(webs)
    ann = await Tab(proxy, first, await session_of(client_of, pia), match).open()
    dan = await Tab(proxy, second, await session_of(client_of, ben), match).open()
    tabs = [ann, dan]

    # at different processes
    for turn in range(4):
        await says(tabs[turn % 2], tabs, turn)

    for number, node in enumerate(webs):
        due = await database_sync_to_async(DueSeat.objects.get)(match=match)
        turn = 4 + 2 * number
        proxy.ready.remove(node)
        await tabs[turn % 2].send(turn)  # it may be stored, or not: nobody knows
        node.processes["web"].send_signal(signal.SIGTERM)
        unmoved = await database_sync_to_async(DueSeat.objects.filter(pk=due.pk, step=due.step).first)()
        assert unmoved is None or unmoved.deadline == due.deadline, "a restart changes no clock"
        await says(tabs[turn % 2], tabs, turn)
        code = await asyncio.to_thread(node.processes["web"].wait, 20)
        assert code == -signal.SIGTERM, "once it has closed everything, uvicorn ends by the signal that it got"
        for tab in tabs:
            await tab.hear()
            assert tab.node is not node
        present = await database_sync_to_async(DueSeat.objects.get)(match=match)
        assert {tab.deadline for tab in tabs} == {str(int(present.deadline.timestamp()))}
        await says(tabs[1 - turn % 2], tabs, turn + 1)  # at the same process
        await asyncio.to_thread(node.start, "web")
        await asyncio.to_thread(node.wait_until_healthy, "web")
        proxy.ready.append(node)

    assert ann.closed_with[0] == 1012
    assert 1012 in dan.closed_with
    for tab in tabs:
        assert tab.said() == list(range(8)), "every message once, in order"
        assert tab.page.numbers == sorted(set(tab.page.numbers))
    moves = await database_sync_to_async(list)(MatchMove.objects.filter(match=match).order_by("number"))
    assert [move.move["args"].get("text") or move.move["text"] for move in moves] == [f"message {n}" for n in range(8)]
    heard = {tab: "".join(tab.frames) for tab in tabs}
    assert "big appetite" in heard[ann], "one's own reasons are shown"
    assert "cold nights" in heard[dan]
    assert "cold nights" not in heard[ann], "the other's reasons are not"
    assert "big appetite" not in heard[dan]
    for tab in tabs:
        await tab.socket.close()


async def test_a_move_that_is_sent_to_both_processes_at_once_is_made_once(webs, two_people, client_of):
    """A browser that has lost the answer sends the move again, at another process."""
    match, pia, _ = two_people
    session = await session_of(client_of, pia)
    tabs = [await Tab(Proxy([node]), node, session, match).open() for node in webs]
    await asyncio.gather(*(tab.send(0) for tab in tabs for _ in range(3)))
    for tab in tabs:
        await tab.until(lambda tab=tab: tab.said() == [0], "the message")
    assert await database_sync_to_async(MatchMove.objects.filter(match=match).count)() == 1
    for tab in tabs:
        await tab.socket.close()
