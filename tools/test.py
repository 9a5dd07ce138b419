"""`make test`: the whole test suite in four passes, with one closing line. Exits with the status of the first pass
that fails.

Pure tests run on two processes, with a lower priority than the two passes beside them: the tests that drive a browser,
and those that run vLLM or wait for processes, each one at a time. Then the tests that measure time run alone. If no
Chromium is installed, root installs it with apt; for other users browser tests are skipped.
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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parents[1]
PURE = "not (browser or vllm or process or serial)"
BROWSER = "browser and not serial"
PROCESS = "(process or vllm) and not (browser or serial)"


@dataclass(frozen=True)
class Pass:
    """One run of pytest over the tests that its marks choose, in the files that `files` returns, or in all."""

    title: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    prefix: tuple[str, ...] = ()
    files: Callable[[], Sequence[str]] = tuple


def naming(*marks: str) -> list[str]:
    """The test files that name one of these marks; `tests/conftest.py` refuses others that have such tests.

    To import all test files takes ten seconds.
    """
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    return [str(file) for file in files if any(f"mark.{mark}" in file.read_text("utf-8") for mark in marks)]


TOGETHER = (
    Pass(
        "pure tests, on two processes",
        ("-m", PURE, "-n", "2", "--dist", "worksteal"),  # neighbours share what their module prepares
        {"OMP_NUM_THREADS": "1"},
        ("nice", "-n", "5"),
    ),
    Pass("browser, beside the pure tests", ("-m", BROWSER), files=lambda: [str(ROOT / "tests" / "browser")]),
    Pass(
        "vLLM and processes, beside the pure tests",
        ("-m", PROCESS),
        {"OMP_NUM_THREADS": "1"},
        files=lambda: naming("vllm", "process"),
    ),
)
ALONE = Pass("tests that measure time, alone", ("-m", "serial"), files=lambda: naming("serial"))
NOTHING_COLLECTED = 5
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""The best first: without the parts of a window, a page takes less than half of the CPU time."""
PACKAGES = ("chromium-headless-shell", "chromium")
"""Debian has both, others the second."""


def browser() -> None:
    """Install Chromium if it is missing and can be installed, else report that browser tests are skipped."""
    if _browser_found():
        return
    if os.geteuid() == 0 and shutil.which("apt-get"):
        print("test: installing Chromium with apt", flush=True)
        _apt_get("update")
        for package in PACKAGES:
            if not _browser_found():
                _apt_get("install", "-y", "--no-install-recommends", package)
    if not _browser_found():
        print("test: SKIPPED browser tests: no Chromium, and only root can install it with apt", flush=True)


def _browser_found() -> bool:
    return any(shutil.which(name) for name in BROWSERS)


def _apt_get(*arguments: str) -> None:
    subprocess.run(
        ["apt-get", "-qq", *arguments],
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )


def count(report: Path) -> Counter[str]:
    """The number of tests by outcome in a JUnit report."""
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


def start(part: Pass, report: Path, output: IO[str] | None) -> subprocess.Popen[str]:
    chosen = sys.argv[1:] or part.files()
    command = [*part.prefix, sys.executable, "-m", "pytest", *part.arguments, f"--junitxml={report}", *chosen]
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "", **part.environment},  # a hundred processes import the same
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        text=True,
    )


def together(passes: Sequence[Pass], folder: Path) -> list[int]:
    """Run passes at once, the output of the others after the first one's; return their exit codes."""
    print(f"test: {passes[0].title}", flush=True)
    outputs: list[IO[str] | None] = [None, *((folder / f"{at}.out").open("w+") for at in range(1, len(passes)))]
    processes = [start(part, folder / f"{at}.xml", outputs[at]) for at, part in enumerate(passes)]
    try:
        codes = [process.wait() for process in processes]
    finally:
        for process in processes:
            process.kill()
    for part, output in zip(passes, outputs, strict=True):
        if output is not None:
            print(f"test: {part.title}", flush=True)
            output.seek(0)
            shutil.copyfileobj(output, sys.stdout)
            output.close()
            sys.stdout.flush()
    return codes


def status(codes: Sequence[int], outcomes: Counter[str]) -> int:
    """The exit code of the first pass that failed, negative if a signal ended it; else 1 if no test has passed."""
    failed = [code for code in codes if code not in (0, NOTHING_COLLECTED)]
    return failed[0] if failed else int(not outcomes["passed"])


def main() -> int:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # tests send SIGINT; background jobs ignore it
    browser()
    outcomes, begun = Counter[str](), time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        codes = together(TOGETHER, folder)
        print(f"test: {ALONE.title}", flush=True)
        codes.append(start(ALONE, folder / f"{len(codes)}.xml", None).wait())
        for number in range(len(codes)):
            outcomes += count(folder / f"{number}.xml")
    print(closing(outcomes, time.monotonic() - begun), flush=True)
    return status(codes, outcomes)


if __name__ == "__main__":
    sys.exit(main())
