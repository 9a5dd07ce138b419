"""Finds the catalogue that a scenario names, and keeps it in memory with its search index.

A catalogue is generated, or read from the folder of its name in `PARLEY_HOME/catalogues`. Scenarios state the hash of
such files, so that changed files cannot change stored games: another hash raises `BadInput`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path

from training import bases
from training.errors import BadInput
from training.games.shop import webshop
from training.games.shop.generated import generate
from training.games.shop.products import Catalogue
from training.games.shop.settings import ShopSettings

SEEDS = {"generated-1": 1}
"""Seeds of the generated catalogues. They never change: a change of the generator gets a new name."""

MEBIBYTE = 2**20
_largest: ContextVar[tuple[int, str] | None] = ContextVar("largest catalogue", default=None)


@contextmanager
def at_most(size: int, advice: str) -> Iterator[None]:
    """Refuse inside, with `advice`, to read a catalogue whose files have more bytes; it takes four times their size."""
    token = _largest.set((size, advice))
    try:
        yield
    finally:
        _largest.reset(token)


def named(name: str) -> Catalogue:
    """Return the catalogue of a name; raise `BadInput` if there is none."""
    return _generated(name) if name in SEEDS else _stored(name)


def find(settings: ShopSettings) -> Catalogue:
    """Return the catalogue of some settings; raise `BadInput` if there is none of that name and hash."""
    name = settings.catalogue
    catalogue = named(name)
    if settings.sha256 != catalogue.sha256 and (settings.sha256 or name not in SEEDS):
        why = "another one than the scenario states" if settings.sha256 else "which the scenario must state"
        raise BadInput(f"the catalogue {name} has the hash {catalogue.sha256}, {why}", "settings.sha256")
    return catalogue


def _stored(name: str) -> Catalogue:
    folder = bases.home() / "catalogues" / name
    if not folder.is_dir():
        raise BadInput(
            f"there is no catalogue {name!r}: no folder in PARLEY_HOME/catalogues, and none of: {', '.join(SEEDS)}",
            "settings.catalogue",
        )
    states = [(file, file.stat()) for file in sorted(folder.glob("*.json"))]
    size, largest = sum(state.st_size for _, state in states), _largest.get()
    if largest is not None and size > largest[0]:
        why = f"the catalogue {name} has {size // MEBIBYTE} MiB, more than {largest[0] // MEBIBYTE} MiB: {largest[1]}"
        raise BadInput(why, "settings.catalogue")
    return _read(folder, tuple((file.name, state.st_mtime_ns, state.st_size) for file, state in states))


@lru_cache
def _generated(name: str) -> Catalogue:
    return generate(name, SEEDS[name])


@lru_cache(maxsize=4)
def _read(folder: Path, state: tuple[tuple[str, int, int], ...]) -> Catalogue:
    """Return a folder's catalogue; a file with another `state` (name, time, bytes) is read again."""
    return webshop.read(folder)
