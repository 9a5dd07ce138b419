"""The embedded servers: started once for all, stopped by the last, never confused by a recycled process id."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import psycopg
import pytest
import redis

from webapp.core import embedded, pids

pytestmark = pytest.mark.process

HOLDER = """
import sys, os
from pathlib import Path
from webapp.core import embedded
root = Path(sys.argv[1])
embedded.join([embedded.Postgres(root), embedded.Valkey(root)], root)
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def place():
    """A folder of its own: pytest's shuts out the user that PostgreSQL runs as when root starts it."""
    with tempfile.TemporaryDirectory(prefix="parley-embedded-") as folder:
        yield Path(folder)


def hold(root):
    environment = {**os.environ, "PARLEY_HOME": str(root)}
    return subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=embedded.BASE,
    )


def test_two_processes_may_start_at_once_and_the_last_one_stops_the_servers(place):
    postgres, valkey = embedded.Postgres(place), embedded.Valkey(place)
    holders = [hold(place), hold(place)]
    assert [holder.stdout.readline() for holder in holders] == ["ready\n", "ready\n"]
    with psycopg.connect(postgres.url) as connection:
        version = connection.execute("SHOW server_version").fetchone()
    assert version[0].startswith("18")
    assert redis.Redis.from_url(valkey.url).ping()

    holders[0].communicate()
    assert postgres.running()
    assert valkey.running()

    holders[1].communicate()
    assert not postgres.running()
    assert not valkey.running()


def test_a_killed_user_does_not_keep_the_servers_alive(place):
    killed, polite = hold(place), hold(place)
    for holder in (killed, polite):
        holder.stdout.readline()
    killed.kill()
    killed.wait()
    polite.communicate()
    assert not embedded.Postgres(place).running()
    assert not embedded.Valkey(place).running()


def test_a_recycled_process_id_is_not_taken_for_the_server(place):
    started = pids.start_time(os.getpid())
    (place / "postgres").mkdir()
    pid_file = place / "postgres" / "postmaster.pid"
    lines = [str(os.getpid()), "data", str(int(started)), "5432", "", "", "", "ready", ""]
    pid_file.write_text("\n".join(lines))
    assert embedded.Postgres(place).running()
    lines[2] = str(int(started) - 3600)
    pid_file.write_text("\n".join(lines))
    assert not embedded.Postgres(place).running()
    embedded.Postgres(place)._drop_stale_pid_file()
    assert not pid_file.exists()

    (place / "run").mkdir()
    (place / "run" / "valkey.json").write_text(json.dumps([os.getpid(), started - 3600]))
    assert not embedded.Valkey(place).running()


def test_a_finished_process_has_no_start_time():
    child = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # finished, but not waited for: a zombie
    assert pids.start_time(child.pid) is None
    child.wait()


def test_a_long_path_gets_a_short_private_socket_folder(place):
    deep = place / ("x" * 90)
    folder = embedded.socket_folder(deep, "postgres")
    assert len(str(folder)) < 60
    assert folder != embedded.socket_folder(deep / "y", "postgres")
    assert embedded.socket_folder(embedded.Path("/short"), "postgres") == embedded.Path("/short/postgres")


def test_nothing_is_started_for_servers_that_the_environment_names(monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "postgresql://db.example/parley")
    monkeypatch.setenv("REDIS_URL", "redis://cache.example")
    assert embedded.servers() == []
    monkeypatch.delenv("REDIS_URL")
    assert [type(server).__name__ for server in embedded.servers()] == ["Valkey"]
