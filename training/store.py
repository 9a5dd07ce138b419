"""Files that survive a kill at any moment: append-only lines, atomic files and directories.

A directory is complete exactly when its `manifest.json`, written last, names every file with its hash. Readers leave a
torn last line to be completed, and refuse a directory whose manifest is missing or does not match.
"""

from __future__ import annotations

import functools
import glob
import gzip
import hashlib
import json
import logging
import math
import os
import re
import shutil
import stat
import sys
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

from training.errors import BadInput

log = logging.getLogger(__name__)

MANIFEST = "manifest.json"
LEFT = re.compile(r"\.(?P<name>.+)\.(?P<kind>tmp|old)-(?P<pid>\d+)")
"""What `atomic_directory` calls a folder that is being written (tmp) or is making room for it (old)."""


def dumps(data: object) -> str:
    """Return compact JSON; NaN and infinity are refused."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def loads(text: str | bytes) -> Any:
    """Return JSON data; raise `ValueError` for text that is not JSON.

    NaN, infinity (also as a number that is too large), a key that an object has twice, nesting that Python cannot
    follow and bytes that are not UTF-8 are refused too.
    """
    try:
        return json.loads(
            text if isinstance(text, str) else text.decode("utf-8"),
            parse_constant=_no_constant,
            parse_float=_finite,
            object_pairs_hook=unique_keys,
        )
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def from_json(text: str | bytes, where: str) -> Any:
    """Return the JSON data of one line; raise `BadInput` naming `where`, with the column."""
    try:
        return loads(text)
    except json.JSONDecodeError as error:
        raise BadInput(f"not JSON: {error.msg} at column {error.colno}", where) from error
    except UnicodeDecodeError as error:
        raise BadInput(f"not UTF-8 at byte {error.start}", where) from error
    except ValueError as error:
        raise BadInput(f"not JSON: {error}", where) from error


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON; raise `ValueError` for a key that stands in it twice.

    The standard library alone would keep the last value silently.
    """
    data = dict(pairs)
    if len(data) < len(pairs):
        ((twice, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"the key {twice[:80]!r} stands twice in one object")
    return data


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not a number in JSON")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text} is too large")
    return number


def check_file(path: Path) -> None:
    """Raise `BadInput` unless `path` is a regular file: reading a pipe or a device may never end."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise BadInput(error.strerror or "cannot be read", str(path)) from error
    if stat.S_ISDIR(mode):
        raise BadInput("a folder, where a file is expected", str(path))
    if not stat.S_ISREG(mode):
        raise BadInput("not a regular file but a pipe, a socket or a device; copy its content to a file", str(path))


def numbered_lines(path: Path, longest: int = sys.maxsize - 1) -> Iterator[tuple[int, bytes]]:
    """Yield every line of a text file that is not blank, with its number from 1; a byte order mark is skipped.

    Raises `BadInput` unless `path` is a regular file, and at a line of more than `longest` bytes, before it is read.
    """
    check_file(path)
    with path.open("rb") as file:
        for number, raw in enumerate(iter(lambda: file.readline(longest + 1), b""), 1):
            if len(raw) > longest:
                raise BadInput(f"a line of more than {longest} bytes", f"{path.name} line {number}")
            line = raw.removeprefix(BOM_UTF8) if number == 1 else raw
            if line.strip():
                yield number, line


def append_line(path: Path, data: Mapping[str, Any]) -> None:
    """Append one JSON line whole, or raise `OSError` and leave the file as it was."""
    _append(path, (dumps(data) + "\n").encode())


def _append(path: Path, data: bytes) -> int:
    """Append all of `data` or nothing; return the offset in bytes at which it begins."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab", buffering=0) as file:
        begin = file.tell()
        try:
            while data:  # a full disk may take a part without an error
                data = data[file.write(data) :]
        except OSError:
            file.truncate(begin)
            raise
    return begin


def read_lines(path: Path, offset: int = 0) -> Iterator[tuple[dict[str, Any], int]]:
    """Yield (line, offset after it) from byte `offset`; stop at a line that is not complete yet.

    A complete line that is no JSON object is skipped with a warning.
    """
    if not path.exists():
        return
    with path.open("rb") as file:
        file.seek(offset)
        for raw in file:
            if not raw.endswith(b"\n"):
                return
            begin, offset = offset, offset + len(raw)
            if not raw.strip():
                continue
            try:
                line = loads(raw)
            except ValueError:
                line = None
            if isinstance(line, dict):
                yield line, offset
            else:
                _warn_of_line(path, begin)


@functools.lru_cache(maxsize=1024)
def _warn_of_line(path: Path, offset: int) -> None:
    """Log the warning once, because followers of a file read an invalid last line repeatedly."""
    log.warning("%s: the line at byte %d is no JSON object and is skipped", path, offset)


