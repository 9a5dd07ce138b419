"""The import contracts hold; each kind of forbidden import, planted in a copy of the source, breaks its contract."""

import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LINT = str(Path(sysconfig.get_path("scripts")) / "lint-imports")
PLANTED = {  # file, line added to it, and the contract that must break
    "training knows no site": (
        "training/seeding.py",
        "import django",
        "training imports no Django, Celery or Channels",
    ),
    "methods are pure": (
        "training/methods/__init__.py",
        "import training.engines",
        "training.methods sees no engine, model, rule or file",
    ),
    "games are pure": (
        "training/games/base.py",
        "import httpx2",
        "training.games sees no engine, model, method or run",
    ),
    "the site uses pure parts": (
        "webapp/runs/forms.py",
        "import training.methods",
        "webapp and worker import only the pure parts of training",
    ),
    "layers of training": ("training/store.py", "import training.games", "training: cli > evaluate"),
    "site loads no models, even indirectly": (
        "training/records.py",
        "import torch",
        "webapp and worker never import torch",
    ),
    "site never imports worker": (
        "webapp/core/http.py",
        "import worker",
        "worker, webapp, training: each imports only",
    ),
    "layers of the site": (
        "webapp/core/models.py",
        "import webapp.runs",
        "webapp: home, api, privacy, styleguide > judgments",
    ),
    "a module without a layer": ("training/stray.py", '"""Stray."""', "training: cli > evaluate"),
}


def lint(folder):
    """lint-imports in this folder: its status and its output in one line."""
    done = subprocess.run([LINT, "--no-cache", "--no-logo"], cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, " ".join((done.stdout + done.stderr).split())


def broken(output):
    """The contracts that `lint-imports` reports as broken."""
    return output.partition("Broken contracts")[2]


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("imports")
    for package in ("training", "webapp", "worker"):
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / ".importlinter", folder)
    return folder


def test_the_contracts_hold():
    status, output = lint(ROOT)
    assert status == 0, output
    assert "0 broken" in output


@pytest.mark.parametrize("case", PLANTED)
def test_a_planted_import_breaks_its_contract(copy, case):
    name, line, contract = PLANTED[case]
    path = copy / name
    before = path.read_text() if path.exists() else None
    path.write_text(f"{before or ''}\n{line}\n")
    try:
        status, output = lint(copy)
    finally:
        path.unlink() if before is None else path.write_text(before)
    assert status == 1
    assert contract in broken(output), output
