"""Registries that other packages extend by entry points: games, methods, players and importers.

A distribution adds an entry by an entry point in the registry's group, such as `parley.games`. Entry points are listed
when a registry is first read and each one is imported once, in the order of their names. What is built in cannot be
replaced: an entry point with a name that is taken is refused, and so are all that share a name. A refused or broken
entry point is logged as a warning with its distribution and left out; asking for it by name raises `BadInput` with the
same reason.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, NoReturn, TypeVar

from training.errors import BadInput, PluginError, boundary

log = logging.getLogger(__name__)

NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")
"""What an entry may be called: it stands in addresses, files and columns of 40 characters."""

T = TypeVar("T")


class Registry(MutableMapping[str, T], Generic[T]):
    """What is built in, and what installed distributions add under the entry-point group `group`.

    `check(name, loaded)` returns the entry that an entry point's object stands for; it raises `BadInput` for an object
    that is none.
    """

    def __init__(self, group: str, builtin: Mapping[str, T], check: Callable[[str, Any], T]) -> None:
        self.group = group
        self._entries = dict(builtin)
        self._check = check
        self._refused: dict[str, str] = {}
        self._loading = self._complete = False
        self._lock = threading.RLock()

    def __getitem__(self, name: str) -> T:
        if name not in self._entries:
            self._load()
        return self._entries[name]

    def __setitem__(self, name: str, entry: T) -> None:
        self._load()
        self._entries[name] = entry

    def __delitem__(self, name: str) -> None:
        del self._entries[name]

    def __iter__(self) -> Iterator[str]:
        self._load()
        return iter(self._entries)

    def __len__(self) -> int:
        self._load()
        return len(self._entries)

    def refuse(self, name: str, otherwise: str, where: str) -> NoReturn:
        """Raise `BadInput` for an unknown name: why its entry point was refused, or else `otherwise`."""
        self._load()
        raise BadInput(self._refused.get(name, otherwise), where)

    def _load(self) -> None:
        """Add the entries of all installed distributions, once; other threads wait until all are there."""
        if self._complete:
            return
        with self._lock:
            if self._loading or self._complete:  # a plugin may read the registry that it extends
                return
            self._loading = True
            self._add_all()
            self._complete = True

    def _add_all(self) -> None:
        points: dict[str, list[EntryPoint]] = {}
        for point in sorted(entry_points(group=self.group), key=lambda point: (point.name, _distribution(point))):
            points.setdefault(point.name, []).append(point)
        for name, sharing in points.items():
            try:
                self._entries[name] = self._loaded(name, sharing)
            except BadInput as error:
                self._refused[name] = str(error)
                log.warning("%s", error)

    def _loaded(self, name: str, sharing: list[EntryPoint]) -> T:
        """Return the entry of a name; raise `BadInput` naming the distributions if it cannot be used."""
        where = f"{self.group}: {name!r} of {' and '.join(map(_distribution, sharing))}"
        if name in self._entries:
            raise BadInput("the name is taken by Parley itself; the distribution must choose another", where)
        if len(sharing) > 1:
            raise BadInput("several distributions use the name; uninstall all but one", where)
        if not NAME.fullmatch(name):
            raise BadInput("a name is a lower-case letter, then at most 39 letters, digits, '_' and '-'", where)
        try:
            with boundary(into=PluginError):  # importing runs somebody else's code, which may fail in any way
                return self._check(name, sharing[0].load())
        except PluginError as error:
            raise BadInput(f"cannot be loaded: {error}", where) from error
        except BadInput as error:
            raise BadInput(str(error), where) from error


def _distribution(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else point.value
