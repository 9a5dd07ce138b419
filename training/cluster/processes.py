"""The Ray of a run: one of its own on this machine, or an operator's cluster that it joins.

A Ray of the run's own listens on the loopback interface alone, asks every caller for a random token, sends no
statistics of use, has no dashboard, and ends with the driver within seconds, also if that is killed (its two agents,
which hold no model, within about a minute). `BadInput`: the address is wrong, or a node cannot run what the driver
runs. `OutsideError`: Ray did not start, or did not answer in time. Errors name nodes and no addresses of theirs.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import secrets
import shutil
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from training.cluster import nodes, watch
from training.cluster.nodes import FIELD, one_line
from training.cluster.section import LOCAL
from training.cluster.watch import ClusterMonitor
from training.environment import visible
from training.errors import BadInput, OutsideError, ParleyError, ProcessLost

log = logging.getLogger(__name__)

ROOT = Path(__file__).resolve().parents[2]
LONGEST_FOLDER = 40
"""Longest path of Ray's folder: those of its sockets are 66 characters longer, and the system takes 107."""
PREFIX = "parley-ray-"
PAUSE_S = 1.0
"""Seconds between two tries to reach the head of a cluster."""
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_AUTO_CONNECT": "0",  # else a call after the end would start another Ray, open to others
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # else Ray replaces 127.0.0.1 by an address that others can reach
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "1",  # a process without a GPU sees none
}


@dataclass(frozen=True, slots=True)
class Node:
    """One machine of the cluster: Ray's id of it, its name and address, and the GPUs and CPUs that Ray may allocate.

    `cpus` is 0 where processes need not ask for any, on a Ray of the run's own.
    """

    id: str
    name: str
    address: str
    gpus: int
    cpus: int = 0


class Cluster:
    """A Ray that this process is connected to. Use as a context manager, or call `stop`."""

    def __init__(self, address: str, folder: Path | None) -> None:
        self.address = address
        self.folder = folder
        """The folder of a Ray of the run's own, which nobody else can read."""
        self.warnings: list[str] = []
        """What is wrong with the nodes, although the run can go on."""

    @property
    def joined(self) -> bool:
        """Whether it is an operator's cluster, which goes on after the run."""
        return self.folder is None

    def nodes(self) -> list[Node]:
        """Return the machines that are alive, the driver's own or head first."""
        import ray

        alive = [node for node in ray.nodes() if node["Alive"]]  # type: ignore[no-untyped-call]
        nodes = [
            Node(
                id=node["NodeID"],
                name=node["NodeManagerHostname"],
                address=node["NodeManagerAddress"],
                gpus=int(node["Resources"].get("GPU", 0)),
                cpus=int(node["Resources"].get("CPU", 0)) if self.joined else 0,
            )
            for node in alive
        ]
        head = {node["NodeID"] for node in alive if "node:__internal_head__" in node["Resources"]}
        return sorted(nodes, key=lambda node: (node.id not in head, node.name, node.id))

    def stop(self) -> None:
        """Leave the cluster; a Ray of the run's own ends, and its folder is deleted. May be called twice."""
        import ray

        watch.end()
        with _signals_kept():
            ray.shutdown()
        if self.folder is not None:
            _use_token(None)
            _end_processes(self.folder)
            shutil.rmtree(self.folder, ignore_errors=True)
            delete_leftovers()  # of engines, which were killed

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def start(
    address: str = "",
    *,
    gpus: int | None = None,
    packages: Collection[str] = (),
    timeout_s: float = 120.0,
    again: bool = False,
) -> Cluster:
    """Join the Ray at `address`, or else at RAY_ADDRESS; without either, or at "local", start one on this machine.

    `gpus`: how many GPUs a Ray of the run's own may allocate; None = all that it finds. Its processes end with the
    thread that calls this, which should be the main one. `packages` are distributions whose versions must be the same
    on all nodes, besides those that every run needs. `timeout_s` is how long an operator's cluster may take. A
    cluster that does not answer by then is `ProcessLost` where an earlier attempt had joined it (`again`).
    """
    import_ray()
    joined = joined_address(address)
    if not joined:
        return _start(gpus)
    return _join(joined, address or "RAY_ADDRESS", packages, timeout_s, again=again)


def joined_address(address: str) -> str:
    """Return the address of the cluster that a run joins: `address`, or else RAY_ADDRESS; empty if it joins none."""
    wanted = address or os.environ.get("RAY_ADDRESS", "")
    return "" if wanted == LOCAL else wanted


