"""How long a start takes: the whole site from an installed environment, and `python -m training --help`.

`python -m tools.up --demo` starts the site in a temporary folder; the time runs from the command to the line that says
that the site is ready. A first start creates the databases and the demo data and is not counted. The command line is
compared with bare Python, in alternation. Fails with the launcher's output if the site does not start.
"""

from __future__ import annotations

import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from training.errors import ParleyError

ROOT = Path(__file__).resolve().parents[1]
SITE_LIMIT_S, HELP_LIMIT_S = 15.0, 0.5
READY = "Parley is ready"
STOP_S = 150.0
HELP, BARE = ["-m", "training", "--help"], ["-c", "pass"]


def main(arguments: Namespace) -> dict[str, Any]:
    """Start everything several times; return seconds, medians and whether they are within the limits."""
    with installed() as environment:
        sites = [start_site(environment) for _ in range(arguments.rounds + 1)][1:]
    pairs = [(_seconds(HELP), _seconds(BARE)) for _ in range(arguments.rounds + 1)][1:]
    return summary(sites, [help_s for help_s, _ in pairs], [bare_s for _, bare_s in pairs])


def summary(sites: Sequence[float], helps: Sequence[float], bare: Sequence[float]) -> dict[str, Any]:
    """Return the seconds of each part with their median and spread, beside the limits."""
    above = statistics.median(helps) - statistics.median(bare)
    ready = {**_spread(sites), "limit_s": SITE_LIMIT_S, "ok": statistics.median(sites) <= SITE_LIMIT_S}
    command = {"help": _spread(helps), "bare": _spread(bare), "above_s": round(above, 3), "limit_s": HELP_LIMIT_S}
    return {"site": ready, "command": {**command, "ok": above <= HELP_LIMIT_S}}


def show(result: dict[str, Any]) -> str:
    """Return one line for each part."""
    site, command = result["site"], result["command"]
    spread = "from {:.1f} to {:.1f}".format(*site["spread"])
    return (
        f"site ready: {site['median']:.1f} s ({spread}), within {SITE_LIMIT_S:.0f} s: {site['ok']}\n"
        f"--help: {command['above_s']:.2f} s above bare Python, within {HELP_LIMIT_S} s: {command['ok']}"
    )


def _spread(seconds: Sequence[float]) -> dict[str, Any]:
    rounded = [round(value, 3) for value in seconds]
    return {"seconds": rounded, "median": statistics.median(rounded), "spread": [min(rounded), max(rounded)]}


def _seconds(arguments: Sequence[str]) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, *arguments], cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began


@contextmanager
def installed() -> Iterator[dict[str, str]]:
    """Yield the environment variables of an installation that is migrated and not started yet."""
    with tempfile.TemporaryDirectory(prefix="parley-start-", ignore_cleanup_errors=True) as home:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        kept = {name: value for name, value in os.environ.items() if name not in {"DATABASE_URL", "REDIS_URL"}}
        environment = {**kept, "PARLEY_HOME": home, "PORT": str(port), "PYTHONUNBUFFERED": "1"}
        migrate = [sys.executable, "manage.py", "migrate", "--no-input", "-v0"]
        subprocess.run(migrate, cwd=ROOT, env=environment, check=True)
        yield environment


def start_site(environment: dict[str, str]) -> float:
    """Start the site and stop it again; return the seconds until it reported that it is ready."""
    with site(environment) as seconds:
        return seconds


@contextmanager
def site(environment: dict[str, str]) -> Iterator[float]:
    """Run the whole site; yield the seconds until it reported that it is ready."""
    began, output = time.perf_counter(), ""
    with subprocess.Popen(
        [sys.executable, "-m", "tools.up", "--demo"],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            for line in process.stdout:
                output += line
                if READY in line:
                    break
            else:
                raise ParleyError(f"the site did not start:\n{output.strip()}")
            yield time.perf_counter() - began
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=STOP_S)
