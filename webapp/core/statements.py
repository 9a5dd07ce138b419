"""Plain SQL for moves: prepared statements, pipelined.

Django compiles each query, sends it as text and waits for its result. A move takes a dozen statements, for which
compiling, planning and round trips take longer than the work itself (`python -m bench move`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

from django.db import connection
from django.db.backends.postgresql.base import ServerBindingCursor
from django.db.backends.utils import CursorWrapper
from django.db.models import Model

Row = TypeVar("Row", bound=Model)


def execute(statement: str, parameters: Sequence[Any] | Mapping[str, Any]) -> CursorWrapper:
    """Execute a statement; return its cursor. A connection prepares it after a few executions, and keeps the plan.

    Name the columns: after a migration, the cached plan of a `SELECT *` would fail.
    """
    connection.ensure_connection()
    wrap = connection.make_debug_cursor if connection.queries_logged else connection.make_cursor
    wrapped = wrap(ServerBindingCursor(connection.connection))  # type: ignore[arg-type, call-arg]  # the stubs are wrong
    wrapped.execute(statement, parameters)
    return wrapped


@contextmanager
def pipelined() -> Iterator[None]:
    """Send the statements of this block without waiting for results; fetching rows waits for all statements so far.

    The error of a failed statement is raised by the next fetch, or at the end of the block.
    """
    connection.ensure_connection()
    with connection.wrap_database_errors, connection.connection.pipeline():
        yield


class Columns(Generic[Row]):
    """The columns of a model for a SELECT, and model instances from the resulting rows."""

    def __init__(self, model: type[Row]) -> None:
        fields = model._meta.concrete_fields
        self._model, self._names = model, [field.attname for field in fields]
        self._loaders = [
            (index, field.from_db_value) for index, field in enumerate(fields) if hasattr(field, "from_db_value")
        ]
        self.sql = ", ".join(f'"{field.column}"' for field in fields)

    def load(self, row: Sequence[Any]) -> Row:
        """Return the instance for a row."""
        values = list(row)
        for index, load in self._loaders:
            values[index] = load(values[index], None, connection)
        return self._model.from_db(connection.alias, self._names, values)
