"""Requires the server's key on every path of a model server except `/health`, in addition to the server's own checks.

ASGI middleware: `training.engines.serving.serve` names it to vLLM, whose own check leaves paths such as `/invocations`
open. The key is `VLLM_API_KEY`; without one nothing is asked. A request without it is answered 401, a socket is not
opened.
"""

from __future__ import annotations

import hmac
import json
import os
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

OPEN = "/health"
"""The only path without a key, for processes that wait for the server; its answer has no content."""
ANSWER = json.dumps({"error": {"message": "the key is missing or wrong", "type": "invalid_request_error"}}).encode()


class KeyGuard:
    """Passes requests with the key to `app`."""

    def __init__(self, app: App) -> None:
        self._app, self._key = app, os.environ.get("VLLM_API_KEY", "").encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in {"http", "websocket"} or scope["path"] == OPEN or self._knows(scope["headers"]):
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            headers = [(b"content-type", b"application/json"), (b"content-length", str(len(ANSWER)).encode())]
            await send({"type": "http.response.start", "status": 401, "headers": headers})
            await send({"type": "http.response.body", "body": ANSWER})

    def _knows(self, headers: Iterable[tuple[bytes, bytes]]) -> bool:
        scheme, _, key = dict(headers).get(b"authorization", b"").partition(b" ")
        return not self._key or (scheme.lower() == b"bearer" and hmac.compare_digest(key, self._key))
