"""The cache: Redis while it answers, else this process's own memory, so that failed attempts are still counted.

No call raises or waits because of Redis: see `webapp.core.circuit`.
"""

from __future__ import annotations

from typing import Any

import redis
from django.core.cache.backends.base import DEFAULT_TIMEOUT, BaseCache
from django.core.cache.backends.locmem import LocMemCache
from django.core.cache.backends.redis import RedisCache

from webapp.core.circuit import CIRCUIT, TIMEOUT_S, no_retries

SETTLE_S = 11.0
"""How long Redis must answer again before it is used: a lock of the rate limiter that was set in a request which did
not see the answer expires after ten seconds.
"""


class FallbackCache(BaseCache):
    """Django's Redis cache with a local one behind it; `LOCATION` is the Redis address."""

    def __init__(self, server: str, params: dict[str, Any]) -> None:
        super().__init__(params)
        timeouts = {"socket_timeout": TIMEOUT_S, "socket_connect_timeout": TIMEOUT_S, "retry": no_retries()}
        self._shared = RedisCache(server, {**params, "OPTIONS": timeouts})
        self._local = LocMemCache("fallback", params)

    def _call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        if CIRCUIT.steady(SETTLE_S):
            try:
                return getattr(self._shared, name)(*args, **kwargs)
            except (redis.RedisError, OSError) as error:
                CIRCUIT.failed(error)
        return getattr(self._local, name)(*args, **kwargs)

    def add(self, key: Any, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> bool:
        """Store a value unless the key has one; return whether it was stored."""
        return bool(self._call("add", key, value, timeout, version))

    def get(self, key: Any, default: Any = None, version: int | None = None) -> Any:
        """Return the key's value, or the default."""
        return self._call("get", key, default, version)

    def set(self, key: Any, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> None:
        """Store a value for `timeout` seconds."""
        self._call("set", key, value, timeout, version)

    def touch(self, key: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> bool:
        """Keep a value for `timeout` seconds from now; return whether there was one."""
        return bool(self._call("touch", key, timeout, version))

    def delete(self, key: Any, version: int | None = None) -> bool:
        """Delete a value; return whether there was one."""
        return bool(self._call("delete", key, version))

    def clear(self) -> None:
        """Delete everything, in both caches."""
        self._local.clear()
        self._call("clear")
