"""A Ray of a run's own is private and ends with its driver; one that is joined is checked and left alone."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from tests.toy_models import write_random_llama
from training.cluster import processes
from training.cluster.processes import PREFIX, delete_leftovers, start
from training.errors import BadInput, OutsideError, ProcessLost

ROOT = Path(__file__).resolve().parents[2]
HOLD = """
import json, os, sys
from training.cluster import processes
cluster = processes.start()
import ray
print(json.dumps([cluster.address, os.environ["RAY_AUTH_TOKEN_PATH"]]), flush=True)
sys.stdin.read()
cluster.stop()
"""
JOIN = """
import json, sys
from training.cluster import processes
with processes.start(sys.argv[1]) as cluster:
    print(json.dumps([cluster.joined, [node.address for node in cluster.nodes()]]), flush=True)
"""
PLAY = """
import asyncio, json, sys
from training.cluster import processes
from training.engines.base import SampleRequest, Sampling
from training.cluster.supervisor import ProcessOptions
from training.engines.pool import EnginePool
cluster = processes.start()
pool = EnginePool("transformers", sys.argv[1], ProcessOptions(count=2, threads=1), max_running=4, cache_gib=0.05)

async def main():
    async def sample(index):
        while True:
            await pool.sample(SampleRequest([5, index + 3], Sampling(max_tokens=400), seed=index))
    asked = [asyncio.create_task(sample(index)) for index in range(8)]
    await asyncio.sleep(0.5)
    print(json.dumps([status.pid for status in pool.status()]), flush=True)
    await asyncio.gather(*asked)

asyncio.run(main())
"""


def run(script, *arguments, **more):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), **more}
    command = [sys.executable, "-c", script, *map(str, arguments)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdin=pipe, stdout=pipe, text=True)


def answer(process):
    """The first line of JSON that a process prints: Ray prints there, too."""
    return next(json.loads(line) for line in process.stdout if line.startswith("["))


def descendants(pid):
    """The command lines of all processes below one, by number; they may end meanwhile."""
    lines = {}
    for process in psutil.Process(pid).children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if line := " ".join(process.cmdline()):
                lines[process.pid] = line
    return lines


def gone(pids, seconds=15.0):
    """How long it takes until none of these processes is alive."""
    began = time.monotonic()
    while alive := [pid for pid in pids if psutil.pid_exists(pid) and psutil.Process(pid).status() != "zombie"]:
        assert time.monotonic() - began < seconds, alive
        time.sleep(0.1)
    return time.monotonic() - began


@pytest.mark.parametrize("address", ["nowhere", "ray://127.0.0.1:6379", "127.0.0.1:", ":6379", "127.0.0.1:none"])
def test_an_address_that_is_none_is_refused(address):
    with pytest.raises(BadInput, match=r"cluster.address: .* is not the HOST:PORT of a Ray"):
        start(address)


def test_an_address_of_the_operator_that_is_none_is_not_shown(monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", "ray://10.0.0.5:10001")
    with pytest.raises(BadInput, match=r"^cluster.address: RAY_ADDRESS is not the HOST:PORT of a Ray"):
        start()


@pytest.fixture
def silent(monkeypatch):
    """An address at which nobody listens, which this machine's operator has stated."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    monkeypatch.setenv("RAY_ADDRESS", address)
    return address


@pytest.mark.parametrize("again, error", [(False, BadInput), (True, ProcessLost)])
def test_an_address_at_which_nobody_listens_is_tried_until_the_time_is_over(silent, again, error):
    """A new run has a wrong address; where an earlier attempt had joined the cluster, another attempt is to follow."""
    began = time.monotonic()
    with pytest.raises(error, match=r"no Ray answers at RAY_ADDRESS: .*refused") as caught:
        start(again=again, timeout_s=1.5)
    assert 1.5 <= time.monotonic() - began < 15
    assert silent not in str(caught.value), "who sees the run need not know it"


def test_a_head_that_starts_late_is_waited_for(silent):
    host, port = silent.split(":")
    late = threading.Timer(1.5, lambda: listening.append(socket.create_server((host, int(port)))))
    listening = []
    late.start()
    began = time.monotonic()
    assert processes._unanswered(silent, "RAY_ADDRESS", began + 20) == ""
    assert 1.0 < time.monotonic() - began < 15
    listening.pop().close()


@pytest.mark.parametrize("again, error", [(False, OutsideError), (True, ProcessLost)])
def test_a_cluster_of_which_a_node_dies_meanwhile_interrupts_an_attempt_and_fails_a_new_run(monkeypatch, again, error):
    def dies(*_):
        raise OutsideError("node a of the cluster did not run a first task in time")

    monkeypatch.setattr(processes.nodes, "check", dies)
    monkeypatch.setattr(processes, "_unanswered", lambda *_: "")
    monkeypatch.setattr(processes, "_connect_in_time", lambda *_: None)
    monkeypatch.setattr(processes.watch, "of_this_machine", lambda **_: {})
    monkeypatch.setattr(processes.watch, "head_of", lambda *_: None)
    with pytest.raises(error, match="node a of the cluster did not run"):
        start("10.0.0.5:6379", again=again)


