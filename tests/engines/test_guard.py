"""A model server answers nobody without the key, whatever path is asked for."""

import asyncio

import pytest

from training.engines.serving import serve
from training.engines.serving.config import ServeConfig
from training.engines.serving.guard import KeyGuard

KEY = "random-key-of-this-test"


@pytest.fixture
def ask(monkeypatch):
    """Returns the status that a guarded application answers; its own is 200."""
    monkeypatch.setenv("VLLM_API_KEY", KEY)

    async def application(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})

    def asked(path, authorization=None, kind="http"):
        messages = []

        async def send(message):
            messages.append(message)

        headers = [(b"host", b"x"), *([(b"authorization", authorization.encode())] if authorization else [])]
        asyncio.run(KeyGuard(application)({"type": kind, "path": path, "headers": headers}, None, send))
        return messages[0].get("status", messages[0]["type"])

    return asked


@pytest.mark.parametrize(
    "path", ["/v1/chat/completions", "/invocations", "/tokenize", "/metrics", "/", "/health/", "//health", "/health/x"]
)
def test_every_path_requires_the_key(ask, path):
    assert ask(path, f"Bearer {KEY}") == 200
    assert ask(path, f"bearer {KEY}") == 200
    for wrong in (None, "Bearer ", "Bearer wrong", KEY, f"Basic {KEY}", f"Bearer {KEY} ", f"Bearer {KEY[:-1]}"):
        assert ask(path, wrong) == 401


def test_only_health_is_open(ask):
    assert ask("/health") == 200


def test_a_socket_without_the_key_is_closed(ask):
    assert ask("/v1/realtime", kind="websocket") == "websocket.close"
    assert ask("/v1/realtime", f"Bearer {KEY}", kind="websocket") == 200


def test_the_server_itself_starts_and_ends_without_a_key(ask):
    assert ask("", kind="lifespan") == 200


def test_a_server_that_was_given_no_key_asks_for_none(ask, monkeypatch):
    monkeypatch.delenv("VLLM_API_KEY")
    assert ask("/v1/models") == 200


def test_vllm_is_started_with_the_guard(monkeypatch, tmp_path):
    monkeypatch.setattr(serve, "choose", lambda name: "vllm")
    monkeypatch.setattr(serve, "on_gpu", lambda: False)
    command = serve.command(ServeConfig(model="m", engine="vllm"), tmp_path, 8000)
    module, name = command[command.index("--middleware") + 1].rsplit(".", 1)
    assert (module, name) == (KeyGuard.__module__, KeyGuard.__name__)
