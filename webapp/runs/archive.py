"""Streaming zip downloads of stored folders, of any size."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from django.core.files.storage import default_storage
from django.http import HttpRequest, StreamingHttpResponse
from django.utils.http import content_disposition_header

from webapp.core.streaming import Pieces, stream

CHUNK = 1024 * 1024
_NO_NAME = re.compile(r"[^\w. -]+")


class _Sink(io.RawIOBase):
    """A write-only buffer for the zip writer. It cannot seek, so each file's size follows its data."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]
        self.parts.append(bytes(data))
        return len(data)

    def take(self) -> bytes:
        """Return and clear the bytes written since the last call."""
        written, self.parts = b"".join(self.parts), []
        return written


def _opened(name: str) -> Any:
    return Path(name).open("rb") if Path(name).is_absolute() else default_storage.open(name, "rb")


def zipped(root: str, names: Sequence[str], texts: Mapping[str, str]) -> Pieces:
    """The zip file piece by piece, `texts` first. Weights do not compress, so files are stored as they are."""
    sink = _Sink()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for name, text in texts.items():
            archive.writestr(name, text)
        for name in names:
            inside = name.removeprefix(root).lstrip("/")
            with _opened(name) as source, archive.open(inside, "w", force_zip64=True) as member:
                while piece := source.read(CHUNK):
                    member.write(piece)
                    yield sink.take()
    yield sink.take()


def zipped_contents(contents: Mapping[str, Iterable[bytes]]) -> Pieces:
    """A zip file with a member for every name, streamed."""
    sink = _Sink()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED, allowZip64=True) as archive:
        for name, content in contents.items():
            with archive.open(name, "w", force_zip64=True) as member:
                for piece in content:
                    member.write(piece)
                    yield sink.take()
    yield sink.take()


def zip_response(
    request: HttpRequest, title: str, root: str, names: Sequence[str], texts: Mapping[str, str] | None = None
) -> StreamingHttpResponse:
    """A download of the files `names` below `root` and of `texts` by name; `title` names it, whatever it holds."""
    return _attachment(request, title, zipped(root, names, texts or {}))


def contents_response(
    request: HttpRequest, title: str, contents: Mapping[str, Iterable[bytes]]
) -> StreamingHttpResponse:
    """A download of a zip file with a member for every name; `title` names the zip file."""
    return _attachment(request, title, zipped_contents(contents))


def _attachment(request: HttpRequest, title: str, pieces: Pieces) -> StreamingHttpResponse:
    response = stream(request, pieces, "application/zip")
    response["Content-Disposition"] = content_disposition_header(True, f"{_NO_NAME.sub('-', title)}.zip")
    return response
