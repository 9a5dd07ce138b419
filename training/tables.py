"""Tables as CSV without cells that a spreadsheet would run as formulas."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence

FORMULA = frozenset("=+-@\t\r\n＝＋－＠")
"""The first characters of what a spreadsheet takes for a formula, or skips before one."""
ROWS = 200
"""Rows of one piece of a table."""


def cell(value: object) -> object:
    """The value of a cell: a text that begins as a formula does gets an apostrophe in front; None is empty."""
    if value is None:
        return ""
    if isinstance(value, str) and (value[:1] in FORMULA or value.lstrip()[:1] in FORMULA) and value:
        return f"'{value}"
    return value


def written(head: Sequence[object], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """Yield the table in pieces of `ROWS` rows."""
    sink = io.StringIO()
    writer = csv.writer(sink)
    writer.writerow([cell(value) for value in head])
    for number, row in enumerate(rows, 1):
        writer.writerow([cell(value) for value in row])
        if number % ROWS == 0:
            yield sink.getvalue()
            sink.seek(0)
            sink.truncate()
    yield sink.getvalue()
