"""`tiny`, pretrained once per machine and recipe and shared by all test sessions: it takes two CPU minutes."""

from __future__ import annotations

import fcntl
import os
import tempfile
from pathlib import Path

from training import bases
from training.store import MANIFEST

INSTALLED = Path(__file__).resolve().parents[1] / "var" / "models" / "tiny"  # what `make setup` has prepared
SHARED = Path(tempfile.gettempdir()) / f"parley-tests-{os.getuid()}"


def _is_current(folder: Path) -> bool:
    from training.learn.tiny.pretrain import key

    return (folder / MANIFEST).is_file() and bases.read_info(folder).dataset == (key(),)


def prepare() -> Path:
    """Return the folder of `tiny` below the present PARLEY_HOME, linked to the shared one."""
    from training.learn.tiny.pretrain import prepare_tiny

    registered = bases.REGISTRY["tiny"].folder
    if registered.exists():
        return registered
    if _is_current(INSTALLED):
        registered.parent.mkdir(parents=True, exist_ok=True)
        registered.symlink_to(INSTALLED, target_is_directory=True)
        return registered
    SHARED.mkdir(parents=True, exist_ok=True)
    with (SHARED / "models.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        home = os.environ.get("PARLEY_HOME")
        os.environ["PARLEY_HOME"] = str(SHARED)
        try:
            shared = prepare_tiny()
        finally:
            os.environ.pop("PARLEY_HOME")
            if home is not None:
                os.environ["PARLEY_HOME"] = home
    registered.parent.mkdir(parents=True, exist_ok=True)
    registered.symlink_to(shared, target_is_directory=True)
    return registered