def write_json(path: Path, data: Mapping[str, Any]) -> None:
    """Replace `path` atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path) as file:
        file.write(dumps(data))


@contextmanager
def atomic_file(path: Path) -> Iterator[TextIO]:
    """Yield a text file that takes the place of `path` when the block ends well, and vanishes when it does not.

    Raises `OSError` where the file cannot be made or written; what was at `path` is then unchanged.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def append_member(path: Path, data: Mapping[str, Any]) -> tuple[int, int]:
    """Append `data` as one gzip member; return (offset, length) in bytes. `gzip` reads the file whole as lines."""
    member = gzip.compress((dumps(data) + "\n").encode(), compresslevel=5, mtime=0)
    return _append(path, member), len(member)


def read_member(path: Path, offset: int, length: int) -> dict[str, Any]:
    """Return the record that `append_member` wrote at (offset, length)."""
    with path.open("rb") as file:
        file.seek(offset)
        data: dict[str, Any] = json.loads(gzip.decompress(file.read(length)))
    return data


def sha256(path: Path) -> str:
    """Return the hex SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def atomic_directory(final: Path) -> Iterator[Path]:
    """Yield a temporary folder that becomes `final` when the block ends well, and vanishes when it does not.

    Order: fsync everything inside, write the manifest with hashes, fsync the folder, rename, fsync the parent. An
    existing `final` is moved aside when the new content is complete on disk, and deleted when that is in its place.
    """
    final.parent.mkdir(parents=True, exist_ok=True)
    sweep(final.parent, glob.escape(final.name))
    temporary, aside = (final.with_name(f".{final.name}.{kind}-{os.getpid()}") for kind in ("tmp", "old"))
    temporary.mkdir()
    try:
        yield temporary
        inside = sorted(temporary.rglob("*"))
        for path in inside:
            _fsync(path)
        files = [path for path in inside if path.is_file()]
        hashes = {str(p.relative_to(temporary)): {"sha256": sha256(p), "bytes": p.stat().st_size} for p in files}
        write_json(temporary / MANIFEST, {"version": 1, "files": hashes})
        _fsync(temporary)
        if final.exists():
            final.replace(aside)
        temporary.replace(final)
        _fsync(final.parent)
    finally:
        _clear(aside)
        _clear(temporary)


def sweep(parent: Path, name: str = "*") -> None:
    """Clear away what killed writers of folders called `name` (a pattern) left in `parent`.

    What this process itself left counts, too: it writes one folder of a name at a time. A process on another machine or
    in another container counts as killed: nobody there may write to `parent` at the same time.
    """
    for folder in parent.glob(f".{name}.*-*"):
        match = LEFT.fullmatch(folder.name)
        if match and (int(match["pid"]) == os.getpid() or not _alive(int(match["pid"]))):
            _clear(folder)


def _clear(folder: Path) -> None:
    """Delete a folder that is named as in `LEFT`; one that was moved aside is put back if nothing took its place."""
    match = LEFT.fullmatch(folder.name)
    assert match, "only such folders are deleted"
    if match["kind"] == "old" and folder.exists() and not folder.with_name(match["name"]).exists():
        folder.replace(folder.with_name(match["name"]))
    shutil.rmtree(folder, ignore_errors=True)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (OSError, OverflowError) as error:
        return isinstance(error, PermissionError)
    return True


def _listed(manifest: Mapping[str, Any], without: str) -> dict[str, Any]:
    """Return the files of a manifest that are not in the folder `without`."""
    return {
        name: entry for name, entry in manifest["files"].items() if not (without and name.startswith(f"{without}/"))
    }


def looks_complete(path: Path, without: str = "") -> bool:
    """Return whether a directory has a manifest and every file that it names, in the length that it says.

    That tells a torn directory, for the manifest is written last; it reads no file's content (`verify_directory` does).
    What is in the folder `without` is not looked at.
    """
    try:
        manifest = json.loads((path / MANIFEST).read_text("utf-8"))
        files = _listed(manifest, without)
        return all((path / name).stat().st_size == entry["bytes"] for name, entry in files.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def verify_directory(path: Path, without: str = "") -> dict[str, Any]:
    """Return the manifest of a complete directory; raise `BadInput` if it is torn, changed or not one of ours.

    What is in the folder `without` is not read, and may be missing.
    """
    manifest_path = path / MANIFEST
    if not manifest_path.is_file():
        raise BadInput(f"no {MANIFEST}: the folder is incomplete or was not written by Parley", str(path))
    manifest: dict[str, Any] = json.loads(manifest_path.read_text("utf-8"))
    for name, entry in _listed(manifest, without).items():
        file = path / name
        if not file.is_file() or file.stat().st_size != entry["bytes"] or sha256(file) != entry["sha256"]:
            raise BadInput(f"{name} is missing or does not match its hash in {MANIFEST}", str(path))
    return manifest
