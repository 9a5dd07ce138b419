"""The endpoint that agents talk to: a remote model, or a model folder behind a server of this process's own.

Raises `BadInput` for a model that cannot be served or an address that is not allowed, `EngineError` for a server that
does not start.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from httpx2 import ConnectError

from training import bases
from training.engines.base import Sampling
from training.engines.remote.addresses import AllowList, port_of
from training.engines.remote.chat import RemoteModel
from training.engines.remote.config import Parameter, RemoteConfig, remote_config, secret_from_environment
from training.engines.remote.transport import Refused, resolve
from training.engines.serving.config import ServeConfig
from training.errors import BadInput, EngineError
from training.players import contestants
from training.rundir import AttemptDir, RunDir
from training.store import loads, write_json

SECRET = "SERVED_API_KEY"  # noqa: S105  (the name under which the key of our own server is known)
TIMEOUT_S = 600.0
START_S = 600.0
LEAVE_S = 30.0
PARAMETERS: tuple[Parameter, ...] = ("temperature", "top_p", "top_k", "max_tokens", "seed")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An OpenAI-compatible address with its key, how replies are sampled, and facts that results report."""

    remote: RemoteConfig
    key: str
    sampling: Sampling
    facts: Mapping[str, Any]

    def model(self) -> RemoteModel:
        """Return a client; the caller closes it."""
        entry = f"{self.remote.address}={self.remote.secret}" if self.remote.secret else self.remote.address
        return RemoteModel(self.remote, allowed=AllowList.of([entry]), secret=lambda _: self.key)


@contextmanager
def opened(source: str, sampling: Sampling, folder: Path, *, engine: str, lanes: int) -> Iterator[Endpoint]:
    """Yield the endpoint of a model; a server of our own writes its log to `folder` and ends with the block."""
    if "://" in source:
        yield _remote(source, sampling, lanes)
        return
    path = bases.resolve(source).resolve()
    facts = {"source": contestants.unplaced(source), "engine": engine, **contestants.facts(path)}
    with _served(path, folder, engine, lanes) as (address, key):
        yield Endpoint(_config(address, "parley", SECRET, lanes), key, sampling, facts)


def check(source: str, max_tokens: int) -> None:
    """Raise `BadInput` unless `source` names a model whose window holds a reply of `max_tokens` and a prompt."""
    if "://" in source:
        _remote(source, Sampling(), 1)
        return
    folder = bases.resolve(source)
    if max_tokens >= (window := contestants.longest_window(folder)):
        raise BadInput(f"a prompt and {max_tokens} tokens do not fit the model's window of {window}", "--max-tokens")


def _config(address: str, model: str, secret: str, lanes: int) -> RemoteConfig:
    return RemoteConfig(
        address=address,
        model=model,
        secret=secret,
        timeout_s=TIMEOUT_S,
        max_bytes=8_000_000,
        concurrency=min(lanes, 256),
        accepts=PARAMETERS,
    )


def _remote(source: str, sampling: Sampling, lanes: int) -> Endpoint:
    named = remote_config(source)
    url = AllowList.from_environment().check(named.address, named.secret)
    try:
        asyncio.run(resolve(url.host, port_of(url)))  # AutoGen's client would connect wherever the name leads
    except (Refused, ConnectError) as error:
        raise BadInput(str(error), "--model") from error
    key = secret_from_environment(named.secret) if named.secret else ""
    facts = {"source": source, "address": named.address, "model": named.model}
    return Endpoint(_config(named.address, named.model, named.secret, lanes), key, sampling, facts)


@contextmanager
def _served(model: Path, folder: Path, engine: str, lanes: int) -> Iterator[tuple[str, str]]:
    """Yield (address, key) of a server process, ready; it ends with the block, or with this process."""
    run, key = RunDir(folder), secrets.token_hex(16)
    folder.mkdir(parents=True)
    config = ServeConfig(model=str(model), engine=engine, max_running=lanes, start_s=START_S)
    write_json(run.config, config.to_dict())
    command = [sys.executable, "-m", "training.engines.serving.serve", str(folder), "--attempt", "1"]
    with (folder / "log.txt").open("wb") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=log, stderr=log, env={**os.environ, "VLLM_API_KEY": key}
        )
    try:
        yield _address(process, run.attempt(1)), key
    finally:
        try:
            process.communicate(timeout=LEAVE_S)  # the end of its input ends it
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _address(process: subprocess.Popen[bytes], attempt: AttemptDir) -> str:
    """Wait until the server is ready; return its address."""
    ends = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < ends:
        status = loads(attempt.status.read_bytes()) if attempt.status.exists() else {}
        if status.get("phase") == "ready":
            return str(status["address"])
        time.sleep(0.2)
    raise EngineError(f"the model server did not start; see {attempt.root.parents[1].name}/log.txt")
