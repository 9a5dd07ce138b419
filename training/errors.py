"""The errors Parley raises on purpose, named after the boundary that was crossed.

`BadInput` is the user's to mend (exit code 2, HTTP 4xx). Everything else under `OutsideError` happened outside the
model and is recorded as data (`ErrorRecord`), never as a reward.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager

log = logging.getLogger(__name__)


class ParleyError(Exception):
    """Base of every error raised on purpose."""


class BadInput(ParleyError):
    """Invalid user input. `where` names the place (file, line, field), `why` says what to change."""

    def __init__(self, why: str, where: str = "") -> None:
        super().__init__(f"{where}: {why}" if where else why)
        self.why = why
        self.where = where


class IllegalMove(ParleyError):
    """A move the game does not allow now; the game is unchanged. The message is shown to the seat."""


class ParseError(IllegalMove):
    """A reply that could not be parsed as a move. The message is shown to the seat."""


class OutsideError(ParleyError):
    """A failure outside the model's answers; `kind` names the boundary that was crossed."""

    kind = "internal"


class EngineError(OutsideError):
    """The sampling engine failed."""

    kind = "engine"


class RemoteModelError(OutsideError):
    """A remote model did not answer usably after its retries."""

    kind = "remote"


class WindowFull(RemoteModelError):
    """A remote model refused a conversation for being longer than its window."""


class JudgeError(OutsideError):
    """A judge could not score; this is never treated as a zero."""

    kind = "judge"


class PluginError(OutsideError):
    """The code of an installed plugin failed while it was imported."""

    kind = "plugin"


class DivergedError(OutsideError):
    """Several training steps in a row had values that were not finite."""

    kind = "diverged"


class ProcessLost(ParleyError):
    """A process of a run on several has died or hangs. Another attempt goes on from the last checkpoint.

    It is no `OutsideError`, because it concerns the whole run and must not be recorded as the failure of one game.
    """

    kind = "process"


FULL = ("No space left on device", "Disk quota exceeded")
"""The system's words for a disk on which nothing more can be written; errors of libraries repeat them."""
OF_HOST = "a disk of "


def name_full_disk(why: str) -> str:
    """Return why something failed, with this host's name if a disk was full; another host may have put in its own."""
    if OF_HOST in why or not any(words in why for words in FULL):
        return why
    return f"{OF_HOST}{socket.gethostname()} is full: {why}"


@contextmanager
def boundary(*, into: type[OutsideError] = OutsideError) -> Iterator[None]:
    """Turn whatever a library raises inside the block into `into`; errors raised on purpose pass unchanged.

    This is the only broad `except` besides the root of a task.
    """
    try:
        yield
    except ParleyError:
        raise
    except Exception as error:
        log.exception("failure at the %s boundary", into.kind)
        raise into(f"{type(error).__name__}: {error}") from error
