"""Objects of a bucket are read as they arrive: neither a checkpoint nor the episodes of a step fit any memory."""

import io
import random

import pytest
from botocore.exceptions import ReadTimeoutError
from django.core.files.base import ContentFile

from tests.deploy import s3
from webapp.core import files
from webapp.core.bucket import BLOCK, TRIES, Bucket, ObjectReader

DATA = random.Random(0).randbytes(4 * BLOCK + 7)


class Stored:
    """An object of boto3 whose connections each break after `lasts` bytes. `begun` are ranges, `read` counts bytes."""

    content_length = len(DATA)

    def __init__(self, lasts=content_length):
        self.lasts, self.begun, self.read = lasts, [], 0

    def get(self, Range):  # noqa: N803 (the name in boto3)
        self.begun.append(Range)
        return {"Body": Connection(self, int(Range.removeprefix("bytes=").removesuffix("-")))}


class Connection:
    def __init__(self, stored, position):
        self.stored, self.position, self.left = stored, position, stored.lasts

    def read(self, size):
        if not self.left:
            raise ReadTimeoutError(endpoint_url="https://s3.example")
        data = DATA[self.position : self.position + min(size, self.left)]
        self.position, self.left = self.position + len(data), self.left - len(data)
        self.stored.read += len(data)
        return data

    def close(self):
        pass


def opened(stored):
    return io.BufferedReader(ObjectReader(stored), BLOCK)


def test_an_object_is_read_over_one_connection_and_no_more_of_it_than_is_used():
    stored = Stored()
    with opened(stored) as file:
        read = [file.read(BLOCK // 2)]
        assert stored.read == BLOCK
        while piece := file.read(BLOCK // 2):
            read.append(piece)
    assert b"".join(read) == DATA
    assert stored.begun == ["bytes=0-"]


def test_a_part_of_an_object_is_read_from_its_place():
    stored = Stored()
    with opened(stored) as file:
        file.seek(3 * BLOCK)
        assert file.read(10) == DATA[3 * BLOCK :][:10]
        assert file.seek(-5, io.SEEK_END) == len(DATA) - 5
        assert file.read() == DATA[-5:]
        assert file.read() == b""
    assert stored.begun[0] == f"bytes={3 * BLOCK}-"
    assert stored.read < 2 * BLOCK


def test_a_connection_that_breaks_is_made_again_where_it_broke():
    stored = Stored(lasts=BLOCK + 3)
    with opened(stored) as file:
        assert file.read() == DATA
    assert stored.begun == [f"bytes={n * (BLOCK + 3)}-" for n in range(4)]
    assert stored.read == len(DATA)


def test_an_object_that_cannot_be_read_is_given_up():
    stored = Stored(lasts=0)
    with opened(stored) as file, pytest.raises(ReadTimeoutError):
        file.read()
    assert stored.begun == ["bytes=0-"] * TRIES


def options(stand_in):
    """How the storage reaches the stand-in for S3."""
    names = {
        "access_key": "AWS_ACCESS_KEY_ID",
        "secret_key": "AWS_SECRET_ACCESS_KEY",
        "region_name": "AWS_DEFAULT_REGION",
        "endpoint_url": "AWS_ENDPOINT_URL_S3",
    }
    return {"bucket_name": s3.NAME} | {name: stand_in.environment[variable] for name, variable in names.items()}


def test_what_is_stored_in_a_bucket_is_read_from_there():
    with s3.Bucket() as stand_in:
        storage = Bucket(**options(stand_in))
        storage.save("runs/7/weights", ContentFile(DATA))
        storage.save("runs/7/nothing", ContentFile(b""))
        with storage.open("runs/7/weights") as file:
            assert file.size == len(DATA)
            file.seek(2 * BLOCK)
            assert file.read(100) == DATA[2 * BLOCK :][:100]
        with storage.open("runs/7/weights") as file:
            assert b"".join(file.chunks()) == DATA
        with storage.open("runs/7/nothing") as file:
            assert file.read() == b""
        with pytest.raises(FileNotFoundError):
            storage.open("runs/7/other")


def test_a_file_that_is_published_again_takes_the_place_of_the_first_in_one_step(settings, tmp_path, monkeypatch):
    """Else it could not be read meanwhile, and never again if the process is killed then."""
    deleted = []
    monkeypatch.setattr(s3._Handler, "do_DELETE", lambda handler: deleted.append(handler.path))
    with s3.Bucket() as stand_in:
        bucket = {"BACKEND": "webapp.core.bucket.Bucket", "OPTIONS": options(stand_in)}
        settings.STORAGES = settings.STORAGES | {"default": bucket}
        for text in ("first", "first and second"):
            (tmp_path / "step").write_text(text)
            files.publish_file(tmp_path / "step", "runs/7/step")
            assert stand_in.objects["runs/7/step"].decode() == text
    assert deleted == []
