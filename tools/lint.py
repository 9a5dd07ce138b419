"""`make lint`: style, types, imports and locks. Runs every check, then exits 1 if one of them complained."""

import argparse
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sysconfig.get_path("scripts"))
CHECKS: dict[str, list[str]] = {
    "style": [str(BIN / "ruff"), "check", "."],
    "format": [str(BIN / "ruff"), "format", "--check", "."],
    "types of training": [str(BIN / "mypy")],
    "types of the site": [str(BIN / "mypy"), "--config-file", "mypy-site.ini"],
    "imports": [str(BIN / "lint-imports"), "--no-logo"],
    "locks": [sys.executable, "tools/locks.py", "check"],
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="without the locks, which ask the package registries")
    skipped = {"locks"} if parser.parse_args().quick else set()
    failed = []
    for name, command in CHECKS.items():
        if name in skipped:
            continue
        begun = time.monotonic()
        done = subprocess.run(
            command,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        print(f"lint: {name}: {'FAILED' if done.returncode else 'ok'} ({time.monotonic() - begun:.0f} s)", flush=True)
        if done.returncode:
            failed.append(name)
            print(done.stdout, flush=True)
    if failed:
        print(f"lint: {', '.join(failed)} failed", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
