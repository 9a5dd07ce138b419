"""Trust 14: who loses a role, a key or a session loses what it opened: pages, matches and the API at once, open sockets
within five seconds.
"""

import json
import time

import pytest
from channels.db import database_sync_to_async
from django.test import Client
from django.urls import reverse

from tests.conftest import PASSWORD
from tests.labelled import sent
from tests.webapp.arena.browser import Tab
from tests.webapp.arena.conftest import negotiation
from tests.webapp.judgments.make import finished_match, people_queue, version
from webapp.accounts.models import Role
from webapp.accounts.services import create_key, revoke_key, set_password, set_role
from webapp.arena.play import hosting
from webapp.arena.setup import tables, waiting_room
from webapp.judgments.models import Judgment
from webapp.judgments.queues.services import QueueSettings

pytestmark = pytest.mark.django_db


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def test_a_former_annotator_neither_reads_nor_judges(researcher, annotator, client_of, client):
    match = finished_match(researcher)
    queue = people_queue(researcher, match, annotators=[annotator], how=QueueSettings(shows_hidden=True))
    target = queue.targets.first()
    key = bearer(create_key(user=annotator, name="k")[1])
    browser = client_of(annotator)
    assert browser.get(reverse("arena:replay", args=[match.pk])).status_code == 200
    set_role(user=annotator, role=Role.PLAYER, active=True)
    assert browser.get(reverse("arena:replay", args=[match.pk])).status_code == 404
    values = {label_type.name: 5 for label_type in version().record().labels}
    body = json.dumps({"target": target.pk, "labels": sent(values)})
    assert client.post("/api/v1/judgments", body, "application/json", headers=key).status_code == 404
    assert not Judgment.objects.exists()


def test_a_deactivated_person_and_a_revoked_key_open_nothing(researcher, client_of, client):
    browser = client_of(researcher)
    made, token = create_key(user=researcher, name="one")
    other = create_key(user=researcher, name="two")[1]
    assert client.get("/api/v1/runs", headers=bearer(token)).status_code == 200
    revoke_key(key=made)
    assert client.get("/api/v1/runs", headers=bearer(token)).status_code == 401
    set_role(user=researcher, role=Role.RESEARCHER, active=False)
    assert client.get("/api/v1/runs", headers=bearer(other)).status_code == 401
    assert browser.get(reverse("runs:list")).status_code == 302


def log_out(match, user, client):
    """In another tab of the same browser."""
    other = Client()
    other.cookies = client.cookies
    assert other.post(reverse("account_logout")).status_code == 302


def change_password(match, user, client):
    user.set_password("another one 7")
    user.save()


def deactivate(match, user, client):
    set_role(user=user, role=Role.PLAYER, active=False)


def kick(match, user, client):
    hosting.kick(match=match, number=0)


def seated_two(host, first):
    """A running game at which `first`, who is not its host, is to move."""
    places = [tables.Place(user=first), tables.Place(user=host)]
    match = tables.create(host=host, start=tables.Start(negotiation()), places=places, consent=True)
    waiting_room.answer_consent(match=match, user=first, agreed=True)
    return match


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("revoke", [log_out, change_password, deactivate, kick])
@pytest.mark.parametrize("moving", [False, True], ids=["silent", "moving"])
async def test_an_open_socket_closes_and_takes_no_move(revoke, moving, person, client_of):
    from webapp.asgi import application

    sync = database_sync_to_async
    ben, pia = await sync(person)("player", "ben"), await sync(person)("player", "pia")
    match = await sync(seated_two)(pia, ben)
    client = await sync(client_of)(ben)
    tab = await (await Tab(application, client, match.pk).load()).open()
    await tab.hear()
    assert "Your turn" in tab.page.parts["status"]
    began = time.monotonic()
    await sync(revoke)(match, ben, client)
    if moving:
        await tab.play(turn="0", action="talk", text="still here")
    while tab.closed is None:
        assert time.monotonic() - began < 5
        await tab.hear(0.1)
    assert tab.closed == 1008
    assert not await sync(match.moves.exists)()


def test_a_new_password_ends_every_other_session_of_the_person_and_their_own_stays(player, client_of):
    here, elsewhere = client_of(player), client_of(player)
    assert elsewhere.get(reverse("arena:lobby")).status_code == 200
    new = "correct horse battery"
    data = {"oldpassword": PASSWORD, "password1": new, "password2": new}
    assert here.post(reverse("account_change_password"), data).status_code == 302
    assert here.get(reverse("arena:lobby")).status_code == 200
    assert elsewhere.get(reverse("arena:lobby")).status_code == 302
    assert elsewhere.post(reverse("arena:new"), {}).status_code == 302


def test_a_new_password_by_an_administrator_and_deactivation_end_every_session(player, admin, client_of):
    browser = client_of(player)
    set_password(user=player, password="correct horse battery")
    assert browser.get(reverse("arena:lobby")).status_code == 302
    player.refresh_from_db()
    again = client_of(player)
    assert again.get(reverse("arena:lobby")).status_code == 200
    data = {"role": "player"}  # without `active`
    client_of(admin).post(reverse("accounts:change-person", args=[player.pk]), data)
    assert again.get(reverse("arena:lobby")).status_code == 302


def test_a_signed_out_session_cannot_be_used_again(player, client_of):
    browser = client_of(player)
    cookie = browser.cookies["session"].value
    browser.post(reverse("account_logout"))
    browser.cookies["session"] = cookie
    assert browser.get(reverse("arena:lobby")).status_code == 302
