"""Addresses of servers as the environment gives them, turned into Django's settings. Fails on a foreign scheme."""

from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured


def database(url: str) -> dict[str, Any]:
    """Django's `DATABASES` entry for a `postgresql://user:password@host:port/name?option=value` address.

    A `host` option (a unix socket's folder) wins over the host of the address; other options go to libpq. Statements
    are prepared, which a pooler in between must support, as PgBouncer does from 1.21.
    """
    parts = urlsplit(url)
    if parts.scheme not in {"postgresql", "postgres"}:
        raise ImproperlyConfigured(f"DATABASE_URL must begin with postgresql://, not {parts.scheme}://")
    options: dict[str, Any] = dict(parse_qsl(parts.query))
    host = options.pop("host", None) or unquote(parts.hostname or "")
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.lstrip("/")) or "parley",
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": host,
        "PORT": str(parts.port or ""),
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {**options, "prepare_threshold": 2, "pool": {"min_size": 1, "max_size": 24, "timeout": 15}},
    }


def celery(url: str) -> str:
    """Celery's broker address: `unix:///path` is called `redis+socket:///path` there."""
    return "redis+socket://" + url.removeprefix("unix://") if url.startswith("unix://") else url


def mail(url: str) -> dict[str, Any]:
    """Django's settings of mail for a `smtp://user:password@host:port` address; `smtps` and `smtp+tls` encrypt it."""
    parts = urlsplit(url)
    ports = {"smtp": 25, "smtps": 465, "smtp+tls": 587}
    if parts.scheme not in ports or not parts.hostname:
        raise ImproperlyConfigured("PARLEY_MAIL must be smtp://, smtps:// or smtp+tls:// and a host")
    return {
        "EMAIL_HOST": parts.hostname,
        "EMAIL_PORT": parts.port or ports[parts.scheme],
        "EMAIL_HOST_USER": unquote(parts.username or ""),
        "EMAIL_HOST_PASSWORD": unquote(parts.password or ""),
        "EMAIL_USE_SSL": parts.scheme == "smtps",
        "EMAIL_USE_TLS": parts.scheme == "smtp+tls",
    }
