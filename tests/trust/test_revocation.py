"""Who loses a role or a key loses what it opened at once: pages, matches, the API."""

import json

import pytest
from django.urls import reverse

from tests.webapp.judgments.make import finished_match, people_queue, version
from webapp.accounts.models import Role
from webapp.accounts.services import create_key, revoke_key, set_role
from webapp.judgments.models import Judgment

pytestmark = pytest.mark.django_db


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def test_a_former_annotator_neither_reads_nor_judges(researcher, annotator, client_of, client):
    match = finished_match(researcher)
    target = people_queue(researcher, match, annotators=[annotator]).targets.first()
    key = bearer(create_key(user=annotator, name="k")[1])
    browser = client_of(annotator)
    assert browser.get(reverse("arena:replay", args=[match.pk])).status_code == 200
    set_role(user=annotator, role=Role.PLAYER, active=True)
    assert browser.get(reverse("arena:replay", args=[match.pk])).status_code == 404
    values = {dimension.name: 5 for dimension in version().record().dimensions}
    body = json.dumps({"target": target.pk, "values": values})
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
