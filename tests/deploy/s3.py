"""A bucket on this machine for tests: the part of S3's protocol that boto3 uses, in memory; loopback only.

    with Bucket() as bucket:
        bucket.environment   # the variables with which the site stores its files there
        bucket.objects       # the stored files, by name

Signatures are not checked. A request that S3 has and this has not is answered with 501.
"""

from __future__ import annotations

import hashlib
import itertools
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

NAME = "parley-files"


@dataclass
class Bucket:
    """One bucket, in a thread of its own while it is entered."""

    objects: dict[str, bytes] = field(default_factory=dict)
    uploads: dict[str, dict[int, bytes]] = field(default_factory=dict)
    """Parts of multipart uploads that are not complete."""
    numbers: itertools.count[int] = field(default_factory=itertools.count)

    def __enter__(self) -> Self:
        handler = type("Handler", (_Handler,), {"bucket": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None):
        self._server.shutdown()
        self._server.server_close()

    @property
    def environment(self) -> dict[str, str]:
        """What `docker-compose.yml` passes on to use it."""
        return {
            "PARLEY_BUCKET": NAME,
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_DEFAULT_REGION": "nowhere-1",
            "AWS_ENDPOINT_URL_S3": f"http://127.0.0.1:{self._server.server_port}",
        }


class _Handler(BaseHTTPRequestHandler):
    bucket: Bucket
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        """Write nothing."""

    def _asked(self) -> tuple[str, dict[str, str]]:
        """The name of the object, and the query."""
        parts = urlsplit(self.path)
        _, _, name = unquote(parts.path).removeprefix("/").partition("/")
        return name, {key: values[0] for key, values in parse_qs(parts.query, keep_blank_values=True).items()}

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if "Content_Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            try:
                self.wfile.write(body)
            except ConnectionError:  # who reads a part of an object leaves
                self.close_connection = True

    def _xml(self, element: str, content: str) -> None:
        self._answer(200, f"<{element}>{content}</{element}>".encode(), Content_Type="application/xml")

    def _read(self) -> None:
        name, query = self._asked()
        if not name:
            self._list(query)
            return
        data = self.bucket.objects.get(name)
        if data is None:
            self._answer(404, b"<Error><Code>NoSuchKey</Code></Error>", Content_Type="application/xml")
            return
        stated = {"ETag": _tag(data), "Last_Modified": "Mon, 01 Jan 2024 00:00:00 GMT"}
        if asked := self.headers.get("Range"):
            first, _, last = asked.removeprefix("bytes=").partition("-")
            begin, end = int(first), min(int(last or len(data)), len(data) - 1)
            stated["Content_Range"] = f"bytes {begin}-{end}/{len(data)}"
            self._answer(206, data[begin : end + 1], **stated)
        else:
            self._answer(200, data, Content_Length=str(len(data)), **stated)

    do_GET = do_HEAD = _read  # noqa: N815 (names of http.server)

    def _list(self, query: dict[str, str]) -> None:
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        names, folders = [], set()
        for name in sorted(self.bucket.objects):
            rest = name.removeprefix(prefix)
            if not name.startswith(prefix):
                continue
            if delimiter and delimiter in rest:
                folders.add(prefix + rest.partition(delimiter)[0] + delimiter)
            else:
                names.append(name)
        sizes = ((name, len(self.bucket.objects[name])) for name in names)
        listed = "".join(f"<Contents><Key>{escape(n)}</Key><Size>{size}</Size></Contents>" for n, size in sizes)
        listed += "".join(
            f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>" for folder in sorted(folders)
        )
        self._xml("ListBucketResult", f"<IsTruncated>false</IsTruncated>{listed}")

    def do_PUT(self) -> None:
        name, query = self._asked()
        data = self._body()
        if "chunked" in self.headers.get("Content-Encoding", ""):
            self._answer(501)
            return
        if "uploadId" in query:
            self.bucket.uploads[query["uploadId"]][int(query["partNumber"])] = data
        else:
            self.bucket.objects[name] = data
        self._answer(200, ETag=_tag(data))

    def do_POST(self) -> None:
        name, query = self._asked()
        self._body()
        if "uploads" in query:
            upload = str(next(self.bucket.numbers))
            self.bucket.uploads[upload] = {}
            self._xml("InitiateMultipartUploadResult", f"<UploadId>{upload}</UploadId>")
        elif "uploadId" in query:
            parts = self.bucket.uploads.pop(query["uploadId"])
            data = b"".join(part for _, part in sorted(parts.items()))
            self.bucket.objects[name] = data
            self._xml("CompleteMultipartUploadResult", f"<ETag>{_tag(data)}</ETag>")
        else:
            self._answer(501)

    def do_DELETE(self) -> None:
        name, _ = self._asked()
        self.bucket.objects.pop(name, None)
        self._answer(204)


def _tag(data: bytes) -> str:
    return f'"{hashlib.md5(data, usedforsecurity=False).hexdigest()}"'
