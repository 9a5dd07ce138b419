"""The README's file tree is true: what it names exists, and nothing at the top or in a package is left out."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TREE = (ROOT / "README.md").read_text().partition("## Files")[2].split("```")[1]
UNTOLD = {".gitignore", ".dockerignore", "LICENSE", "README.md", "package-lock.json"}


def named():
    """Every path of the tree, those in a package with the package before them."""
    above = ""
    for line in TREE.strip().splitlines():
        names = re.split(r" {2,}", line.strip())
        inside = line.startswith("  ")
        for name in names[:-1]:
            yield f"{above if inside else ''}{name}".rstrip("/")
        if not inside:
            above = names[0]


def test_everything_named_is_there():
    assert [path for path in named() if not (ROOT / path).exists()] == []


def test_nothing_is_left_out():
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    text = TREE + " ".join(named())
    tops = {path.split("/")[0] for path in tracked} - UNTOLD
    assert {top for top in tops if top not in text} == set()
    inner = {
        f"{package}/{path.split('/')[1]}"
        for package in ("training", "webapp")
        for path in tracked
        if path.startswith(f"{package}/") and path.count("/") > 1
    }
    assert inner - set(named()) == set()