def test_folders_of_drivers_that_were_killed_are_deleted(tmp_path, monkeypatch):
    ended = subprocess.Popen(["true"])
    ended.wait()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    dead, alive, other = (
        tmp_path / name for name in (f"{PREFIX}{ended.pid}-a", f"{PREFIX}{os.getpid()}-b", "other-1-c")
    )
    for folder in (dead, alive, other):
        (folder / "session").mkdir(parents=True)
    delete_leftovers()
    assert sorted(tmp_path.iterdir()) == sorted((alive, other))


@pytest.mark.process
def test_a_ray_of_its_own_is_private_and_leaves_nothing(monkeypatch):
    """It listens on loopback alone, sees no secrets, has no dashboard, and handlers of signals are as they were."""
    monkeypatch.setenv("SOME_API_KEY", "secret of this test")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    handler = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        ours = signal.getsignal(signal.SIGTERM)
        with start() as cluster:
            import ray

            assert signal.getsignal(signal.SIGTERM) is ours
            assert not cluster.joined
            [node] = cluster.nodes()
            assert (node.address, node.name) == ("127.0.0.1", socket.gethostname())
            folder = cluster.folder
            assert folder is not None
            assert (folder / "token").stat().st_mode & 0o077 == 0
            children = psutil.Process().children(recursive=True)
            rays = [process for process in children if "ray" in " ".join(process.cmdline())]
            # no autoscaler, no dashboard, and no workers before there is something for them
            names = {process.name() for process in rays}
            assert names == {"gcs_server", "raylet", "ray::DashboardAgent", "ray::RuntimeEnvAgent"}
            for process in rays:
                listening = [c.laddr for c in process.net_connections("inet") if c.status == psutil.CONN_LISTEN]
                assert {address.ip.removeprefix("::ffff:") for address in listening} <= {"127.0.0.1"}
                assert "SOME_API_KEY" not in process.environ()
                assert 8265 not in {address.port for address in listening}

            @ray.remote(num_cpus=0)
            def seen():
                import training

                return "SOME_API_KEY" in os.environ, training.__file__, os.environ["RAY_USAGE_STATS_ENABLED"]

            assert ray.get(seen.remote()) == (False, str(ROOT / "training" / "__init__.py"), "0")
            assert os.environ["SOME_API_KEY"] == "secret of this test"
        gone([process.pid for process in rays])
        assert not folder.exists()
        assert "RAY_AUTH_TOKEN_PATH" not in os.environ
    finally:
        signal.signal(signal.SIGTERM, handler)


@pytest.mark.process
def test_engines_and_ray_do_not_outlive_a_driver_that_is_killed(tmp_path):
    """Ray's two agents report the raylet's end first, for which they wait a minute; they hold no model and no GPU."""
    driver = run(PLAY, write_random_llama(tmp_path / "model"))
    try:
        engines = answer(driver)
        names = {pid: name for pid, name in descendants(driver.pid).items() if "Agent" not in name}
        assert {*engines} <= names.keys()
        assert {"gcs_server", "raylet"} <= {Path(name.split()[0]).name for name in names.values()}
    finally:
        driver.kill()
        driver.wait()
    assert gone(names) < 10


@pytest.mark.process
def test_a_cluster_is_joined_by_its_address_and_goes_on(monkeypatch):
    holder = run(HOLD)
    try:
        address, token = answer(holder)
        joiner = run(JOIN, address, RAY_AUTH_MODE="token", RAY_AUTH_TOKEN_PATH=token)
        joined, addresses = answer(joiner)
        assert joiner.wait(30) == 0
        assert (joined, addresses) == (True, ["127.0.0.1"])
        assert any("raylet_socket_name" in line for line in descendants(holder.pid).values())
        stranger = run(JOIN, address, RAY_AUTH_MODE="disabled")
        assert stranger.wait(60) != 0, "without the token nobody gets in"
    finally:
        holder.stdin.close()
        holder.wait(30)


@pytest.mark.process
def test_an_engine_ends_when_its_driver_is_silent_although_ray_goes_on():
    with start():
        import ray

        from training.engines.actor import EngineActor

        actor = ray.remote(EngineActor).options(num_cpus=0).remote("engine 0", 3.0)
        ray.get(actor.heartbeat.remote())
        [pid] = [pid for pid, line in descendants(os.getpid()).items() if "EngineActor" in line]
        for _ in range(5):
            ray.get(actor.heartbeat.remote())
            time.sleep(1.0)  # longer together than the lease
        assert psutil.pid_exists(pid)
        assert 1 < gone([pid]) < 8
        assert ray.is_initialized()
        assert ray.get(ray.remote(num_cpus=0)(lambda: 7).remote()) == 7
