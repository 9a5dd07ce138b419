"""`make up` and `make demo`: start databases, site, clock and workers, print one address, stop all of it on Ctrl-C.

`deploy/supervisord.conf` lists the programs and their order. If a program does not stay up or the site is not ready in
time, it stops everything and fails with a message that ends with that program's log. Exit codes: 0 stopped, 1 failed,
2 a wrong number in PORT, TRAIN_SLOTS or SERVE_SLOTS.
"""

import argparse
import contextlib
import ctypes
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xmlrpc.client import ServerProxy

import psutil
from supervisor.xmlrpc import SupervisorTransport

from tools.setup import gpu
from webapp.core import embedded

ROOT = Path(__file__).resolve().parents[1]
READY_SECONDS = 120.0
STOP_SECONDS = 150.0
PORTS = range(8000, 8020)
MANAGE = [sys.executable, "manage.py"]


class UpError(Exception):
    """A program did not start; the message names it and contains its log."""


class WrongNumber(UpError):
    """A variable has no valid number; the message states the valid ones."""


def whole_number(name: str, *, most: int, default: int) -> int:
    """The number from 1 to `most` in a variable of the environment, `default` if it is unset or empty."""
    text = os.environ.get(name) or str(default)
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(most)) and 1 <= int(text) <= most):
        raise WrongNumber(f"{name}={text} is no whole number from 1 to {most}: set it as in `{name}={default} make up`")
    return int(text)


def free_port() -> int:
    """PORT if it is set (and free), else the first free one from 8000 on."""
    chosen = whole_number("PORT", most=65535, default=9000) if os.environ.get("PORT") else None
    for port in [chosen] if chosen else PORTS:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError):
                probe.bind(("127.0.0.1", port))
                return port
    raise UpError(f"port {chosen or f'{PORTS.start}-{PORTS.stop - 1}'} is taken: choose one, as in `PORT=9000 make up`")


def environment(port: int) -> dict[str, str]:
    """The environment of `deploy/supervisord.conf`: this process's variables and those that the file reads."""
    home = embedded.home()
    control = embedded.socket_folder(home, "control")
    logs = home / "log"
    for folder in (control, logs):
        folder.mkdir(parents=True, exist_ok=True)
    serve_slots, train_slots = (whole_number(name, most=1000, default=1) for name in ("SERVE_SLOTS", "TRAIN_SLOTS"))
    return {
        **os.environ,
        "PARLEY_PYTHON": sys.executable,
        "PARLEY_PORT": str(port),
        "PARLEY_CONTROL": str(control),
        "PARLEY_LOGS": str(logs),
        "PARLEY_TRAIN_QUEUES": "train-cpu,train-gpu" if gpu() else "train-cpu",
        "PARLEY_SERVE_THREADS": str(serve_slots + 1),
        "TRAIN_SLOTS": str(train_slots),
        "SERVE_SLOTS": str(serve_slots),
        "PYTHONUNBUFFERED": "1",
    }


def stop_with_parent() -> None:
    """Send SIGTERM to this child if the launcher is killed and cannot stop it (Linux)."""
    if sys.platform == "linux":
        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGTERM)


def refuse_twice(control: Path) -> None:
    """Raise if an installation runs in this folder already: both would use its databases."""
    with contextlib.suppress(OSError, ValueError, psutil.Error):
        running = psutil.Process(int((control / "supervisord.pid").read_text()))
        if any("supervisord" in part for part in running.cmdline()):
            raise UpError(f"already running here (process {running.pid}): press Ctrl-C there first")


@contextlib.contextmanager
def supervised(env: dict[str, str]) -> Iterator[Any]:
    """Run the process manager; at the end stop everything, databases last, and wait until no process is left."""
    control = Path(env["PARLEY_CONTROL"])
    refuse_twice(control)
    sock = control / "supervisord.sock"
    sock.unlink(missing_ok=True)
    command = [sys.executable, "-m", "supervisor.supervisord", "-c", str(ROOT / "deploy" / "supervisord.conf")]
    output = (Path(env["PARLEY_LOGS"]) / "supervisord.out").open("w")
    with (
        output,
        subprocess.Popen(
            command,
            cwd=ROOT,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=stop_with_parent,  # noqa: PLW1509 (no threads yet)
        ) as manager,
    ):
        try:
            wait_for(sock.exists, 15, manager, "the process manager", Path(output.name))
            yield ServerProxy("http://127.0.0.1", SupervisorTransport(serverurl=f"unix://{sock}")).supervisor
        finally:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # a second Ctrl-C must not leave a process
                signal.signal(number, signal.SIG_IGN)
            children = psutil.Process(manager.pid).children(recursive=True) if manager.poll() is None else []
            manager.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                manager.wait(STOP_SECONDS)
            for child in children:
                with contextlib.suppress(psutil.Error):
                    child.kill()
            manager.kill()
            if any(server.running() for server in embedded.servers()):
                embedded.leave(embedded.servers(), embedded.home(), os.getpid(), last=True)


