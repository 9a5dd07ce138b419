"""Finished files and folders in Django's default storage.

A local storage contains the run directories, so episodes are read in place; checkpoints are hard-linked, because a run
deletes its older ones. With a bucket, finished files are uploaded and read back.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.core.files import File
from django.core.files.storage import default_storage

from training.errors import OutsideError, boundary
from training.store import MANIFEST, looks_complete


class StorageError(OutsideError):
    """The storage failed: it cannot be reached, is full or refuses access."""

    kind = "storage"


@contextmanager
def storing() -> Iterator[None]:
    """Raise `StorageError` for whatever the storage raises inside the block, except for a missing file."""
    missing = None
    with boundary(into=StorageError):
        try:
            yield
        except FileNotFoundError as error:
            missing = error
    if missing is not None:
        raise missing


def local(name: str) -> Path | None:
    """The path of a stored file if the storage is a local folder."""
    try:
        return Path(default_storage.path(name))
    except NotImplementedError:
        return None


def name_of(path: Path, root: Path, name: str) -> str:
    """The storage name of a file below `root`, which itself is called `name`."""
    return f"{name}/{path.relative_to(root).as_posix()}"


@storing()
def publish_file(path: Path, name: str) -> None:
    """Make a finished file readable under `name`; does nothing if it is there already. Raises `StorageError`."""
    target = local(name)
    if target is not None and target.exists() and target.samefile(path):
        return
    if target is not None:
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{target.name}.{os.getpid()}")
        temporary.unlink(missing_ok=True)
        try:
            os.link(path, temporary)
        except OSError:  # another file system
            shutil.copy2(path, temporary)
        temporary.replace(target)
        return
    overwrites = getattr(default_storage, "file_overwrite", False)  # a bucket does so in one step
    if not overwrites and default_storage.exists(name):
        default_storage.delete(name)
    with path.open("rb") as file:
        default_storage.save(name, File(file))


@storing()
def publish_folder(folder: Path, name: str) -> None:
    """Make a complete folder readable under `name`; its manifest comes last. Raises `StorageError`."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    for path in sorted(files, key=lambda file: file.name == MANIFEST):
        publish_file(path, name_of(path, folder, name))


@storing()
def fetch_folder(name: str, target: Path, without: str = "") -> Path:
    """A local folder with the content of the stored one: itself if the storage is local, else a download.

    What is in its folder `without` is not downloaded, and nothing is if `target` has it all. The manifest is copied
    last, so an interrupted download is not taken for a complete folder. Raises `StorageError`.
    """
    folder = local(name)
    if folder is not None:
        return folder
    if looks_complete(target, without) and _is_stored(target / MANIFEST, f"{name}/{MANIFEST}"):
        return target
    wanted = (entry for entry in walk(name) if not (without and entry.startswith(f"{name}/{without}/")))
    for entry in sorted(wanted, key=lambda file: file.endswith(f"/{MANIFEST}")):
        path = target / entry.removeprefix(name + "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        with default_storage.open(entry, "rb") as source, path.open("wb") as copy:
            shutil.copyfileobj(source, copy)
    return target


def _is_stored(file: Path, name: str) -> bool:
    """Whether a local file is the stored one."""
    try:
        with default_storage.open(name, "rb") as stored:
            return bool(stored.read() == file.read_bytes())
    except FileNotFoundError:
        return False


def walk(name: str) -> Iterator[str]:
    """The names of all files below a stored folder, or below a local one with an absolute path.

    A missing folder yields nothing.
    """
    if Path(name).is_absolute():
        yield from sorted(str(path) for path in Path(name).rglob("*") if path.is_file())
        return
    try:
        folders, files = default_storage.listdir(name)
    except FileNotFoundError:  # a bucket lists nothing instead
        return
    yield from (f"{name}/{file}" for file in sorted(files))
    for folder in sorted(folders):
        yield from walk(f"{name}/{folder}")


UNREADABLE = (OSError, EOFError, ValueError, zlib.error)
"""What reading a record raises if its file is gone or damaged."""


def read_member(name: str, offset: int, length: int) -> dict[str, Any]:
    """One record of an episode file; raises one of `UNREADABLE` if the file is gone or damaged."""
    with default_storage.open(name, "rb") as file:
        file.seek(offset)
        data: dict[str, Any] = json.loads(gzip.decompress(file.read(length)))
    return data


def read_file(name: str) -> bytes | None:
    """A small stored file; None if it is gone or the storage fails."""
    try:
        with storing(), default_storage.open(name, "rb") as file:
            content: bytes = file.read()
    except (FileNotFoundError, StorageError):
        return None
    return content


@storing()
def delete_folder(name: str) -> None:
    """Delete a stored folder if it exists; raises `StorageError`."""
    folder = local(name)
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
        return
    for entry in list(walk(name)):
        default_storage.delete(entry)
