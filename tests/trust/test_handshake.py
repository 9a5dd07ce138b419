"""Who may open a socket at all: same origin and a session, whatever the route."""

import pytest
from asgiref.sync import async_to_sync
from channels.generic.websocket import AsyncWebsocketConsumer
from django.urls import path

from tests.websocket import Socket, browser_headers
from webapp.core import sockets


class Echo(AsyncWebsocketConsumer):
    """Accepts everybody, so that only the handshake can refuse."""


@pytest.fixture
def application(monkeypatch):
    monkeypatch.setattr(sockets, "_PATTERNS", [path("echo/", Echo.as_asgi())])
    monkeypatch.setattr(sockets, "autodiscover_modules", lambda name: None)
    return sockets.guarded()


def connects(application, address="/echo/", host="testserver", origin="http://testserver", session=None, extra=()):
    headers = [*browser_headers(session, host, origin), *extra]

    async def run():
        socket = Socket(application, address, headers)
        opened = await socket.connect()
        if opened:
            await socket.leave()
        return opened

    return async_to_sync(run)()


@pytest.fixture
def session(player, client_of):
    return client_of(player).cookies["session"].value


@pytest.mark.django_db(transaction=True)
def test_own_origin_and_session_get_in(application, session):
    assert connects(application, session=session)
    assert connects(application, session=session, host="testserver:80")
    assert connects(application, session=session, host="testserver:8000", origin="http://testserver:8000")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "origin",
    [
        None,
        "",
        "null",
        "https://evil.example",
        "http://testserver.evil.example",
        "http://evil.example/testserver",
        "http://testserver@evil.example",
        "http://testserver:8001",
        "ftp://testserver",
        "testserver",
        "file://",
        "http://testserver/path",
    ],
)
def test_a_foreign_missing_or_null_origin_is_refused(application, session, origin):
    assert not connects(application, session=session, origin=origin)


@pytest.mark.django_db(transaction=True)
def test_two_origins_or_a_foreign_host_are_refused(application, session):
    assert not connects(application, session=session, extra=[(b"origin", b"http://testserver")])
    assert not connects(application, session=session, host="evil.example", origin="http://evil.example")
    assert not connects(application, session=session, host=None)


@pytest.mark.django_db(transaction=True)
def test_no_session_or_a_dead_one_is_refused(application, session, player):
    assert not connects(application)
    assert not connects(application, session="0" * 32)
    player.is_active = False
    player.save()
    assert not connects(application, session=session)


@pytest.mark.django_db(transaction=True)
def test_an_unknown_socket_address_is_refused_and_does_not_fail(application, session):
    assert not connects(application, address="/other/", session=session)


@pytest.mark.django_db(transaction=True)
def test_production_asks_for_https(application, session, settings):
    settings.PRODUCTION = True
    assert not connects(application, session=session)
    assert connects(application, session=session, origin="https://testserver")