def wait_for(done: Any, seconds: float, manager: subprocess.Popen[bytes], what: str, log: Path) -> None:
    """Wait until `done()`; raise with the log when time is up or the process manager is gone."""
    deadline = time.monotonic() + seconds
    while not done():
        if manager.poll() is not None or time.monotonic() > deadline:
            raise UpError(f"{what} did not start:\n{tail(log)}")
        time.sleep(0.05)


def tail(log: Path, lines: int = 25) -> str:
    with contextlib.suppress(OSError):
        return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
    return f"(no log at {log})"


def fallen(supervisor: Any, logs: Path) -> None:
    """Raise if the process manager has given up restarting a program."""
    for program in supervisor.getAllProcessInfo():
        if program["statename"] == "FATAL":
            raise UpError(f"{program['name']} does not stay up:\n{tail(logs / (program['name'] + '.log'))}")


def answers(port: int) -> bool:
    """Whether the site sends a page; in production, where requests need the proxy, any answer below 500 suffices."""
    refused = 500 if os.environ.get("PARLEY_ENV") == "production" else 400
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/")
        return connection.getresponse().status < refused
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def healthy() -> dict[str, Any]:
    """The result of `manage.py check_health --json`."""
    done = subprocess.run([*MANAGE, "check_health", "--json"], cwd=ROOT, capture_output=True, text=True, check=False)
    try:
        state: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        return {"ok": False, "problems": [done.stderr.strip() or "check_health said nothing"]}
    return state


def wait_ready(supervisor: Any, port: int, logs: Path) -> None:
    """Wait until the site answers and every part of it is alive."""
    deadline = time.monotonic() + READY_SECONDS
    problems = ["the site does not answer"]
    while time.monotonic() < deadline:
        fallen(supervisor, logs)
        if answers(port):
            state = healthy()
            if state["ok"]:
                return
            problems = state["problems"]
        time.sleep(0.2)
    raise UpError("not ready in time: " + "; ".join(problems) + f"\n{tail(logs / 'web.log')}")


def require_migrated() -> None:
    """Raise unless the database has the tables of this version."""
    done = subprocess.run([*MANAGE, "migrate", "--check"], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        why = f":\n{done.stderr.strip()}" if done.stderr.strip() else ""
        raise UpError(f"the database is not set up for this version: run `make setup`{why}")


def demo_data() -> str:
    """Create the sample dataset and the demo user unless they exist; return the command's output."""
    done = subprocess.run([*MANAGE, "demo_data"], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UpError(f"demo_data failed:\n{done.stderr.strip()}")
    return done.stdout.strip()


def main() -> int:
    parser = argparse.ArgumentParser(description="Start everything in the foreground; Ctrl-C stops all of it.")
    parser.add_argument("--demo", action="store_true", help="also make a sample dataset and a demo user")
    demo = parser.parse_args().demo
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)  # as Ctrl-C, which a shell's background jobs ignore
    try:
        port = free_port()
        env = environment(port)
        logs, address = Path(env["PARLEY_LOGS"]), f"http://127.0.0.1:{port}/"
        with supervised(env) as supervisor:
            deadline = time.monotonic() + READY_SECONDS
            while not all(server.running() for server in embedded.servers()):
                fallen(supervisor, logs)
                if time.monotonic() > deadline:
                    raise UpError(f"the databases did not start:\n{tail(logs / 'databases.log')}")
                time.sleep(0.05)
            require_migrated()
            supervisor.startProcessGroup("site", False)
            greeting = demo_data() if demo else ""
            wait_ready(supervisor, port, logs)
            supervisor.startProcess("models", False)
            print(f"\n  Parley is ready: {address}\n", flush=True)
            if greeting:
                print("  " + greeting.replace("\n", "\n  ") + "\n", flush=True)
            print(f"  Logs are in {logs}. Ctrl-C stops everything.", flush=True)
            while not stopped.wait(5.0):
                fallen(supervisor, logs)
    except KeyboardInterrupt:
        print("\nstopped", flush=True)
        return 0
    except UpError as error:
        print(f"up: {error}", file=sys.stderr)
        return 2 if isinstance(error, WrongNumber) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
