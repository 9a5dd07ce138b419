"""Errors of the client: what the site refused and why, or that it could not be reached."""

from __future__ import annotations

import json


class ParleyError(Exception):
    """A request failed. `status` is the HTTP status, 0 without an answer; `where` is the wrong field, if one is."""

    def __init__(self, why: str, *, where: str = "", status: int = 0) -> None:
        super().__init__(f"{where}: {why}" if where else why)
        self.why, self.where, self.status = why, where, status


class Unauthorised(ParleyError):
    """401: the key is missing, wrong or revoked."""


class NotFound(ParleyError):
    """404: it is not there, or not for the owner of this key."""


class Conflict(ParleyError):
    """409: not possible now."""


class Invalid(ParleyError):
    """422: a field is wrong; `where` names it."""


class Unavailable(ParleyError):
    """The site could not be reached, or still answered 429 or 503 after every retry."""


class TimedOut(ParleyError):
    """A wait took longer than its `timeout`; the run or the match goes on."""


class RunFailed(ParleyError):
    """A run that was awaited has failed or was stopped; `why` is the site's sentence."""


KINDS: dict[int, type[ParleyError]] = {
    401: Unauthorised,
    404: NotFound,
    409: Conflict,
    422: Invalid,
    429: Unavailable,
    503: Unavailable,
}


def refusal(status: int, body: bytes) -> ParleyError:
    """The error of an answer, in the site's words where it has some."""
    why, where = f"the site answered {status}", ""
    try:
        data = json.loads(body)
    except ValueError:
        data = None
    if isinstance(data, dict):
        problem = (data.get("errors") or [data])[0]  # a refused import lists what is wrong in its files
        why, where = str(problem.get("why") or why), str(problem.get("where") or "")
    return KINDS.get(status, ParleyError)(why, where=where, status=status)
