"""The table behind a real server (trust 12, 13): sizes, fragments, a client that does not read."""

import asyncio
import contextlib
import json
import socket
import threading
import time

import pytest
import uvicorn
import websockets
from channels.db import database_sync_to_async

from webapp.arena import consumers, parts
from webapp.core.management.commands.serve import LARGEST_MESSAGE

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.serial]


@pytest.fixture
def site():
    """The site under uvicorn, with the limits of `manage.py serve`; yields its port."""
    from webapp.asgi import application

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    config = uvicorn.Config(
        application, port=port, log_level="critical", ws_max_size=LARGEST_MESSAGE, ws_max_queue=16, lifespan="off"
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
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
    monkeypatch.setattr(parts, "refusal", lambda text: "x" * 2**20)
    connection = await connect(site, await session_of(client_of, player), two_people, max_queue=1, max_size=2**22)
    for _ in range(15):
        with contextlib.suppress(websockets.ConnectionClosed):
            await connection.send(json.dumps({"step": "0", "action": "fly"}))
    assert await asyncio.to_thread(gone.wait, 30)
    connection.transport.abort()
