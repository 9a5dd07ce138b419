"""What the code imports is asked for by name in `requirements/*.in`; nothing rests on another package's needs."""

import ast
import sys
from importlib import metadata

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools import locks

ROOT = locks.REQUIREMENTS.parent
OURS = {"parley_client", "training", "webapp", "worker", "bench", "tests", "tools", "conftest"}
RUNNING = ("base", "vllm", "vllm-cpu", "torch", "dense")
CODE = {"training": RUNNING, "webapp": ("base",), "worker": ("base",), "bench": (*RUNNING, "dev")}
CODE["client"] = ("base",)
ALONE = {ROOT / "training" / "to_wandb.py", ROOT / "training" / "evaluate" / "transfer" / "autogen_chat.py"}
"""Scripts that run elsewhere and say themselves what they need."""
OPTIONAL = {"alfworld", "textworld"}
"""Packages in none of the lists, which whoever needs them adds: see docs/dependencies.md."""
TESTING = {"tests": (*RUNNING, "dev"), "tools": (*RUNNING, "dev")}


def imported(folder):
    """Top-level names of other people's packages, with one file that imports each."""
    imports = {}
    for path in {*folder.rglob("*.py")} - ALONE:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module]
            else:
                continue
            for name in names:
                top = name.split(".")[0]
                beside = (path.parent / f"{top}.py").exists() or (folder / f"{top}.py").exists()
                if top not in sys.stdlib_module_names and top not in OURS and not beside:
                    imports.setdefault(top, path.relative_to(ROOT))
    return imports


def asked(names):
    """The distributions that these `.in` files name."""
    lines = []
    for name in names:
        source = locks.REQUIREMENTS / f"{name}.in"
        lines += [line for line in source.read_text().splitlines() if line.strip() and not line.startswith("#")]
    return {canonicalize_name(Requirement(line).name) for line in lines}


@pytest.mark.parametrize("folder, sources", [*CODE.items(), *TESTING.items()])
def test_imports_are_asked_for(folder, sources):
    distributions = metadata.packages_distributions()
    wanted, missing = asked(sources), {}
    for name, path in imported(ROOT / folder).items():
        owners = {canonicalize_name(owner) for owner in distributions.get(name, [name])}
        if not owners & wanted and name not in OPTIONAL:
            missing[name] = str(path)
    assert missing == {}
