"""How `manage.py` ends when a command fails: one line on standard error and an exit status, without a traceback.

Statuses: 2 for whatever the caller can mend (a database that cannot be reached or is not migrated, settings, files,
input), 141 after a closed pipe and 130 after Ctrl-C, as other programs of a shell have it. Mistakes of the program
keep their traceback.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, InterfaceError, OperationalError
from psycopg.errors import UndefinedColumn, UndefinedTable

from training.errors import BadInput
from webapp.core.embedded import EmbeddedError

REFUSED = 2
CLOSED_PIPE = 141
"""128 and the number of SIGPIPE."""
INTERRUPTED = 130
"""128 and the number of SIGINT."""


@contextmanager
def reported(arguments: Sequence[str]) -> Iterator[None]:
    """Run a command inside; what it raises is reported in a line, unless `--traceback` is among its arguments."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        # The interpreter flushes standard output once more as it ends, which must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(CLOSED_PIPE)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except (DatabaseError, InterfaceError, OSError, ImproperlyConfigured, BadInput, EmbeddedError) as error:
        if "--traceback" in arguments:
            raise
        sys.stderr.write(f"error: {explained(error)}\n")
        sys.exit(REFUSED)


def explained(error: Exception) -> str:
    """Return in one line what went wrong and, where that is known, what to do."""
    first = (str(error).strip().splitlines() or [type(error).__name__])[0]
    if isinstance(error.__cause__, UndefinedTable | UndefinedColumn):
        return f"the database does not have this version's tables ({first}); run `manage.py migrate`"
    if isinstance(error, OperationalError | InterfaceError):
        return f"the database cannot be used: {first}"
    if isinstance(error, DatabaseError):
        return f"the database refused it: {first}"
    if isinstance(error, EmbeddedError):
        return " ".join(str(error).split("\n"))
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return first
