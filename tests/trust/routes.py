"""Every route of the site: as the resolver knows it, and as the files in `matrix/` list it."""

import importlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from tests.trust.matrix.base import Route

APPS = sorted(path.stem for path in (Path(__file__).parent / "matrix").glob("[a-z]*.py") if path.stem != "base")
TABLES = [importlib.import_module(f"tests.trust.matrix.{app}") for app in APPS]
ROUTES = [route for table in TABLES for route in table.ROUTES]
SOCKETS = [route for table in TABLES for route in getattr(table, "SOCKETS", [])]


@dataclass(frozen=True)
class ResolvedRoute:
    """A route as the resolver knows it; `name` includes its namespaces."""

    name: str
    pattern: str
    view: Any

    @property
    def address(self) -> str:
        """An address that it answers to; nothing need be there."""
        return "/" + re.sub(r"<[^>]+>", "1", self.pattern)


def walk(resolver: URLResolver | None = None, prefix: str = "", space: str = "") -> Iterator[ResolvedRoute]:
    """Every route below a resolver."""
    resolver = resolver or get_resolver()
    for entry in resolver.url_patterns:
        pattern = prefix + str(entry.pattern)
        if isinstance(entry, URLPattern):
            yield ResolvedRoute(f"{space}{entry.name}" if entry.name else pattern, pattern, entry.callback)
        else:
            below = f"{space}{entry.namespace}:" if entry.namespace else space
            yield from walk(entry, pattern, below)


def ask(route: Route, client: Client, kwargs: dict[str, Any], user: Any = None) -> Any:
    """Ask for a route with its method and body; the API with a key of `user`, if there is one."""
    from webapp.accounts import services

    address, data = reverse(route.name, kwargs=kwargs), route.body(kwargs)
    if route.kind == "api":
        key = {"Authorization": f"Bearer {services.create_key(user=user, name='matrix')[1]}"} if user else {}
        return client.generic(route.method, address, json.dumps(data), "application/json", headers=key)
    return client.post(address, data) if route.method == "POST" else client.generic(route.method, address)
