"""A storage without local paths, in memory: what a bucket is to the site. Names are all there is, folders are not."""

from io import BytesIO
from typing import Any

from django.core.files.base import ContentFile, File
from django.core.files.storage import Storage

SETTINGS = {
    "default": {"BACKEND": "tests.bucket.Bucket"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}


class Bucket(Storage):
    """Behaves as an S3 bucket: no `path`, a missing folder is listed as empty, and deleting a missing file succeeds."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}

    def _open(self, name: str, mode: str = "rb") -> File:
        if name not in self.objects:
            raise FileNotFoundError(name)
        return File(BytesIO(self.objects[name]), name)

    def _save(self, name: str, content: Any) -> str:
        self.objects[name] = b"".join(content.chunks() if hasattr(content, "chunks") else ContentFile(content.read()))
        return name

    def exists(self, name: str) -> bool:
        return name in self.objects

    def delete(self, name: str) -> None:
        self.objects.pop(name, None)

    def listdir(self, path: str) -> tuple[list[str], list[str]]:
        inside = [name.removeprefix(f"{path}/") for name in self.objects if name.startswith(f"{path}/")]
        folders = sorted({name.split("/")[0] for name in inside if "/" in name})
        return folders, sorted(name for name in inside if "/" not in name)
