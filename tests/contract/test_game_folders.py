"""Games share base classes and helpers through `training.games`, never each other's rules."""

import ast
from pathlib import Path

import pytest

import training.games

ROOT = Path(training.games.__file__).parent
FOLDERS = sorted(path.parent.name for path in ROOT.glob("*/__init__.py"))


def imported(source):
    """The names of all modules that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            assert not node.level, "imports name their module in full"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_game_imports_another_game(folder):
    others = tuple(f"training.games.{other}" for other in FOLDERS if other != folder)
    for path in (ROOT / folder).rglob("*.py"):
        names = set(imported(path.read_text("utf-8")))
        assert not {name for name in names if name.startswith(others)}, path


def test_an_import_is_found_wherever_it_stands():
    source = "def f():\n    from training.games.werewolf import roles\n    import training.games.dialogue.words\n"
    assert set(imported(source)) == {
        "training.games.werewolf", "training.games.werewolf.roles", "training.games.dialogue.words"
    }  # fmt: skip
