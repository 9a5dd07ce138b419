"""The handshake of every WebSocket: the same site's Origin and a session, or it is refused before it opens.

Browsers send cookies with a socket from any page, so a missing, null or foreign Origin must not get in.
"""

from typing import Any
from urllib.parse import urlsplit

from channels.auth import AuthMiddlewareStack
from channels.routing import URLRouter
from channels.security.websocket import WebsocketDenier
from django.conf import settings
from django.http.request import split_domain_port, validate_host
from django.urls import URLPattern
from django.utils.module_loading import autodiscover_modules

LARGEST_MESSAGE = 16 * 1024
"""Bytes of one message; a longer one is closed with 1009."""
Scope = dict[str, Any]
_PATTERNS: list[URLPattern] = []


def register(*patterns: URLPattern) -> None:
    """Add socket routes; an app calls it in its `routing.py`."""
    _PATTERNS.extend(patterns)


def routes() -> list[URLPattern]:
    """All socket routes of all apps."""
    autodiscover_modules("routing")
    return list(_PATTERNS)


def _headers(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in scope["headers"] if key.lower() == name]


def same_origin(scope: Scope) -> bool:
    """Whether the one Origin header names the host that the request itself is for, and that host is ours."""
    origins, hosts = _headers(scope, b"origin"), _headers(scope, b"host")
    if len(origins) != 1 or len(hosts) != 1:
        return False
    origin = urlsplit(origins[0])
    if origin.scheme not in ({"https"} if settings.PRODUCTION else {"http", "https"}) or origin.path:
        return False
    domain, _ = split_domain_port(hosts[0])
    default = {"http": ":80", "https": ":443"}[origin.scheme]
    same = origin.netloc.lower().removesuffix(default) == hosts[0].lower().removesuffix(default)
    return same and bool(domain) and validate_host(domain, settings.ALLOWED_HOSTS)


class SameOriginOnly:
    """Refuses a socket of another origin before its session is read."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> Any:
        inner = self.inner if same_origin(scope) else WebsocketDenier()
        return await inner(scope, receive, send)


class SignedInOnly:
    """Refuses a socket without a session of an active user; guests have one too."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> Any:
        user = scope["user"]
        active = user.is_authenticated and user.is_active
        return await (self.inner if active else WebsocketDenier())(scope, receive, send)


class KnownRoutesOnly:
    """Refuses a socket for an address that no app has registered, instead of failing."""

    def __init__(self, patterns: list[URLPattern]) -> None:
        self.patterns = patterns
        self.router = URLRouter(patterns)

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> Any:
        path = scope["path"].lstrip("/")
        registered = any(pattern.pattern.match(path) for pattern in self.patterns)
        return await (self.router if registered else WebsocketDenier())(scope, receive, send)


def guarded() -> Any:
    """The application for all sockets: origin, then session, then the apps' routes."""
    return SameOriginOnly(AuthMiddlewareStack(SignedInOnly(KnownRoutesOnly(routes()))))
