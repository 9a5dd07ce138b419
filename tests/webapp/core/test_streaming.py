"""Exports and downloads under the ASGI server: streamed piece by piece, ended when the client disconnects."""

import asyncio
import hashlib
import itertools
import warnings

import pytest
from asgiref.sync import async_to_sync
from django.core.asgi import get_asgi_application
from django.core.signals import request_finished, request_started
from django.db import close_old_connections
from django.urls import reverse

from tests.trust.matrix.scenarios import SCENARIO, stored_version
from training.dataset import DatasetLine
from webapp.accounts.services import create_key
from webapp.core import streaming
from webapp.runs.models import Checkpoint
from webapp.scenarios import services

pytestmark = pytest.mark.django_db
LINES = 2000


def scope(path, headers):
    all_headers = [(b"host", b"testserver"), *headers]
    parts = {"type": "http", "method": "GET", "http_version": "1.1", "client": ("127.0.0.1", 4000)}
    return {**parts, "path": path, "query_string": b"", "headers": all_headers}


def ask(path, headers, heard, leave=False):
    """Ask the ASGI application as a server does; `heard(message)` gets each message when it is sent.

    With `leave` the client closes the connection as soon as the first piece has arrived.
    """

    async def main():
        asked, left = False, asyncio.Event()

        async def receive():
            nonlocal asked
            if asked:
                await left.wait()
                return {"type": "http.disconnect"}
            asked = True
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message):
            heard(message)
            if leave and message["type"] == "http.response.body":
                left.set()
                await asyncio.sleep(3600)

        with warnings.catch_warnings():
            warnings.simplefilter("error")
            await get_asgi_application()(scope(path, headers), receive, send)

    async_to_sync(main)()


@pytest.fixture(autouse=True)
def one_connection():
    """The application runs in this test's thread and transaction, and must not close its connection."""
    both = (request_started, request_finished)
    for signal in both:
        signal.disconnect(close_old_connections)
    yield
    for signal in both:
        signal.connect(close_old_connections)


@pytest.fixture
def signed_in(client, researcher):
    client.force_login(researcher)
    return [(b"cookie", f"session={client.cookies['session'].value}".encode())]


@pytest.fixture
def made(monkeypatch):
    """Counts the generated lines, out of `LINES` of about half a kilobyte; the last entry marks the end."""
    counted = []

    def many(_version):
        try:
            for number in range(LINES):
                counted.append(number)
                yield DatasetLine(scenario=SCENARIO.model_copy(update={"id": f"{number}-" + "x" * 100}))
        finally:
            counted.append("ended")

    monkeypatch.setattr(services, "lines_of", many)
    return counted


def key_of(user):
    return [(b"authorization", f"Bearer {create_key(user=user, name='k')[1]}".encode())]


@pytest.mark.parametrize("surface", ["page", "api"])
def test_an_export_is_sent_while_it_is_made(surface, researcher, signed_in, made):
    version = stored_version(researcher)
    path = reverse("scenarios:export", args=[version.dataset.name, 1])
    headers = signed_in
    if surface == "api":
        path, headers = f"/api/v1/datasets/{version.dataset.name}/versions/1/export", key_of(researcher)
    sizes, counts = [], []

    def heard(message):
        if message.get("body"):
            sizes.append(len(message["body"]))
            counts.append(len(made))

    ask(path, headers, heard)
    assert counts[0] < LINES / 4  # the first piece left long before the last line was made
    assert max(sizes) < 2 * streaming.PIECE
    assert len(sizes) > 4
    assert made[-1] == "ended"


def test_a_client_that_disconnects_ends_the_export(researcher, signed_in, made):
    version = stored_version(researcher)
    pieces = []
    ask(reverse("scenarios:export", args=[version.dataset.name, 1]), signed_in, pieces.append, leave=True)
    assert made[-1] == "ended"
    assert len(made) < LINES / 4


def test_a_real_export_has_its_hash(researcher, signed_in):
    lines = [DatasetLine(scenario=SCENARIO.model_copy(update={"id": f"s{n}"})) for n in range(700)]
    version = services.create_dataset(name="many", owner=researcher, lines=lines)
    digest = hashlib.sha256()
    ask(reverse("scenarios:export", args=["many", 1]), signed_in, lambda m: digest.update(m.get("body", b"")))
    assert digest.hexdigest() == version.sha256


def test_a_download_is_sent_piece_by_piece(researcher, signed_in, tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"\0" * (3 << 20))
    checkpoint = Checkpoint.objects.create(name="big", kind="base", base="b", path=str(tmp_path))
    sizes = []
    ask(reverse("runs:download", args=[checkpoint.pk]), signed_in, lambda m: sizes.append(len(m.get("body", b""))))
    assert sum(sizes) > 3 << 20
    assert max(sizes) < 2 << 20


@pytest.mark.parametrize("texts, pieces", [([], []), (["a"], [b"a\n"]), (["é", "b", "c"], [b"\xc3\xa9\nb\n", b"c\n"])])
def test_lines_are_cut_where_a_line_ends(texts, pieces):
    assert list(streaming.lines(iter(texts), size=4)) == pieces


def test_lines_are_taken_as_they_are_needed():
    endless = streaming.lines(map(str, itertools.count()), size=2)
    assert next(endless) == b"0\n"


@pytest.mark.django_db(transaction=True)
def test_static_files_are_sent_under_asgi_without_a_warning(settings):
    """Django warns about file objects, whose pieces it would collect under ASGI before it sends the first."""
    from django.test import AsyncClient

    async def fetched(**headers):
        return await AsyncClient().get("/static/parley.css", headers=headers)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        whole = async_to_sync(fetched)()
        part = async_to_sync(fetched)(Range="bytes=0-9")
        again = async_to_sync(fetched)(**{"If-None-Match": whole.headers["ETag"]})
    text = (settings.BASE_DIR / "static" / "parley.css").read_bytes()
    assert (whole.status_code, whole.content) == (200, text)
    assert whole.headers["Content-Type"].startswith("text/css")
    assert (part.status_code, part.content) == (206, text[:10])
    assert (again.status_code, again.content) == (304, b"")
