"""`make test`: the whole test suite in five passes, with one closing line. Exits with the status of the first pass
that fails.

Pure tests run on two processes, with a lower priority than the passes beside them: the tests that drive a browser, then
those of engines and learners; and the others that run vLLM or wait for processes. Then the tests that measure time run
alone. If no Chromium is installed, root installs it with apt; for other users browser tests are skipped.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as ET
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain, islice
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


def waiting(*, learning: bool) -> list[str]:
    """The test files that run vLLM or wait for processes: those of the folders `LEARNING`, or the others."""
    folder = len((ROOT / "tests").parts)
    return [file for file in naming("vllm", "process") if (Path(file).parts[folder] in LEARNING) == learning]


LEARNING = ("engines", "evaluate", "learn", "players")
"""Folders whose tests take about as long as the browser's leave until the pure ones end."""
ONE_THREAD = {"OMP_NUM_THREADS": "1"}
SAME_PRIORITY = {**ONE_THREAD, "RAY_worker_niceness": "0"}  # by itself Ray puts its processes behind the pure tests
BY_TWO = ("-n", "2", "--dist", "worksteal")  # neighbours share what their module prepares
CHAINS = (
    (Pass("pure tests, on two processes", ("-m", PURE, *BY_TWO), ONE_THREAD, ("nice", "-n", "5")),),
    (
        Pass("browser, beside the pure tests", ("-m", BROWSER), files=lambda: [str(ROOT / "tests" / "browser")]),
        Pass("engines and learners", ("-m", PROCESS), SAME_PRIORITY, files=lambda: waiting(learning=True)),
    ),
    (Pass("other processes and vLLM", ("-m", PROCESS), SAME_PRIORITY, files=lambda: waiting(learning=False)),),
)
"""Passes that run at once; those of a chain run one after another."""
TOGETHER = tuple(chain.from_iterable(CHAINS))
ALONE = Pass("tests that measure time, alone", ("-m", "serial"), files=lambda: naming("serial"))
NOTHING_COLLECTED = 5
SLOWEST = 12
"""Modules of each pass that are named with the time of their tests."""
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


def read(report: Path) -> ET.Element:
    """A JUnit report, empty if its pass did not come so far."""
    return ET.parse(report).getroot() if report.exists() else ET.Element("testsuites")  # noqa: S314 (pytest wrote it)


def count(report: ET.Element) -> Counter[str]:
    """The number of tests by outcome in a JUnit report."""
    outcomes: Counter[str] = Counter()
    for suite in report.iter("testsuite"):
        number = {name: int(suite.get(name, 0)) for name in ("tests", "failures", "errors", "skipped")}
        outcomes += Counter(
            failed=number["failures"],
            passed=number["tests"] - number["failures"] - number["errors"] - number["skipped"],
            skipped=number["skipped"],
            errors=number["errors"],
        )
    return outcomes


def seconds(report: ET.Element) -> dict[str, float]:
    """How long the tests of each module took, by its name, in a JUnit report; the longest first."""
    taken: defaultdict[str, float] = defaultdict(float)
    for case in report.iter("testcase"):
        taken[case.get("classname", "")] += float(case.get("time", 0))
    return dict(sorted(taken.items(), key=lambda each: -each[1]))


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


def together(chains: Sequence[Sequence[Pass]], folder: Path) -> list[int]:
    """Run chains at once, the output of all passes after that of the first; return the exit codes of the passes."""
    passes = [*chain.from_iterable(chains)]
    print(f"test: {passes[0].title}", flush=True)
    outputs: list[IO[str] | None] = [None, *((folder / f"{at}.out").open("w+") for at in range(1, len(passes)))]
    processes: list[subprocess.Popen[str]] = []
    codes, ended = [-signal.SIGKILL] * len(passes), threading.Event()

    def run(numbers: Sequence[int]) -> None:
        for at in numbers:
            if not ended.is_set():
                processes.append(process := start(passes[at], folder / f"{at}.xml", outputs[at]))
                codes[at] = process.wait()

    numbers = iter(range(len(passes)))
    with ThreadPoolExecutor(len(chains)) as pool:
        running = [pool.submit(run, [*islice(numbers, len(each))]) for each in chains]
        try:
            for each in running:
                each.result()
        finally:
            ended.set()
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
        codes = together(CHAINS, folder)
        print(f"test: {ALONE.title}", flush=True)
        codes.append(start(ALONE, folder / f"{len(codes)}.xml", None).wait())
        reports = [read(folder / f"{number}.xml") for number in range(len(codes))]
    for part, report in zip((*TOGETHER, ALONE), reports, strict=True):
        outcomes += count(report)
        taken = seconds(report)
        slowest = ", ".join(f"{module} {spent:.0f} s" for module, spent in islice(taken.items(), SLOWEST))
        print(f"test: {part.title}: {sum(taken.values()):.0f} s in tests; {slowest}", flush=True)
    print(closing(outcomes, time.monotonic() - begun), flush=True)
    return status(codes, outcomes)


if __name__ == "__main__":
    sys.exit(main())
