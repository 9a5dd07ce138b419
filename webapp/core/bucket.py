"""The bucket as Django's storage. What is read of an object is neither held in memory as a whole nor copied to disk.

Objects are as large as checkpoints, and a record of an episode is a small part of one. Raises what django-storages and
boto3 raise.
"""

from __future__ import annotations

import io
from typing import Any

from botocore.exceptions import BotoCoreError
from django.core.files import File
from storages.backends.s3 import S3Storage

BLOCK = 2**20
"""Bytes that are read at once."""
TRIES = 5
"""Connections that may break in a row until reading fails."""


class Bucket(S3Storage):
    """django-storages itself reads an object into memory before its first byte can be used."""

    def _open(self, name: str, mode: str = "rb") -> Any:
        file = super()._open(name, mode)
        return file if "w" in mode else File(io.BufferedReader(ObjectReader(file.obj), BLOCK), name)


class ObjectReader(io.RawIOBase):
    """Reads an object of boto3 from any position on, over one connection as long as it is read in order."""

    def __init__(self, stored: Any) -> None:
        self._object, self._size = stored, int(stored.content_length)
        self._position = 0
        self._body: Any = None

    def readable(self) -> bool:
        """See `io.IOBase`."""
        return True

    def seekable(self) -> bool:
        """See `io.IOBase`."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """See `io.IOBase`."""
        position = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        if position != self._position:
            self._disconnect()
            self._position = position
        return position

    def readinto(self, buffer: Any) -> int:
        """See `io.RawIOBase`."""
        data = self._read(len(buffer)) if self._position < self._size else b""
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)

    def close(self) -> None:
        """See `io.IOBase`."""
        self._disconnect()
        super().close()

    def _read(self, size: int) -> bytes:
        for left in reversed(range(TRIES)):
            try:
                if self._body is None:
                    self._body = self._object.get(Range=f"bytes={self._position}-")["Body"]
                data: bytes = self._body.read(size)
            except BotoCoreError:
                self._disconnect()
                if not left:
                    raise
            else:
                return data
        raise AssertionError

    def _disconnect(self) -> None:
        body, self._body = self._body, None
        if body is not None:
            body.close()
