"""Labels of a queue as files in the formats of `training.labels.exchange`, streamed.

Judgments may change afterwards, so that runs cannot start from such a file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.http import HttpRequest, StreamingHttpResponse
from django.utils.http import content_disposition_header

from training.labels.exchange import Format, LabelledScenario
from training.labels.exchange.label_studio import config
from webapp.accounts.models import User
from webapp.core.streaming import PIECE, Pieces, stream
from webapp.judgments.datasets.export import Export, check_judged, nothing
from webapp.judgments.models import Queue


@dataclass
class LabelFile:
    """The labels of a queue in one format. `name` is what the file is called."""

    queue: Queue
    format: Format
    export: Export
    seats: int = 0
    """The most seats of a game that was written so far."""

    @property
    def name(self) -> str:
        """The file's name for a download."""
        return f"labels-{self.queue.pk}.{self.format.suffix}"

    def pieces(self) -> Iterator[str]:
        """Yield the file."""
        return self.format.write(self.queue.codebook_version.record(), self._scenarios())

    def labeling_config(self) -> str:
        """Return Label Studio's configuration for the games that were written."""
        return config(self.queue.codebook_version.record(), self.seats)

    def _scenarios(self) -> Iterator[LabelledScenario]:
        for labelled in self.export.scenarios():
            self.seats = max(self.seats, len(labelled.scenario.seats))
            yield labelled


def labels_of(queue: Queue, format: Format, by: User | None) -> LabelFile:
    """Return the labels of a queue for a person; None: for the site's operator.

    Raises `BadInput` if nothing can be exported, or if the file would reveal labels of targets that the person has yet
    to judge.
    """
    if by is not None:
        check_judged(queue, by)
    export = Export(queue, by)
    if not export:
        raise nothing(export)
    return LabelFile(queue, format, export)


def download(request: HttpRequest, labels: LabelFile) -> StreamingHttpResponse:
    """Return the file as an answer that is written while it is sent."""
    answer = stream(request, _encoded(labels.pieces()), labels.format.content_type)
    answer["Content-Disposition"] = content_disposition_header(True, labels.name)
    return answer


def _encoded(pieces: Iterator[str]) -> Pieces:
    """The pieces in UTF-8, small ones together."""
    buffer = bytearray()
    for piece in pieces:
        buffer += piece.encode()
        if len(buffer) >= PIECE:
            yield bytes(buffer)
            buffer.clear()
    yield bytes(buffer)
