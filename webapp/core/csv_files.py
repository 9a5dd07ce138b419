"""Tables as CSV files: streamed, and without cells that a spreadsheet would run as formulas."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence

from django.http import HttpRequest, StreamingHttpResponse
from django.utils.http import content_disposition_header

from webapp.core.streaming import Pieces, stream

FORMULA = frozenset("=+-@\t\r\n＝＋－＠")
_NO_NAME = re.compile(r"[^\w. -]+")
ROWS = 200
"""Rows of one piece of the answer."""


def cell(value: object) -> object:
    """The value of a cell: a text that begins as a formula does gets an apostrophe in front; None is empty."""
    if value is None:
        return ""
    if isinstance(value, str) and (value[:1] in FORMULA or value.lstrip()[:1] in FORMULA) and value:
        return f"'{value}"
    return value


def written(head: Sequence[object], rows: Iterable[Sequence[object]]) -> Pieces:
    """The file in pieces of `ROWS` rows."""
    sink = io.StringIO()
    writer = csv.writer(sink)
    writer.writerow([cell(value) for value in head])
    for number, row in enumerate(rows, 1):
        writer.writerow([cell(value) for value in row])
        if number % ROWS == 0:
            yield sink.getvalue().encode()
            sink.seek(0)
            sink.truncate()
    yield sink.getvalue().encode()


def response(
    request: HttpRequest, title: str, head: Sequence[object], rows: Iterable[Sequence[object]]
) -> StreamingHttpResponse:
    """A download of the table; `title` names the file, whatever characters it holds."""
    answer = stream(request, written(head, rows), "text/csv; charset=utf-8")
    answer["Content-Disposition"] = content_disposition_header(True, f"{_NO_NAME.sub('-', title)}.csv")
    return answer
