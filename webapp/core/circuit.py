"""A circuit breaker for Redis: after a failure no call waits for it until a background ping has succeeded.

An unavailable Redis costs one short timeout per process, not one per request.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable

import redis
from django.conf import settings

logger = logging.getLogger(__name__)
TIMEOUT_S = 0.25
"""Longest wait for one answer of Redis in a request."""
PROBE_S = 0.5
"""Seconds between two pings while the circuit is open."""


class Circuit:
    """A switch around a server that may hang: `failed` opens it, and a thread that pings closes it again.

    `ping` raises `OSError` or `redis.RedisError` while the server does not answer.
    """

    def __init__(self, ping: Callable[[], object], probe_s: float = PROBE_S) -> None:
        self._ping = ping
        self._probe_s = probe_s
        self._lock = threading.Lock()
        self._open = False
        self._closed_at = -math.inf

    @property
    def closed(self) -> bool:
        """Whether the server may be asked."""
        return not self._open

    def steady(self, seconds: float) -> bool:
        """Whether the server has answered for so long since its last failure."""
        return not self._open and time.monotonic() - self._closed_at >= seconds

    def failed(self, error: Exception) -> None:
        """Open the circuit after a failure; while it is open, further failures change nothing."""
        with self._lock:
            if self._open:
                return
            self._open = True
        logger.warning("Redis does not answer (%s): going on without it", error)
        threading.Thread(target=self._probe, name="redis probe", daemon=True).start()

    def _probe(self) -> None:
        while True:
            time.sleep(self._probe_s)
            try:
                self._ping()
            except (redis.RedisError, OSError):
                continue
            with self._lock:
                self._open, self._closed_at = False, time.monotonic()
            logger.warning("Redis answers again")
            return


def _ping() -> None:
    with redis.Redis.from_url(
        settings.REDIS_URL, socket_timeout=1.0, socket_connect_timeout=1.0, retry=no_retries()
    ) as client:
        client.ping()


def no_retries() -> redis.retry.Retry:
    """A policy for redis-py under which a call fails at its first timeout."""
    return redis.retry.Retry(redis.backoff.NoBackoff(), 0)


CIRCUIT = Circuit(_ping)
"""The circuit of this process around the Redis of `REDIS_URL`."""
