"""The processes of docker-compose.yml without Docker: started from that very file, with this environment's Python.

A node is a machine of an installation: its own PARLEY_HOME and temporary folder, its own address of the loopback
network, and, under root, a view of the file system in which the folders of the other nodes are empty.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
VARIABLE = re.compile(r"\$(?:\$|\{(\w+)(?:(:[?-])([^}]*))?\})")
START_SECONDS = 300.0


class Missing(AssertionError):
    """A variable that the file requires is not set."""


def fill_in(value: str, variables: Mapping[str, str]) -> str:
    """`$$`, `${NAME}`, `${NAME:-default}` and `${NAME:?why}` as Docker Compose reads them."""

    def replace(match: re.Match[str]) -> str:
        name, how, text = match.groups()
        if name is None:
            return "$"
        if stated := variables.get(name, ""):
            return stated
        if how == ":?":
            raise Missing(f"{name}: {text}")
        return text if how == ":-" else ""

    return VARIABLE.sub(replace, value)


def environment_of(service: str, variables: Mapping[str, str]) -> dict[str, str]:
    """The variables of a service's containers; one without a value is passed on where it is set."""
    stated: Mapping[str, str | None] = SERVICES[service].get("environment", {})
    passed_on = {name: variables[name] for name, value in stated.items() if value is None and name in variables}
    return passed_on | {name: fill_in(value, variables) for name, value in stated.items() if value is not None}


def command_of(service: str, variables: Mapping[str, str]) -> list[str]:
    """The command of a service's containers."""
    return [fill_in(word, variables) for word in SERVICES[service]["command"]]


def can_hide_folders() -> bool:
    """Whether this user may mount something over a folder in a view of its own."""
    unshare = shutil.which("unshare")
    if unshare is None or os.geteuid() != 0:
        return False
    command = [unshare, "--mount", "sh", "-c", "mount -t tmpfs tmpfs /mnt"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def free_port(address: str) -> int:
    with socket.socket() as probe:
        probe.bind((address, 0))
        return int(probe.getsockname()[1])


class Node:
    """A machine on which services of docker-compose.yml run.

    `variables` are what its operator exports; `servers` takes the place of the addresses `postgres` and `redis`, which
    only Docker's network knows. `hidden` are folders of other nodes.
    """

    def __init__(
        self, home: Path, address: str, variables: Mapping[str, str], servers: Mapping[str, str], hidden: list[Path]
    ) -> None:
        self.home, self.address = home, address
        self.variables, self.servers, self.hidden = variables, servers, hidden
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.port = free_port(address)
        (home / "tmp").mkdir(parents=True, exist_ok=True)

    def start(self, service: str, name: str = "", **changes: str) -> subprocess.Popen[bytes]:
        """Start a service's command; `name` tells several of one service apart, `changes` are variables of this one."""
        here = {"PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "OMP_NUM_THREADS", "PYTHONPATH"}
        environment = {key: value for key, value in os.environ.items() if key in here}
        environment |= environment_of(service, self.variables) | self.servers
        environment |= {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",  # as in the Dockerfile
            "PARLEY_HOME": str(self.home),
            "TMPDIR": str(self.home / "tmp"),
            "PYTHONUNBUFFERED": "1",
            "NODE_NAME": self.home.name,
            "NODE_ADDRESS": self.address,
            **changes,
        }
        command = [self._here(word) for word in command_of(service, self.variables)]
        for folder in self.hidden:
            command = ["sh", "-c", f'mount -t tmpfs tmpfs "{folder}" && exec "$@"', "sh", *command]
        if self.hidden:
            command = ["unshare", "--mount", *command]
        with self.log(name or service).open("ab") as log:
            process = subprocess.Popen(
                command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        self.processes[name or service] = process
        return process

    def _here(self, word: str) -> str:
        """A word of a command with this node's address and port instead of those in its container."""
        return word.replace("--host 0.0.0.0 --port 8000", f"--host {self.address} --port {self.port}")

    def log(self, name: str) -> Path:
        """Where a process's output is."""
        return self.home / f"{name}.log"

    def healthy(self, service: str) -> bool:
        """Whether the service's own health check succeeds, as its container would run it."""
        kind, *check = SERVICES[service]["healthcheck"]["test"]
        assert kind == "CMD"
        check = [word.replace("('127.0.0.1', 8000)", f"('{self.address}', {self.port})") for word in check]
        environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        return subprocess.run(check, env=environment, capture_output=True, check=False).returncode == 0

    def wait_until_healthy(self, service: str, name: str = "") -> None:
        """Return once the service is healthy; fail with the end of its log."""
        deadline = time.monotonic() + START_SECONDS
        while not self.healthy(service):
            ended = self.processes[name or service].poll()
            if ended is not None or time.monotonic() > deadline:
                raise AssertionError(f"{service} is not healthy ({ended}):\n{self.tail(name or service)}")
            time.sleep(0.2)

    def tail(self, name: str) -> str:
        """The end of a process's output."""
        return self.log(name).read_text(errors="replace")[-4000:]

    def stop(self) -> None:
        """SIGTERM to all, as Docker does, then SIGKILL to whatever is left."""
        for process in self.processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + 45
        for process in self.processes.values():
            try:
                process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
