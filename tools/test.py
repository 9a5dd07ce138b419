"""`make test`: the whole test suite in two passes, closed by one line for both. Exits with pytest's own status.

First what is pure, on two processes; then, alone on the machine, what starts processes, measures time, runs vLLM or
drives a browser. Chromium is installed with apt when root asks and there is none; otherwise browser tests are skipped.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ALONE = "serial or browser or vllm"
PASSES = (("pure tests, on two processes", ["-m", f"not ({ALONE})", "-n", "2"]), ("one at a time", ["-m", ALONE]))
NOTHING_COLLECTED = 5
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def browser() -> None:
    """Make sure of a Chromium, or say that there is none."""
    if any(shutil.which(name) for name in BROWSERS):
        return
    if os.geteuid() == 0 and shutil.which("apt-get"):
        print("test: installing chromium with apt", flush=True)
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for command in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", "chromium"]):
            subprocess.run(
                ["apt-get", *command],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                check=False,
            )
    if not any(shutil.which(name) for name in BROWSERS):
        print("test: SKIPPED browser tests: no Chromium, and only root can install it with apt", flush=True)


def count(report: Path) -> Counter[str]:
    """How many tests of a JUnit report had which outcome."""
    outcomes: Counter[str] = Counter()
    if not report.exists():
        return outcomes
    for suite in ET.parse(report).getroot().iter("testsuite"):  # noqa: S314 (written by pytest, a moment ago)
        number = {name: int(suite.get(name, 0)) for name in ("tests", "failures", "errors", "skipped")}
        outcomes += Counter(
            failed=number["failures"],
            passed=number["tests"] - number["failures"] - number["errors"] - number["skipped"],
            skipped=number["skipped"],
            errors=number["errors"],
        )
    return outcomes


def closing(outcomes: Counter[str], seconds: float) -> str:
    """One closing line in pytest's own form."""
    parts = [f"{outcomes[name]} {name}" for name in ("failed", "passed", "skipped", "errors") if outcomes[name]]
    minutes, rest = divmod(round(seconds), 60)
    clock = f"{minutes // 60}:{minutes % 60:02}:{rest:02}"
    return f" {', '.join(parts) or 'no tests ran'} in {seconds:.2f}s ({clock}) ".center(80, "=")


def main() -> int:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # tests press Ctrl-C; background jobs inherit a deaf ear
    browser()
    status, outcomes, begun = 0, Counter[str](), time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for number, (title, selection) in enumerate(PASSES):
            print(f"test: {title}", flush=True)
            report = Path(folder) / f"{number}.xml"
            command = [sys.executable, "-m", "pytest", *selection, f"--junitxml={report}", *sys.argv[1:]]
            done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, check=False)
            status = status or (0 if done.returncode == NOTHING_COLLECTED else done.returncode)
            outcomes += count(report)
    print(closing(outcomes, time.monotonic() - begun), flush=True)
    return status or (0 if outcomes["passed"] else 1)


if __name__ == "__main__":
    sys.exit(main())
