"""Tables as CSV files that are sent while they are written."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from django.http import HttpRequest, StreamingHttpResponse
from django.utils.http import content_disposition_header

from training.tables import written
from webapp.core.streaming import Pieces, stream

_NO_NAME = re.compile(r"[^\w. -]+")


def _encoded(head: Sequence[object], rows: Iterable[Sequence[object]]) -> Pieces:
    for piece in written(head, rows):
        yield piece.encode()


def response(
    request: HttpRequest, title: str, head: Sequence[object], rows: Iterable[Sequence[object]]
) -> StreamingHttpResponse:
    """A download of the table; `title` names the file, whatever characters it holds."""
    answer = stream(request, _encoded(head, rows), "text/csv; charset=utf-8")
    answer["Content-Disposition"] = content_disposition_header(True, f"{_NO_NAME.sub('-', title)}.csv")
    return answer
