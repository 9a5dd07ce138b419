"""Answers of any size that are written while they are sent: one piece is in memory at a time, under every server."""

from __future__ import annotations

from collections.abc import Generator, Iterable

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, StreamingHttpResponse

PIECE = 64 * 1024
Pieces = Generator[bytes, None, None]


class _WithoutBlocking:
    """The pieces for an ASGI server, which would otherwise collect all of them before it sends the first.

    Each is made in the request's own thread, where its database connection is; `close`, which Django calls when the
    answer has been sent or the client has left, ends what made them.
    """

    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces
        self.close = pieces.close

    def __aiter__(self) -> _WithoutBlocking:
        return self

    async def __anext__(self) -> bytes:
        piece = await sync_to_async(self._next)()
        if piece is None:
            raise StopAsyncIteration
        return piece

    def _next(self) -> bytes | None:
        return next(self._pieces, None)


def stream(request: HttpRequest, pieces: Pieces, content_type: str) -> StreamingHttpResponse:
    """An answer that holds the pieces."""
    content = _WithoutBlocking(pieces) if isinstance(request, ASGIRequest) else pieces
    return StreamingHttpResponse(content, content_type=content_type)


def lines(texts: Iterable[str], size: int = PIECE) -> Pieces:
    """The texts as lines in UTF-8, in pieces of about `size` bytes."""
    buffer = bytearray()
    for text in texts:
        buffer += text.encode() + b"\n"
        if len(buffer) >= size:
            yield bytes(buffer)
            buffer.clear()
    if buffer:
        yield bytes(buffer)
