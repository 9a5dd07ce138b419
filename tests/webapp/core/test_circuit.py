"""After one failure no request waits for Redis until it answers again; the cache continues in memory."""

import time

import pytest
import redis
from django.core.cache.backends.locmem import LocMemCache

from webapp.core import caches
from webapp.core.circuit import Circuit


class Server:
    """Answers while `up`; counts what it is asked."""

    def __init__(self):
        self.up, self.asked, self.values = True, 0, {}

    def __call__(self, *arguments):
        self.asked += 1
        if not self.up:
            raise redis.TimeoutError("Timeout reading from socket")


def until(true, seconds=5.0):
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_it_opens_at_a_failure_and_closes_once_a_ping_succeeds():
    server = Server()
    circuit = Circuit(server, probe_s=0.01)
    assert circuit.closed
    assert circuit.steady(1000)
    server.up = False
    circuit.failed(redis.TimeoutError())
    assert not circuit.closed
    assert not circuit.steady(0)
    until(lambda: server.asked >= 3)
    assert not circuit.closed
    server.up = True
    until(lambda: circuit.closed)
    assert circuit.steady(0)
    assert not circuit.steady(1000)


def test_many_failures_start_one_thread_of_pings():
    server = Server()
    server.up = False
    circuit = Circuit(server, probe_s=0.1)
    for _ in range(20):
        circuit.failed(redis.TimeoutError())
    time.sleep(0.35)
    assert 1 <= server.asked <= 4
    server.up = True
    until(lambda: circuit.closed)


@pytest.fixture
def cache(monkeypatch):
    """A cache whose Redis can be taken away."""
    server = Server()
    circuit = Circuit(server, probe_s=0.01)
    monkeypatch.setattr(caches, "CIRCUIT", circuit)
    monkeypatch.setattr(caches, "SETTLE_S", 0.0)
    made = caches.FallbackCache("redis://127.0.0.1:1", {"KEY_PREFIX": "t"})
    behind = LocMemCache("stands-for-redis", {})

    class Shared:
        def __getattr__(self, name):
            server()
            return getattr(behind, name)

    made._shared = Shared()
    made.server, made.circuit = server, circuit
    yield made
    server.up = True
    behind.clear()
    made.clear()


def test_without_redis_values_live_in_memory_and_no_call_fails(cache):
    cache.set("a", 1)
    assert cache.get("a") == 1
    cache.server.up = False
    assert cache.get("a") is None
    cache.set("a", 2, timeout=60)
    assert (cache.get("a"), cache.add("a", 3), cache.add("b", 3), cache.delete("b")) == (2, False, True, True)
    assert cache.touch("a")
    assert cache.incr("a") == 3
    cache.server.up = True
    until(lambda: cache.circuit.closed)
    assert cache.get("a") == 1
