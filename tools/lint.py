"""`make lint`: style, types, imports and locks. Runs all checks, two at a time; exits 1 if a check fails."""

import argparse
import subprocess
import sys
import sysconfig
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sysconfig.get_path("scripts"))
CHECKS: dict[str, list[str]] = {
    "types of training": [str(BIN / "mypy")],
    "types of the site": [str(BIN / "mypy"), "--config-file", "mypy-site.ini", "--cache-dir", ".mypy_cache/site"],
    "style": [str(BIN / "ruff"), "check", "."],
    "format": [str(BIN / "ruff"), "format", "--check", "."],
    "imports": [str(BIN / "lint-imports"), "--no-logo"],
    "locks": [sys.executable, "tools/locks.py", "check"],
}


def check(name: str) -> tuple[bool, str]:
    """Run one check; return whether it passed, and the text to print."""
    began = time.monotonic()
    done = subprocess.run(
        CHECKS[name],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    line = f"lint: {name}: {'FAILED' if done.returncode else 'ok'} ({time.monotonic() - began:.0f} s)"
    return not done.returncode, f"{line}\n{done.stdout}" if done.returncode else line


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="without the locks, which ask the package registries")
    skipped = {"locks"} if parser.parse_args().quick else set()
    names = [name for name in CHECKS if name not in skipped]
    failed = []
    with ThreadPoolExecutor(max_workers=2) as pool:
        for name, (passed, output) in zip(names, pool.map(check, names), strict=True):
            print(output, flush=True)
            if not passed:
                failed.append(name)
    if failed:
        print(f"lint: {', '.join(failed)} failed", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
