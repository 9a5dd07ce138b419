"""The errors Parley raises on purpose, named after the boundary that was crossed.

`BadInput` is the user's to mend (exit code 2, HTTP 4xx). Everything else under `OutsideError` happened outside the
model and is recorded as data (`ErrorRecord`), never as a reward.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

log = logging.getLogger(__name__)


class ParleyError(Exception):
    """Base of every error raised on purpose."""


class BadInput(ParleyError):
    """Something the user gave is wrong. `where` names the place (file, line, field), `why` says what to change."""

    def __init__(self, why: str, where: str = "") -> None:
        super().__init__(f"{where}: {why}" if where else why)
        self.why = why
        self.where = where


class IllegalMove(ParleyError):
    """A move the game does not allow now; the game is unchanged. The message is shown to the seat."""


class ParseError(IllegalMove):
    """A reply from which no move could be read. The message is shown to the seat."""


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
    """A judge could not score: a state of its own, never a zero."""

    kind = "judge"


class PluginError(OutsideError):
    """The code of an installed plugin failed while it was imported."""

    kind = "plugin"


class DivergedError(OutsideError):
    """Training left the finite numbers for several steps in a row."""

    kind = "diverged"


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
