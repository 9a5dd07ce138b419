"""The import formats, with the files that an upload must contain."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from training.errors import BadInput
from training.games.log import Settings
from training.plugins import Registry
from training.question_sets import SETS
from training.reading import explain
from webapp.scenarios.importers import (
    casino,
    deal_or_no_deal,
    labelled,
    parley_jsonl,
    question_sets,
    sotopia,
    sotopia_episodes,
    webshop,
    werewolf6,
    werewolf9,
)
from webapp.scenarios.importers.reading import Progress, Reading

MAX_BYTES = 64 * 1024 * 1024
"""Larger uploads are refused without reading them."""

LONGEST_NAME = 150
"""Bytes of a file's name, which must fit into a folder of the storage."""


@dataclass(frozen=True)
class Format:
    """One import format. A `folder` format consists of the files in `names`, or of `several` files of any name.

    `alone`: the format also accepts a single file of any name. `read` takes a path and the progress, and where the
    format has `options`, these as a third argument.
    """

    title: str
    read: Callable[..., Reading]
    source: str = ""
    licence: str = ""
    names: tuple[str, ...] = ()
    several: bool = False
    alone: bool = False
    options: type[Settings] | None = None

    @property
    def folder(self) -> bool:
        """Whether the format may be a folder of files."""
        return bool(self.names) or self.several

    def reads_folder(self, files: int) -> bool:
        """Return whether an upload of this number of files is read as a folder."""
        return self.folder and not (self.alone and files == 1)


BUILT_IN = {
    "casino": Format("CaSiNo: campsite negotiations (JSON)", casino.read, "CaSiNo", "CC BY 4.0"),
    "deal-or-no-deal": Format(
        "Deal or No Deal: item division (text)", deal_or_no_deal.read, "Deal or No Deal", "CC BY-NC 4.0"
    ),
    "sotopia-redis": Format("SOTOPIA: Redis dump (JSON)", sotopia.read_redis, "SOTOPIA", "CC BY-SA 4.0"),
    "sotopia-jsonl": Format(
        "SOTOPIA: four JSONL files", sotopia.read_jsonl, "SOTOPIA", "CC BY-SA 4.0", names=tuple(sotopia.FILES)
    ),
    "sotopia-episodes": Format(
        "SOTOPIA: played episodes with scores (one file of episode logs, or episodes.jsonl and scores.json)",
        sotopia_episodes.read,
        "SOTOPIA",
        names=(sotopia_episodes.EPISODES, sotopia_episodes.SCORES),
        alone=True,
    ),
    "werewolf6": Format(
        "Werewolf: six language models (JSONL)", werewolf6.read, "Werewolf games of language models", "MIT"
    ),
    "werewolf9": Format(
        "Werewolf: nine people (JSON files)", werewolf9.read, "Werewolf games of people", "MIT", several=True
    ),
    **{
        name: Format(
            each.title,
            partial(question_sets.read, each),
            each.source,
            each.licence,
            several=each.several,
            alone=each.several,
            options=each.options,
        )
        for name, each in SETS.items()
    },
    "webshop": Format(
        "WebShop: instructions for products of a catalogue (JSON)",
        webshop.read,
        "WebShop",
        "MIT",
        options=webshop.WebshopOptions,
    ),
    "label-studio": Format(
        "Label Studio: labelled texts and dialogues, and games labelled there (JSON)",
        labelled.read_label_studio,
        "Label Studio",
        options=labelled.LabelStudioOptions,
    ),
    "doccano": Format(
        "doccano: labelled texts (JSONL)", labelled.read_doccano, "doccano", options=labelled.LabelOptions
    ),
    "jsonl": Format("Parley: JSONL of scenarios and conversations", parley_jsonl.read),
}


def _check(name: str, loaded: Any) -> Format:
    if not isinstance(loaded, Format):
        raise BadInput(f"is no Format but {type(loaded).__name__}")
    return loaded


FORMATS: Registry[Format] = Registry("parley.importers", BUILT_IN, _check)
"""All formats by name: those that come with Parley, then those of installed distributions."""

__all__ = ["FORMATS", "MAX_BYTES", "Format", "Progress", "Reading", "check_upload", "options_of", "read"]


def check_upload(format: str, files: Sequence[tuple[str, int]]) -> None:
    """Refuse an upload that cannot be of this format, before storing it; `files` are (name, bytes)."""
    if format not in FORMATS:
        FORMATS.refuse(format, f"unknown format {format!r}; known: {', '.join(FORMATS)}", "format")
    if sum(size for _name, size in files) > MAX_BYTES:
        raise BadInput(f"larger than {MAX_BYTES // 2**20} MiB in all", "file")
    if any(len(name.encode("utf-8", "replace")) > LONGEST_NAME for name, _size in files):
        raise BadInput(f"a file's name is longer than {LONGEST_NAME} bytes; rename it", "file")
    names = [name for name, _size in files]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise BadInput(f"two files are called {twice[0]}", "file")
    fmt = FORMATS[format]
    if not fmt.folder and len(files) != 1:
        raise BadInput(f"this format is one file, not {len(files)}", "file")
    missing = set(fmt.names) - set(names) if fmt.reads_folder(len(files)) else set()
    if missing:
        raise BadInput(f"missing {', '.join(sorted(missing))}", "file")


def options_of(format: str, chosen: Mapping[str, Any]) -> Settings | None:
    """Return the options of a format, its defaults where nothing is chosen; None for a format without options.

    Raises `BadInput` with the name of an option that the format does not have, or whose value does not fit.
    """
    if format not in FORMATS:
        FORMATS.refuse(format, f"unknown format {format!r}; known: {', '.join(FORMATS)}", "format")
    model = FORMATS[format].options
    if model is None:
        if chosen:
            raise BadInput(f"the format {format} has no options", next(iter(chosen)))
        return None
    try:
        return model.model_validate(dict(chosen))
    except ValidationError as error:
        where, why = explain(error)
        raise BadInput(why, where) from error


def read(format: str, path: Path, progress: Progress, chosen: Mapping[str, Any] | None = None) -> Reading:
    """Read a file (or, for a folder format, a folder) with the `chosen` options.

    What cannot be read is an error of the reading; options that do not fit raise `BadInput`.
    """
    options = options_of(format, chosen or {})
    reading, name, fmt = Reading(), path.name or str(path), FORMATS[format]
    if fmt.folder != path.is_dir() and path.exists() and not fmt.alone:
        kind = f"a folder with {', '.join(fmt.names) or 'files'}" if fmt.folder else "a file"
        reading.error(BadInput(f"expected {kind}, not a {'folder' if path.is_dir() else 'file'}", name))
        return reading
    try:
        return fmt.read(path, progress) if options is None else fmt.read(path, progress, options)
    except BadInput as error:
        reading.error(error)
    except OSError as error:
        reading.error(BadInput(error.strerror or "cannot be read", name))
    return reading
