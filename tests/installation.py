"""Installations for tests that start one: their folder begins as a copy of one whose database is migrated.

To make a cluster and migrate it takes half a minute of processor time; a stopped installation is its folder, and a copy
of it is the same installation (`tests/setup/test_backup.py`). Fails with what `manage.py migrate` printed.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SHARED = Path(tempfile.gettempdir()) / f"parley-tests-{os.getuid()}"
"""What the test sessions of this user share."""


def migrations() -> str:
    """A short digest of all migrations."""
    files = sorted(ROOT.glob("webapp/*/migrations/*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


def begin(home: Path) -> None:
    """Fill the empty folder of an installation (`PARLEY_HOME`) with migrated databases, which are stopped.

    It must not lie under pytest's own folder, which every session closes to other users: under root PostgreSQL runs as
    one of them.
    """
    SHARED.mkdir(exist_ok=True)
    template = SHARED / f"installation-{migrations()}"
    with (SHARED / "installation.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not template.exists():
            making = SHARED / "installation-making"
            shutil.rmtree(making, ignore_errors=True)  # of a session that was killed here
            _migrate(making)
            making.rename(template)
        subprocess.run(["cp", "-a", f"{template}/.", home], check=True)


def _migrate(home: Path) -> None:
    left_out = {"DATABASE_URL", "REDIS_URL", "PARLEY_TEST_DATABASE", "PARLEY_TEST_SESSION"}
    kept = {name: value for name, value in os.environ.items() if name not in left_out}
    environment = {**kept, "DJANGO_SETTINGS_MODULE": "webapp.settings", "PARLEY_HOME": str(home)}
    command = [sys.executable, "manage.py", "migrate", "--no-input", "-v0"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout[-2000:]}\n{done.stderr[-4000:]}"