def import_ray() -> Any:
    """Import Ray with the settings that it reads at import; raise `BadInput` where it is not installed."""
    for name, value in _QUIET.items():
        if name != "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER":
            os.environ.setdefault(name, value)
    try:
        import ray
    except ImportError as error:
        raise BadInput(f"Ray cannot be imported ({error}): run `make setup`", "cluster") from error
    return ray


def _start(gpus: int | None) -> Cluster:
    delete_leftovers()
    folder = temporary_folder()
    token = folder / "token"
    token.touch(mode=0o600)
    token.write_text(secrets.token_hex(32))
    _use_token(token)
    cluster = Cluster("local", folder)
    options: dict[str, Any] = {
        "address": "local",
        "num_cpus": 0,  # Ray would start a worker for each; ours need none
        "num_gpus": gpus,
        "include_dashboard": False,
        "_node_ip_address": "127.0.0.1",
        "_temp_dir": str(folder),
    }
    try:
        with _environment(), _loopback(), _few_processes():
            _connect(options, f"Ray did not start on {socket.gethostname()}")
    except ParleyError:
        cluster.stop()
        raise
    cluster.address = _address()
    watch.begin(ClusterMonitor(watch.of_this_machine(own=True)))
    return cluster


def _join(address: str, name: str, packages: Collection[str], timeout_s: float, *, again: bool) -> Cluster:
    """Join the cluster at an address, which errors call by `name`: they are shown to people who need not know it."""
    deadline = time.monotonic() + timeout_s
    cluster = Cluster(address, None)
    local = address.rpartition(":")[0] in ("localhost", "127.0.0.1")
    try:
        if why := _unanswered(address, name, deadline):
            raise ProcessLost(why) if again else BadInput(why, FIELD)
        with _loopback() if local else contextlib.nullcontext():
            left = max(1.0, deadline - time.monotonic())
            _connect_in_time({"address": address}, left, f"the Ray at {name} did not answer")
        watch.begin(ClusterMonitor(watch.of_this_machine(own=False), watch.head_of(address, name)))
        cluster.warnings += nodes.check(cluster, packages, deadline)
    except ParleyError as error:
        cluster.stop()
        if again and isinstance(error, OutsideError):
            raise ProcessLost(str(error)) from error
        raise
    for why in cluster.warnings:
        log.warning("%s", why)
    return cluster


def _unanswered(address: str, name: str, deadline: float) -> str:
    """Wait until something listens at the address: the head may be starting, perhaps again. Return why nothing does."""
    host, _, port = address.rpartition(":")
    if "://" in address or not host or not port.isdigit() or int(port) > 65535:
        raise BadInput(f"{name} is not the HOST:PORT of a Ray, such as 10.0.0.5:6379", FIELD)
    waiting = False
    while True:
        try:
            watch.check_listening(address, 10.0)
        except OSError as error:
            left = deadline - time.monotonic()
            why = f"no Ray answers at {name}: {error}"
            if left <= 0:
                return why
            if not waiting:
                log.warning("%s; it is tried again for %.0f s", why, left)
                waiting = True
            time.sleep(min(PAUSE_S, left))
        else:
            return ""


@contextlib.contextmanager
def _few_processes() -> Iterator[None]:
    """Start no autoscaler, no process that forwards logs and none of the dashboard, which a run of its own never asks.

    They take half of the CPU time of a start, and `ray.init` has no argument against them.
    """
    from ray._private.node import Node

    kept = {name: getattr(Node, name) for name in ("start_monitor", "start_log_monitor", "start_api_server")}
    try:
        for name in kept:
            setattr(Node, name, lambda *_, **__: None)
        yield
    finally:
        for name, method in kept.items():
            setattr(Node, name, method)


def _connect(options: Mapping[str, Any], late: str) -> None:
    """Connect to Ray in this thread: the processes that Ray starts end with the thread that started them."""
    ray = import_ray()
    try:
        with _signals_kept(), _silent():
            # else what raylets report goes to standard output
            ray._private.worker._worker_logs_enabled = False  # noqa: SLF001
            ray.init(configure_logging=False, log_to_driver=False, **options)
    except Exception as error:  # whatever Ray, gRPC or the system raise here
        if "ersion mismatch" in str(error):
            raise BadInput(f"the cluster runs other versions: {one_line(error)}", FIELD) from error
        raise OutsideError(f"{late}: {type(error).__name__}: {one_line(error)}") from error


def _connect_in_time(options: Mapping[str, Any], timeout_s: float, late: str) -> None:
    """Connect to a Ray that is there already, in a thread, so that the wait is bounded."""
    outcome: queue.SimpleQueue[ParleyError | None] = queue.SimpleQueue()

    def connect() -> None:
        try:
            _connect(options, late)
        except ParleyError as error:
            outcome.put(error)
        else:
            outcome.put(None)

    threading.Thread(target=connect, name="ray-init", daemon=True).start()
    try:
        error = outcome.get(timeout=timeout_s)
    except queue.Empty:
        raise OutsideError(f"{late} within {timeout_s:.0f} s") from None
    if error is not None:
        raise error


