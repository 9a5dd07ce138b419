"""A local OpenAI-compatible chat server for tests, with faults on demand; loopback only, ready in milliseconds.

    with Stub() as stub:
        stub.script("first answer", Status(500), Hang(), "answer after that")
        RemoteConfig(address=stub.url, model="stub")

Answers are taken from the script in the order of requests; when it is empty, `stub.answer` (a text, a fault, or a
function of the request's body that returns either) answers. What was asked is in `stub.requests`.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self


@dataclass(frozen=True)
class Status:
    """An HTTP error, with the body and headers given."""

    code: int
    body: str = '{"error": {"message": "stub fault"}}'
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Hang:
    """Accepts the request and never answers, until the stub closes."""


@dataclass(frozen=True)
class Drip:
    """Sends one byte of an endless answer every `interval_s` seconds."""

    interval_s: float = 0.05


@dataclass(frozen=True)
class Huge:
    """Sends a well-formed completion of about `size` bytes; `encoding` is claimed as its Content-Encoding."""

    size: int = 10_000_000
    encoding: str = ""


@dataclass(frozen=True)
class Raw:
    """Sends `body` as it is, with status 200: bad JSON, wrong shapes."""

    body: str
    content_type: str = "application/json"


@dataclass(frozen=True)
class Redirect:
    """Answers 307 to `to`."""

    to: str


@dataclass(frozen=True)
class Disconnect:
    """Closes the connection without an answer."""


Fault = Status | Hang | Drip | Huge | Raw | Redirect | Disconnect
Answer = str | Fault
BAD_JSON = Raw('{"choices": [{"message": {"content": "cut o')


@dataclass(frozen=True)
class ReceivedRequest:
    """One request that the stub received."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def messages(self) -> list[dict[str, str]]:
        return list(self.body.get("messages", []))


class Stub:
    """The server; a context manager. `url` is the base address that a client is given."""

    def __init__(self, answer: Answer | Callable[[dict[str, Any]], Answer] = "ok", model: str = "stub") -> None:
        self.answer = answer
        self.model = model
        self.requests: list[ReceivedRequest] = []
        self.closing = threading.Event()
        self._script: deque[Answer | Callable[[dict[str, Any]], Answer]] = deque()
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"stub": self}))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def script(self, *answers: Answer | Callable[[dict[str, Any]], Answer]) -> None:
        """Answer the next requests in this order."""
        with self._lock:
            self._script.extend(answers)

    def take(self, request: ReceivedRequest) -> Answer:
        with self._lock:
            self.requests.append(request)
            answer = self._script.popleft() if self._script else self.answer
        return answer(request.body) if callable(answer) else answer

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()


def completion(text: str, model: str = "stub") -> str:
    """Return the JSON of a chat completion; tokens are counted as words."""
    words = len(text.split())
    return json.dumps(
        {
            "id": "stub-1",
            "object": "chat.completion",
            "created": 0,
            "model": model,
            "choices": [
                {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}},
            ],
            "usage": {"prompt_tokens": 7, "completion_tokens": words, "total_tokens": 7 + words},
        }
    )


class _Handler(BaseHTTPRequestHandler):
    stub: Stub
    protocol_version = "HTTP/1.1"
    timeout = 30
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        if self.path.endswith("/models"):
            self._send(200, json.dumps({"object": "list", "data": [{"id": self.stub.model, "object": "model"}]}))
        else:
            self._send(200 if self.path.endswith("/health") else 404, "{}")

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {key.lower(): value for key, value in self.headers.items()}
        answer = self.stub.take(ReceivedRequest(self.path, headers, json.loads(raw or b"{}")))
        try:
            self._answer(answer)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def _answer(self, answer: Answer) -> None:
        match answer:
            case str():
                self._send(200, completion(answer, self.stub.model))
            case Status(code, body, headers):
                self._send(code, body, headers)
            case Raw(body, content_type):
                self._send(200, body, {"Content-Type": content_type})
            case Redirect(to):
                self._send(307, "{}", {"Location": to})
            case Huge(size, encoding):
                self._send(200, completion("x" * size), {"Content-Encoding": encoding} if encoding else {})
            case Drip(interval_s):
                self._drip(interval_s)
            case Hang():
                self.stub.closing.wait()
                self.close_connection = True
            case Disconnect():
                self.close_connection = True

    def _send(self, code: int, body: str, headers: dict[str, str] | None = None) -> None:
        data = body.encode()
        self.send_response(code)
        for key, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _drip(self, interval_s: float) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", "1000000")
        self.end_headers()
        while not self.stub.closing.wait(interval_s):
            self.wfile.write(b" ")
            self.wfile.flush()
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""
