"""The access log: a line for every request, with who and how long, without tokens and query strings."""

import logging
import re

import pytest
from django.conf import settings

from webapp.accounts.services import create_key
from webapp.core.logs import AccessLog
from webapp.core.middleware import loggable_path


@pytest.fixture
def lines():
    """The messages of the access log, in order."""
    seen = []
    handler = logging.Handler()
    handler.emit = lambda record: seen.append(record.getMessage())
    logger = logging.getLogger("access")
    logger.addHandler(handler)
    yield seen
    logger.removeHandler(handler)


def test_a_line_has_the_person_the_request_and_the_status(researcher, client_of, client, lines):
    client_of(researcher).get("/runs/?q=secret")
    key = create_key(user=researcher, name="k")[1]
    client.get("/api/v1/runs", headers={"Authorization": f"Bearer {key}"})
    client.get("/nothing/here")
    shapes = [re.sub(r" \d+ ms ", " T ms ", line) for line in lines]
    assert shapes == [
        f"GET /runs/ 200 T ms user {researcher.pk}",
        f"GET /api/v1/runs 200 T ms user {researcher.pk}",
        "GET - (13 characters) 404 T ms user -",
    ]


def test_neither_a_link_nor_a_forged_line_gets_into_it():
    assert loggable_path("/accounts/confirm-email/MQ:secret-key:1/") == "/accounts/confirm-email/<key>/"
    assert loggable_path("/play/guest/tok-secret-123/") == "/play/guest/<token>/"
    assert loggable_path("/play/join/tok-secret-123/") == "/play/join/<token>/"
    assert loggable_path("/nothing\n2026 GET /admin 200") == "- (28 characters)"
    assert loggable_path("/datasets/a\nb/") == "- (14 characters)"
    assert loggable_path("/static/x\ny") == "/static/x\\ny"


def test_it_is_rotated_and_opened_only_when_something_is_written(tmp_path):
    path = tmp_path / "log" / "access.log"
    handler = AccessLog(str(path), maxBytes=100, backupCount=2)
    assert not path.parent.exists()
    for number in range(20):
        handler.emit(logging.LogRecord("access", logging.INFO, "", 0, f"line {number:03} {'x' * 20}", None, None))
    handler.close()
    assert sorted(file.name for file in path.parent.iterdir()) == ["access.log", "access.log.1", "access.log.2"]
    assert path.stat().st_size <= 100
    made = settings.LOGGING["handlers"]["access"]
    assert (made["filename"], made["backupCount"]) == (str(settings.HOME / "log" / "access.log"), 5)
