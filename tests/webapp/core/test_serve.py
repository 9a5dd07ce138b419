"""`manage.py serve`: the limits of sockets, and which proxies are believed."""

import pytest
from django.core.management import call_command

from webapp.core.management.commands import serve


@pytest.fixture
def served(monkeypatch):
    uvicorn_options = {}
    monkeypatch.setattr(serve.tempfile, "tempdir", None)  # which the command sets for the whole process
    monkeypatch.setattr(serve.uvicorn, "run", lambda app, **options: uvicorn_options.update(options, app=app))
    return uvicorn_options


def test_nobody_is_believed_unless_named(served, settings):
    settings.TRUSTED_PROXIES = []
    call_command("serve", "--port", "9000")
    assert (served["host"], served["port"]) == ("127.0.0.1", 9000)
    assert served["proxy_headers"] is False


def test_a_named_proxy_is_believed(served, settings):
    settings.TRUSTED_PROXIES = ["10.0.0.7"]
    call_command("serve")
    assert (served["proxy_headers"], served["forwarded_allow_ips"]) == (True, ["10.0.0.7"])


def test_a_socket_message_has_a_limit(served):
    call_command("serve")
    assert served["ws_max_size"] == 16 * 1024
