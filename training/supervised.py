"""Who started this process: a supervisor holds its standard input as a pipe, whose end says that it is gone."""

from __future__ import annotations

import functools
import os
import select
import stat
import sys


@functools.cache
def held_input() -> int | None:
    """Return the descriptor of standard input if it is a pipe that somebody held open when this was asked first.

    Ask early: of a pipe that is at its end already nobody can tell whether it was ever held. A terminal, /dev/null or
    a pipe with something in it says nothing either.
    """
    try:
        descriptor = sys.stdin.fileno()
        mode = os.fstat(descriptor).st_mode
    except (AttributeError, OSError, ValueError):
        return None
    pipe = stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
    return descriptor if pipe and not select.select([descriptor], [], [], 0)[0] else None
