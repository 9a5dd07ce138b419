"""The page for probes: JSON for everybody, 503 without a database, and nothing about the installation."""

import time

import pytest

from webapp.core import health


@pytest.fixture
def probe(monkeypatch):
    """A probe that remembers nothing of other tests."""
    monkeypatch.setattr(health, "site_works", health.Probe(health._database_answers))


def test_a_probe_needs_no_session_and_learns_nothing(db, client, probe):
    response = client.get("/healthz")
    assert (response.status_code, response.json()) == (200, {"ok": True})
    assert not response.cookies
    assert client.post("/healthz").status_code == 405


def test_without_a_database_it_is_503_in_json(client, probe, monkeypatch):
    monkeypatch.setattr(health.connection, "get_connection_params", lambda: {"host": "/nowhere", "dbname": "x"})
    started = time.monotonic()
    response = client.get("/healthz")
    assert (response.status_code, response.json()) == (503, {"ok": False})
    assert time.monotonic() - started < 3


def test_many_probes_cost_one_connection_a_second(monkeypatch):
    asked = []
    probe = health.Probe(lambda: asked.append(1) or True)
    assert all(probe() for _ in range(100))
    assert len(asked) == 1
    monkeypatch.setattr(health, "REMEMBER_SECONDS", 0.0)
    time.sleep(0.001)
    probe()
    assert len(asked) == 2


def test_a_probe_asks_by_an_address_that_is_no_host_of_the_site(db, client, probe, settings):
    settings.ALLOWED_HOSTS = ["parley.example"]
    asked = {"host": "10.0.0.7:8000"}
    assert client.get("/healthz", headers=asked).status_code == 200
    assert client.post("/healthz", headers=asked).status_code == 405
    assert client.get("/accounts/login/", headers=asked).status_code == 400


def test_a_probe_from_inside_needs_no_tls(db, client, probe, settings):
    settings.SECURE_SSL_REDIRECT = True
    assert client.get("/healthz").status_code == 200
    assert client.get("/accounts/login/").status_code == 301
