"""Limits the body of every request before Django writes it to a temporary file; larger requests get a 413.

A Content-Length above the limit is refused at once; otherwise the received bytes are counted. Django reads a
body before it knows whose it is, so only those who may upload files have room for them.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from django.core.exceptions import RequestAborted

from webapp.core.errors import API

Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[dict[str, Any], Receive, Send], Awaitable[None]]
Permission = Callable[[dict[str, Any]], Awaitable[bool]]

USUAL = 5 * 1024 * 1024
UPLOAD = 66 * 1024 * 1024
"""Room for the largest import and the form around it."""
CORPUS = 2050 * 1024 * 1024
"""Room for the largest corpus and the form around it."""
UPLOADS = {
    "/datasets/import/": UPLOAD,
    "/api/v1/datasets": UPLOAD,
    "/corpora/upload/": CORPUS,
    "/api/v1/corpora": CORPUS,
}
"""The only addresses that take files; every other one, known or not, has the usual limit."""
_WHY = "The request is too large. Nothing was changed."
_UPLOADS = " Only researchers who are signed in, or whose API key came with it, may send larger files here."


class BoundedBody:
    """Wraps the application `inner` and limits request bodies to `limit(path)` bytes.

    `may_upload` says of a request whether it may be larger than `USUAL`.
    """

    def __init__(self, inner: Application, may_upload: Permission) -> None:
        self.inner, self.may_upload = inner, may_upload

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        most, received = limit(scope["path"]), 0
        if most > USUAL and not (scope["method"] == "POST" and await self.may_upload(scope)):
            most = USUAL
        if _claimed(scope) > most:
            await _refuse(scope["path"], send)
            return

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > most:
                raise RequestAborted  # on which Django forgets the request without an answer
            return message

        await self.inner(scope, counted, send)
        if received > most:
            await _refuse(scope["path"], send)


def limit(path: str) -> int:
    """The most bytes of a request's body at this path."""
    return UPLOADS.get(path, USUAL)


def _claimed(scope: dict[str, Any]) -> int:
    lengths = [value for name, value in scope["headers"] if name.lower() == b"content-length"]
    return max((int(value) for value in lengths if value.isdigit() and len(value) < 20), default=0)


async def _refuse(path: str, send: Send) -> None:
    json_asked = path.startswith(API)
    why = _WHY + (_UPLOADS if path in UPLOADS else "")
    text = (json.dumps({"where": "", "why": why}) if json_asked else why).encode()
    kind = b"application/json" if json_asked else b"text/plain; charset=utf-8"
    headers = [(b"content-type", kind), (b"connection", b"close"), (b"content-length", str(len(text)).encode())]
    await send({"type": "http.response.start", "status": 413, "headers": headers})
    await send({"type": "http.response.body", "body": text})
