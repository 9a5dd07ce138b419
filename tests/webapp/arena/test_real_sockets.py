"""The table behind a real server: sizes, fragments, a client that does not read, memory in a flood."""

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest
import uvicorn
import websockets
from channels.db import database_sync_to_async
from django.db import connection

from tests.elsewhere import database_address
from webapp.arena.live import consumers, fragments
from webapp.core.management.commands.serve import LARGEST_MESSAGE

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.process]


ROOT = Path(__file__).resolve().parents[3]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def site():
    """The site under uvicorn, with the limits of `manage.py serve`; yields its port."""
    from webapp.asgi import application

    port = free_port()
    config = uvicorn.Config(
        application, port=port, log_level="critical", ws_max_size=LARGEST_MESSAGE, ws_max_queue=16, lifespan="off"
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the server did not start"
        time.sleep(0.02)
    yield port
    server.should_exit = True
    thread.join(10)


def connect(port, session, match, **options):
    return websockets.connect(
        f"ws://127.0.0.1:{port}/ws/play/{match.pk}/",
        origin=f"http://127.0.0.1:{port}",
        additional_headers={"Cookie": f"session={session}"},
        **options,
    )


async def session_of(client_of, user):
    return (await database_sync_to_async(client_of)(user)).cookies["session"].value


async def close_code(connection, wait=20):
    async with asyncio.timeout(wait):
        with contextlib.suppress(websockets.ConnectionClosed):
            while True:
                await connection.recv()
    return connection.close_code


async def test_a_greeting_is_answered(site, client_of, player, two_people):
    async with connect(site, await session_of(client_of, player), two_people) as connection:
        await connection.send(json.dumps({"last": 0, "parts": {}}))
        frame = await asyncio.wait_for(connection.recv(), 10)
        assert 'id="part-act"' in frame
        assert 'value="2"' in frame


async def test_without_a_session_or_from_elsewhere_nobody_gets_in(site, client_of, player, two_people):
    with pytest.raises(websockets.InvalidStatus):
        async with connect(site, "nonsense", two_people):
            pass
    session = await session_of(client_of, player)
    elsewhere = websockets.connect(
        f"ws://127.0.0.1:{site}/ws/play/{two_people.pk}/",
        origin="http://evil.example",
        additional_headers={"Cookie": f"session={session}"},
    )
    with pytest.raises(websockets.InvalidStatus):
        async with elsewhere:
            pass


@pytest.mark.parametrize("fragments", [1, 40])
async def test_too_large_closes_with_1009_whole_or_in_pieces(site, client_of, player, two_people, fragments):
    async with connect(site, await session_of(client_of, player), two_people) as connection:
        # Only the last piece goes over the limit: what is still unread when a socket closes may outrun the close code.
        piece = "x" * ((LARGEST_MESSAGE + 400) // fragments)
        with contextlib.suppress(websockets.ConnectionClosed):
            await connection.send([piece] * fragments if fragments > 1 else piece)
        assert await close_code(connection) == 1009


async def test_a_client_that_does_not_read_is_dropped(site, client_of, player, two_people, monkeypatch):
    """Its messages ask for answers of a megabyte each, which it never takes."""
    gone = threading.Event()
    left = consumers.TableConsumer.disconnect

    async def disconnect(self, code):
        gone.set()
        await left(self, code)

    monkeypatch.setattr(consumers.TableConsumer, "SEND_WITHIN", 0.5)
    monkeypatch.setattr(consumers.TableConsumer, "disconnect", disconnect)
    monkeypatch.setattr(fragments, "refusal", lambda text: "x" * 2**20)
    connection = await connect(site, await session_of(client_of, player), two_people, max_queue=1, max_size=2**22)
    for _ in range(15):
        with contextlib.suppress(websockets.ConnectionClosed):
            await connection.send(json.dumps({"turn": "0", "action": "fly"}))
    assert await asyncio.to_thread(gone.wait, 30)
    connection.transport.abort()


# --- memory ---

ROUNDS = 5
SETTLED = 3  # rounds after which threads, connections and caches are all there
FLAT = 32  # MiB that the server may grow by afterwards, while it is sent another 190


@pytest.fixture
def process(tmp_path):
    """`manage.py serve` as a process of its own, on the test's database; yields (process, port, its log)."""
    port = free_port()
    command = [sys.executable, "manage.py", "serve", "--port", str(port)]
    log = tmp_path / "server.log"
    with log.open("w") as output:
        environment = {**os.environ, "DATABASE_URL": database_address()}
        server = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=output)
    try:
        ends = time.monotonic() + 60
        while not listens(port):
            assert server.poll() is None, "the server is gone"
            assert time.monotonic() < ends, "the server does not start"
            time.sleep(0.05)
        yield psutil.Process(server.pid), port, log
    finally:
        server.kill()
        server.wait()


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


async def a_round_of_floods(port, session, match):
    """Messages that inflate to 16 MiB, more messages than anybody may send, and clients that never read."""
    bomb, bad, hello = "x" * 2**24, json.dumps({"turn": "0", "action": "y" * 15_000}), json.dumps({"last": 0})

    async def flood(text, times):
        with contextlib.suppress(websockets.ConnectionClosed, ConnectionError):
            async with connect(port, session, match, compression="deflate") as connection:
                for _ in range(times):
                    await connection.send(text)
                await close_code(connection)

    async def no_reader():
        connection = await connect(port, session, match, max_queue=1)
        with contextlib.suppress(websockets.ConnectionClosed, ConnectionError, TimeoutError):
            await asyncio.wait_for(connection.send(hello), 10)
            for _ in range(18):
                await asyncio.wait_for(connection.send(bad), 10)
        await asyncio.sleep(0.5)
        connection.transport.abort()

    for _ in range(2):
        await asyncio.gather(*(flood(bomb, 1) for _ in range(2)), *(flood(bad, 200) for _ in range(6)), no_reader())


async def test_a_flood_leaves_memory_flat_and_the_log_empty(process, client_of, player, two_people):
    server, port, log = process
    session = await session_of(client_of, player)
    memory_mib = []
    for _ in range(ROUNDS):
        await a_round_of_floods(port, session, two_people)
        memory_mib.append(server.memory_info().rss // 2**20)
    assert memory_mib[-1] - memory_mib[SETTLED - 1] < FLAT, f"MiB after each flood: {memory_mib}"
    async with connect(port, session, two_people) as connection:
        await connection.send(json.dumps({"last": 0, "parts": {}}))
        assert 'id="part-act"' in await asyncio.wait_for(connection.recv(), 20)
    assert "Traceback" not in log.read_text(), log.read_text()[-3000:]


# --- connections to the database ---

CONNECTS, AT_ONCE = 500, 25
POOL = 24  # of the server, at most


def backends():
    """(connections of this database by others, those of them that are busy or in a transaction)."""
    query = (
        "SELECT count(*), count(*) FILTER (WHERE state <> 'idle') FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    with connection.cursor() as cursor:
        cursor.execute(query)
        return cursor.fetchone()


async def a_visit(port, session, match, *, leaves):
    """Connect and read the table; then close the socket, or be gone without a word."""
    visit = await connect(port, session, match)
    await visit.send(json.dumps({"last": 0, "parts": {}}))
    assert 'id="part-act"' in await asyncio.wait_for(visit.recv(), 60)
    if leaves:
        await visit.close()
    else:
        visit.transport.abort()


async def test_five_hundred_sockets_leave_no_database_connection_busy(process, client_of, player, two_people):
    """Trust 30."""
    _, port, log = process
    session = await session_of(client_of, player)
    before, _ = await database_sync_to_async(backends)()
    counts = []
    for first in range(0, CONNECTS, AT_ONCE):
        numbers = range(first, first + AT_ONCE)
        await asyncio.gather(*(a_visit(port, session, two_people, leaves=number % 3 > 0) for number in numbers))
        counts.append((await database_sync_to_async(backends)())[0])
    ends = time.monotonic() + 20
    while (after := await database_sync_to_async(backends)())[1]:
        assert time.monotonic() < ends, f"{after[1]} connections are still busy"
        await asyncio.sleep(0.2)
    assert max(counts) <= before + POOL, f"connections after each {AT_ONCE} sockets: {counts}"
    assert "Traceback" not in log.read_text(), log.read_text()[-3000:]
