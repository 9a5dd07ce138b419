"""A Valkey that hangs (stopped, not dead) delays and breaks nothing: pages, sign-in, the API, probes, runs, tables."""

import asyncio
import json
import os
import signal
import statistics
import time

import pytest
from channels.db import database_sync_to_async
from django.conf import settings
from django.urls import reverse

from tests.conftest import PASSWORD
from tests.trust.matrix.api import TABLE
from tests.webapp.arena.browser import Tab
from tests.webapp.arena.conftest import negotiation
from tests.worker.conftest import wait_until
from webapp.accounts.services import create_key
from webapp.arena.live import consumers
from webapp.arena.setup import tables, waiting_room
from webapp.asgi import application
from webapp.core import circuit, embedded, queue
from webapp.runs.models import Run

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.serial]
PATIENCE = 0.2
"""Seconds for a request on a busy machine, far below one timeout of a client that waits for Redis."""


@pytest.fixture
def valkey(databases):
    """The process id of the embedded Valkey of this session."""
    process = embedded.Valkey(settings.HOME)._process()
    if process is None:
        pytest.skip("REDIS_URL names a server that is not ours to stop")
    return process[0]


@pytest.fixture
def hung(valkey):
    """Stopped, so that it takes connections and answers none."""
    os.kill(valkey, signal.SIGSTOP)
    yield valkey
    os.kill(valkey, signal.SIGCONT)
    wait_until(lambda: circuit.CIRCUIT.closed)


def timed(work):
    started = time.monotonic()
    response = work()
    return response, time.monotonic() - started


def test_the_api_and_sign_in_answer_at_once(researcher, client_of, client, hung):
    key = {"Authorization": f"Bearer {create_key(user=researcher, name='k')[1]}"}
    answers = [timed(lambda: client.get("/api/v1/runs", headers=key)) for _ in range(15)]
    assert {response.status_code for response, _ in answers} == {200}
    assert sum(seconds for _, seconds in answers) < 2.0
    assert statistics.median(seconds for _, seconds in answers) < PATIENCE
    wrong, seconds = timed(lambda: client.get("/api/v1/runs", headers={"Authorization": "Bearer parley_x"}))
    assert (wrong.status_code, wrong.headers["Content-Type"]) == (401, "application/json; charset=utf-8")
    data = {"login": researcher.username, "password": PASSWORD}
    signed_in, seconds = timed(lambda: client_of(None).post(reverse("account_login"), data))
    assert (signed_in.status_code, seconds < 1.0) == (302, True)
    assert client.get("/healthz").json() == {"ok": True}


def test_guessing_is_still_cut_off(player, client_of, hung):
    data = {"login": player.username, "password": "wrong"}
    client = client_of(None)
    answers = [client.post(reverse("account_login"), data).content for _ in range(30)]
    assert 0 < sum(b"not correct" in content for content in answers) <= 8


def test_a_run_is_queued_at_once_and_its_hint_is_repeated(researcher, client, hung):
    key = {"Authorization": f"Bearer {create_key(user=researcher, name='k')[1]}"}
    body = json.dumps({"config": {"model": {"base": "tiny"}}})

    def start():
        return client.post("/api/v1/runs", body, "application/json", headers=key)

    first, seconds = timed(start)
    assert (first.status_code, seconds < 2.0) == (201, True)
    second, seconds = timed(start)
    assert (second.status_code, seconds < 1.0) == (201, True)
    assert Run.objects.filter(state="queued").count() == 2
    assert queue.publish(queue.SUPERVISE, first.json()["id"]) is False
    os.kill(hung, signal.SIGCONT)
    wait_until(lambda: queue.publish(queue.SUPERVISE, first.json()["id"]))


def test_a_table_is_set_up_and_a_move_is_made_at_once(player, client, hung):
    key = {"Authorization": f"Bearer {create_key(user=player, name='k')[1]}"}

    def post(path, body):
        return client.post(f"/api/v1/{path}", json.dumps(body), "application/json", headers=key)

    made, seconds = timed(lambda: post("matches", TABLE))
    assert (made.status_code, seconds < 2.0) == (201, True)
    turn = {"turn": 0, "text": "I would like to have the firewood."}
    moved, seconds = timed(lambda: post(f"matches/{made.json()['id']}/moves", turn))
    assert moved.status_code in {200, 409, 422}
    assert seconds < 1.0


@pytest.fixture
def match(player, annotator):
    """A running game of two people."""
    places = [tables.Place(user=player), tables.Place(user=annotator)]
    match = tables.create(host=player, start=tables.Start(negotiation()), places=places, consent=True)
    waiting_room.answer_consent(match=match, user=annotator, agreed=True)
    return match


async def test_a_socket_opens_at_once_polls_and_hears_hints_again(
    client_of, player, annotator, match, hung, monkeypatch
):
    """The event loop is this test's own: its first connection to Redis is made while Redis hangs."""
    monkeypatch.setattr(consumers.TableConsumer, "REFRESH_EVERY", 0.3)

    async def opened(user):
        tab = await Tab(application, await database_sync_to_async(client_of)(user), match.pk).load()
        started = time.monotonic()
        await tab.open()
        await tab.socket.say(json.dumps({"last": 0, "parts": {}}))
        await tab.until(lambda: tab.frames)
        return tab, time.monotonic() - started

    ann, first = await opened(player)
    other, second = await opened(annotator)
    assert first < consumers.TableConsumer.JOIN_WITHIN + 1.0
    assert second < consumers.TableConsumer.JOIN_WITHIN
    await ann.play(turn="0", action="talk", text="good morning")
    await other.until(lambda: "good morning" in "".join(other.page.rows), wait=3)
    os.kill(hung, signal.SIGCONT)
    await asyncio.to_thread(wait_until, lambda: circuit.CIRCUIT.closed)
    await asyncio.sleep(1.0)
    monkeypatch.setattr(consumers.TableConsumer, "REFRESH_EVERY", 60.0)
    await asyncio.sleep(0.6)  # after their last poll, hints alone tell
    await other.play(turn="0", action="talk", text="good evening")
    await ann.until(lambda: "good evening" in "".join(ann.page.rows), wait=3)
    await ann.leave()
    await other.leave()


@pytest.mark.parametrize("address, status", [("/api/nothing", 404), ("/api/v1/runs/x", 404), ("/api/v1/openapi", 404)])
def test_what_no_view_answers_below_the_api_is_json(client, address, status):
    response = client.get(address)
    assert (response.status_code, response.headers["Content-Type"]) == (status, "application/json")
    assert set(response.json()) == {"where", "why"}


def test_a_mistake_of_ours_below_the_api_is_json(researcher, client, monkeypatch):
    from webapp.api import runs

    monkeypatch.setattr(runs, "_runs", lambda request: 1 / 0)
    client.raise_request_exception = False
    key = {"Authorization": f"Bearer {create_key(user=researcher, name='k')[1]}"}
    response = client.get("/api/v1/runs", headers=key)
    assert (response.status_code, response.headers["Content-Type"]) == (500, "application/json")
    assert "our side" in response.json()["why"]
    assert "ZeroDivision" not in response.content.decode()
    refused = client.put("/api/v1/runs", headers=key)
    assert (refused.status_code, refused.json()["where"]) == (405, "")
