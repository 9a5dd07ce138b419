"""One served model as a process: `python -m training.engines.serving.serve RUN_DIR --attempt N`.

Merges adapters, starts vLLM's OpenAI server (or else Parley's server over Transformers) on a free port of `host`,
writes its address to `status.json` when it is ready, and exits on request (`control/stop`, SIGTERM, or the end of a
supervisor's standard input). The exit code is 0 after a request, 2 for a model that cannot be loaded, 1 when the server
dies; the reason is in `status.json`. The server's key comes from the environment variable `VLLM_API_KEY`, never from a
file; every path except `/health` requires it.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from training import bases
from training.engines.choice import choose
from training.engines.serving.config import ServeConfig
from training.engines.serving.guard import KeyGuard
from training.errors import BadInput, EngineError, ParleyError
from training.rundir import AttemptDir, RunDir
from training.store import atomic_directory, write_json
from training.supervised import held_input

BEAT_S = 5.0
LEAVE_S = 10.0


class Serving:
    """The server process and its state."""

    def __init__(self, config: ServeConfig, attempt: AttemptDir) -> None:
        self.config, self.attempt = config, attempt
        self.leave = threading.Event()
        self.child: subprocess.Popen[bytes] | None = None
        self.address = ""

    def say(self, phase: str, **facts: Any) -> None:
        """Write the heartbeat."""
        write_json(self.attempt.status, {"phase": phase, "at": time.time(), "pid": os.getpid(), **facts})

    def run(self) -> None:
        """Serve until a stop is requested; raise `EngineError` if the server dies or does not answer in time."""
        self.say("starting")
        folder = prepared(self.config.model, self.attempt.root / "served")
        port = free_port(self.config.host)
        self.address = f"http://{self.config.host}:{port}/v1"
        self.child = subprocess.Popen(command(self.config, folder, port), env=environment(), stdin=subprocess.DEVNULL)
        try:
            self._wait_until_ready(f"http://{self.config.host}:{port}/health")
            while not self._stop_requested(BEAT_S):
                if self._died():
                    raise EngineError(f"the model server ended by itself with code {self.child.returncode}")
                if answers(f"http://{self.config.host}:{port}/health"):
                    self.say("ready", address=self.address)
        finally:
            self._stop_child()

    def _wait_until_ready(self, health: str) -> None:
        ends = time.monotonic() + self.config.start_s
        while not answers(health):
            if self._died():
                assert self.child is not None
                raise EngineError(f"the model server did not start (code {self.child.returncode}); see the log")
            if time.monotonic() > ends:
                raise EngineError(f"the model server did not answer within {self.config.start_s:g} s")
            if self._stop_requested(0.3):
                return
        self.say("ready", address=self.address)

    def _died(self) -> bool:
        return self.child is not None and self.child.poll() is not None

    def _stop_requested(self, wait: float) -> bool:
        """Wait up to `wait` seconds for a request to stop; return whether there is one."""
        ends = time.monotonic() + wait
        while True:
            if self.leave.is_set() or self.attempt.asked("stop"):
                return True
            if (remaining := ends - time.monotonic()) <= 0:
                return False
            self.leave.wait(min(0.3, remaining))

    def _stop_child(self) -> None:
        if self.child is None:
            return
        self.child.terminate()
        try:
            self.child.wait(LEAVE_S)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()


def prepared(model: str, target: Path) -> Path:
    """Return a folder that a server can load: the model's own, or `target` with the adapters merged."""
    folder = bases.verified(model)
    if not bases.is_adapter(folder):
        return folder
    from training.engines.local import loading  # imports torch and Transformers, which would stay beside the server

    tokenizer = loading.load_tokenizer(folder)
    with atomic_directory(target) as temporary:
        loading.load_merged(folder, "bfloat16" if on_gpu() else "float32").save_pretrained(temporary)
        tokenizer.save_pretrained(temporary)
    return target


def on_gpu() -> bool:
    """Return whether there is a GPU to serve on."""
    import torch

    return bool(torch.cuda.is_available())


def free_port(host: str) -> int:
    """Return a free port of `host`."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def command(config: ServeConfig, folder: Path, port: int) -> list[str]:
    """Return the command line of the server."""
    where = ["--host", config.host, "--port", str(port)]
    if choose(config.engine) == "transformers":
        running = ("--max-running", str(config.max_running))
        return [
            sys.executable,
            "-m",
            "training.engines.serving.server",
            str(folder),
            "--name",
            config.name,
            *where,
            *running,
        ]
    device = ["--gpu-memory-utilization", str(config.gpu_share)] if on_gpu() else ["--enforce-eager"]
    return [
        *(sys.executable, "-m", "vllm.entrypoints.openai.api_server"),
        *("--model", str(folder), "--served-model-name", config.name, *where),
        *("--max-num-seqs", str(config.max_running), "--generation-config", "vllm"),
        *("--middleware", f"{KeyGuard.__module__}.{KeyGuard.__name__}", "--uvicorn-log-level", "warning", *device),
    ]


def environment() -> dict[str, str]:
    """Return the server's environment: no telemetry, no network, and a small cache where vLLM runs on a CPU."""
    quiet = {"VLLM_NO_USAGE_STATS": "1", "VLLM_LOGGING_LEVEL": "WARNING", "HF_HUB_OFFLINE": "1"}
    return {"VLLM_CPU_KVCACHE_SPACE": "1", **os.environ, **quiet}


def answers(url: str) -> bool:
    """Return whether the address answers 200."""
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310  (our own http address)
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError, ValueError):
        return False


def _leave_with_input(descriptor: int, leave: threading.Event) -> None:
    """Wait for the end of a supervisor's standard input."""
    while os.read(descriptor, 4096):  # not through sys.stdin, whose lock this thread would hold at exit
        pass
    leave.set()


def main() -> int:
    """Serve one model; return the exit code."""
    descriptor = held_input()
    parser = argparse.ArgumentParser(description="Serve one model, as the configuration of a run directory says.")
    parser.add_argument("directory", type=Path, metavar="RUN_DIR")
    parser.add_argument("--attempt", type=int, default=1)
    arguments = parser.parse_args()
    run = RunDir(arguments.directory)
    attempt = run.attempt(arguments.attempt)
    attempt.root.mkdir(parents=True, exist_ok=True)
    try:
        serving = Serving(ServeConfig.model_validate_json(run.config.read_text("utf-8")), attempt)
    except (OSError, ValueError) as error:
        print(f"{run.config}: {error}", file=sys.stderr)  # noqa: T201  (a process's last words)
        return 2
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: serving.leave.set())
    if descriptor is not None:
        threading.Thread(target=_leave_with_input, args=(descriptor, serving.leave), daemon=True).start()
    try:
        serving.run()
    except ParleyError as error:
        serving.say("finished", result="failed", why=str(error))
        print(error, file=sys.stderr)  # noqa: T201  (as above)
        return 2 if isinstance(error, BadInput) else 1
    serving.say("finished", result="stopped")
    return 0


if __name__ == "__main__":
    sys.exit(main())