def _address() -> str:
    import ray

    return str(ray.get_runtime_context().gcs_address)


def _use_token(file: Path | None) -> None:
    """Let Ray ask for the token in a file, and send it; None = as the environment says that Parley was started in."""
    from ray._raylet import AuthenticationTokenLoader, Config  # type: ignore[attr-defined]

    for name, value in {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(file)}.items():
        if file is not None:
            _BEFORE.setdefault(name, os.environ.get(name))
            os.environ[name] = value
        elif (before := _BEFORE.pop(name, None)) is not None:
            os.environ[name] = before
        else:
            os.environ.pop(name, None)
    Config.initialize("")  # Ray read the variables when it was imported
    AuthenticationTokenLoader.instance().reset_cache()


_BEFORE: dict[str, str | None] = {}
"""What the variables about tokens were before a Ray of the run's own was started."""


@contextlib.contextmanager
def _environment() -> Iterator[None]:
    """Hide secrets from what Ray starts meanwhile, and let it find Parley's modules."""
    before = dict(os.environ)
    hidden = before.keys() - visible(before).keys()
    for name in hidden:
        del os.environ[name]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT), before.get("PYTHONPATH"))))
    try:
        yield
    finally:
        os.environ.update({name: before[name] for name in hidden})
        if "PYTHONPATH" in before:
            os.environ["PYTHONPATH"] = before["PYTHONPATH"]
        else:
            del os.environ["PYTHONPATH"]


@contextlib.contextmanager
def _loopback() -> Iterator[None]:
    """Let Ray use 127.0.0.1 as this node's address, which it otherwise replaces by one that others can reach."""
    from ray._private import ray_constants

    name = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
    before, constant = os.environ.get(name), ray_constants.ENABLE_RAY_CLUSTER
    os.environ[name] = _QUIET[name]  # for the processes that Ray starts
    ray_constants.ENABLE_RAY_CLUSTER = False  # Ray read the variable when it was imported
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = constant
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


@contextlib.contextmanager
def _signals_kept() -> Iterator[None]:
    """Restore the handlers of signals, which Ray replaces by its own."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGTERM, signal.SIGINT)
    before: dict[signal.Signals, Callable[..., Any] | int | None] = {n: signal.getsignal(n) for n in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            if handler is not None and signal.getsignal(number) is not handler:
                signal.signal(number, handler)


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """Keep Ray's notices about tokens and signal handlers off the log."""
    logger = logging.getLogger("ray")
    before, logger.level = logger.level, logging.ERROR
    try:
        yield
    finally:
        logger.level = before


def temporary_folder() -> Path:
    """Return a new folder with a path short enough for sockets, which `delete_leftovers` deletes if this is killed."""
    name = f"{PREFIX}{os.getpid()}-"
    for parent in (tempfile.gettempdir(), "/tmp"):  # noqa: S108 (mkdtemp makes it private)
        if len(parent) + len(name) + 9 <= LONGEST_FOLDER:
            return Path(tempfile.mkdtemp(prefix=name, dir=parent))
    raise OutsideError(f"there is no temporary folder with a path short enough for Ray: {tempfile.gettempdir()}")


def delete_leftovers() -> None:
    """End the processes and delete the folders of drivers and engines on this machine that were killed."""
    for parent in {tempfile.gettempdir(), "/tmp"}:  # noqa: S108 (only folders with our name and of this user)
        for folder in Path(parent).glob(f"{PREFIX}*-*"):
            pid = folder.name.removeprefix(PREFIX).partition("-")[0]
            with contextlib.suppress(OSError):
                if pid.isdigit() and folder.stat().st_uid == os.getuid() and not _alive(int(pid)):
                    _end_processes(folder)
                    shutil.rmtree(folder, ignore_errors=True)


def _end_processes(folder: Path) -> None:
    """End the processes of the Ray with this folder, and those that they have started."""
    import psutil

    ending: set[psutil.Process] = set()
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if _belongs(process, folder):
                ending |= {process, *process.children(recursive=True)}
    for process in ending:
        with contextlib.suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(list(ending), timeout=5.0)


def _belongs(process: Any, folder: Path) -> bool:
    """Whether a process is of the Ray with this folder; actors have another command line, but their logs in it."""
    line = " ".join(process.cmdline())
    if line.startswith("ray::"):
        return any(Path(file.path).is_relative_to(folder) for file in process.open_files())
    return str(folder) in line and "/ray/" in line


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
