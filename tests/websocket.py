"""A WebSocket client that talks to an ASGI application directly, without a server."""

from typing import Any

from asgiref.testing import ApplicationCommunicator


class Socket(ApplicationCommunicator):
    """One connection. `headers` are pairs of bytes; a browser's are `host`, `origin` and `cookie`."""

    def __init__(self, application: Any, path: str, headers: list[tuple[bytes, bytes]]) -> None:
        address, _, query = path.partition("?")
        scope = {
            "type": "websocket",
            "path": address,
            "query_string": query.encode(),
            "headers": headers,
            "subprotocols": [],
        }
        super().__init__(application, scope)

    async def connect(self, wait: float = 5) -> bool:
        """Open it; says whether the application accepted."""
        await self.send_input({"type": "websocket.connect"})
        answer = await self.receive_output(wait)
        return answer["type"] == "websocket.accept"

    async def say(self, text: str) -> None:
        """Send a text message."""
        await self.send_input({"type": "websocket.receive", "text": text})

    async def hear(self, wait: float = 5) -> dict[str, Any]:
        """The next message of the application: its text, or its close with the code."""
        return await self.receive_output(wait)

    async def leave(self, wait: float = 5) -> None:
        """Close it from the client's side."""
        await self.send_input({"type": "websocket.disconnect", "code": 1000})
        await self.wait(wait)


def browser_headers(session: str | None, host: str = "testserver", origin: str | None = "http://testserver"):
    """The headers with which a browser that is on `origin` opens a socket on `host`."""
    headers = [(b"host", host.encode())] if host else []
    headers += [(b"origin", origin.encode())] if origin is not None else []
    headers += [(b"cookie", f"session={session}".encode())] if session else []
    return headers
