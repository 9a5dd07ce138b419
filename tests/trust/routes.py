"""Every route of the site: as the resolver knows it, and as the files in `matrix/` list it."""

import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.urls import URLPattern, URLResolver, get_resolver

APPS = sorted(path.stem for path in (Path(__file__).parent / "matrix").glob("[a-z]*.py") if path.stem != "base")
TABLES = [importlib.import_module(f"tests.trust.matrix.{app}") for app in APPS]
ROUTES = [route for table in TABLES for route in table.ROUTES]
SOCKETS = [route for table in TABLES for route in getattr(table, "SOCKETS", [])]


@dataclass(frozen=True)
class Found:
    """A route as the resolver knows it; `name` includes its namespaces."""

    name: str
    pattern: str
    view: Any


def walk(resolver: URLResolver | None = None, prefix: str = "", space: str = "") -> Iterator[Found]:
    """Every route below a resolver."""
    resolver = resolver or get_resolver()
    for entry in resolver.url_patterns:
        pattern = prefix + str(entry.pattern)
        if isinstance(entry, URLPattern):
            yield Found(f"{space}{entry.name}" if entry.name else pattern, pattern, entry.callback)
        else:
            below = f"{space}{entry.namespace}:" if entry.namespace else space
            yield from walk(entry, pattern, below)
