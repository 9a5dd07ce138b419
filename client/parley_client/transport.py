"""Requests with a key: waiting and repeating, pages, and downloads to files.

An answer of 429 or 503 means that nothing was done, so the same request is repeated, whatever its method. A request
that broke off may have been carried out, so only GET is repeated then.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx2
from pydantic import BaseModel

from parley_client.errors import ParleyError, Unavailable, refusal

Model = TypeVar("Model", bound=BaseModel)
PAGE = 100
"""Rows of one request of a list."""
BUSY = (429, 503)


class Transport:
    """The connection to one site.

    `retries` is how often a request is repeated, `longest_wait` the most seconds before a repetition.
    """

    def __init__(self, url: str, key: str, *, timeout: float, retries: int, longest_wait: float) -> None:
        self._http = httpx2.Client(
            base_url=f"{url.rstrip('/')}/api/v1/", headers={"Authorization": f"Bearer {key}"}, timeout=timeout
        )
        self._retries, self._longest_wait = retries, longest_wait

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def json(self, method: str, path: str, **request: Any) -> Any:
        """The JSON of an answer, None without content. Raises `ParleyError` for a refusal."""
        answer = self._answer(method, path, **request)
        return json.loads(answer.content) if answer.content else None

    def model(self, kind: type[Model], method: str, path: str, **request: Any) -> Model:
        """The answer as one object."""
        return kind.model_validate(self.json(method, path, **request))

    def rows(self, model: type[Model], path: str, **query: Any) -> Iterator[Model]:
        """Every row of a list, page after page."""
        wanted = {name: value for name, value in query.items() if value not in (None, "")}
        offset = 0
        while True:
            page = self.json("GET", path, params={**wanted, "limit": PAGE, "offset": offset})
            yield from map(model.model_validate, page["items"])
            offset += len(page["items"])
            if not page["items"] or offset >= page["count"]:
                return

    def download(self, path: str, target: str | Path) -> Path:
        """Write an answer to a file, which appears once it is complete; returns its path."""
        target = Path(target)
        part = target.with_name(f".{target.name}.part")
        try:
            for attempt in range(self._retries + 1):
                with self._http.stream("GET", path) as answer:
                    if answer.status_code in BUSY and attempt < self._retries:
                        self._wait(attempt, answer.headers, answer.status_code)
                        continue
                    if answer.status_code != 200:
                        raise refusal(answer.status_code, answer.read())
                    with part.open("wb") as file:
                        for piece in answer.iter_bytes():
                            file.write(piece)
                    break
            part.replace(target)
        except httpx2.TransportError as error:
            raise Unavailable(f"the download broke off: {error}") from error
        finally:
            part.unlink(missing_ok=True)
        return target

    def _answer(self, method: str, path: str, **request: Any) -> httpx2.Response:
        for attempt in range(self._retries + 1):
            last = attempt == self._retries
            try:
                answer = self._http.request(method, path, **request)
            except httpx2.TransportError as error:
                if last or method != "GET":
                    raise Unavailable(f"{self._http.base_url} could not be reached: {error}") from error
                self._wait(attempt, {}, 0)
                continue
            if answer.status_code in BUSY and not last:
                self._wait(attempt, answer.headers, answer.status_code)
                continue
            if answer.status_code >= 400:
                raise refusal(answer.status_code, answer.content)
            return answer
        raise AssertionError("the last attempt returns or raises")

    def _wait(self, attempt: int, headers: Mapping[str, str], status: int) -> None:
        """Sleep before the next attempt; raise `Unavailable` if the site asks for more than `longest_wait`."""
        seconds = wait_of(headers.get("Retry-After", ""), default=float(2**attempt))
        if seconds > self._longest_wait:
            raise Unavailable(f"the site asks to wait {seconds:.0f} seconds", status=status)
        time.sleep(seconds)


def wait_of(header: str, *, default: float) -> float:
    """The seconds of a `Retry-After`, which is a number or a date; `default` if it is neither."""
    if header.strip().isdecimal():
        return float(header)
    try:
        at = parsedate_to_datetime(header)
    except ValueError:
        return default
    return max(0.0, (at.replace(tzinfo=at.tzinfo or UTC) - datetime.now(UTC)).total_seconds())


def stated(name: str, value: str | None) -> str:
    """An argument, or else the environment's variable; raises `ParleyError` if there is neither."""
    text = value or os.environ.get(name, "")
    if not text:
        raise ParleyError(f"state it as an argument or set {name}", where=name)
    return text
