"""Every function of the site that is one transaction takes named arguments only and says what it does."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = [
    path for top in ("webapp", "worker") for path in (ROOT / top).rglob("*.py") if "migrations" not in path.parts
]


def _write_calls():
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and "transaction.atomic" in map(ast.unparse, node.decorator_list):
                yield pytest.param(node, id=f"{path.relative_to(ROOT)}::{node.name}")


WRITES = list(_write_calls())


@pytest.mark.parametrize("node", WRITES)
def test_a_write_takes_named_arguments_only(node):
    if not node.name.startswith("_"):
        assert (node.args.posonlyargs, node.args.args, node.args.vararg) == ([], [], None)
        assert ast.get_docstring(node)


def test_the_writes_are_found():
    writes = {param.id for param in WRITES}
    assert "webapp/arena/play/services.py::submit" in writes
    assert "webapp/runs/attempts.py::record" in writes


def test_whoever_is_asked_to_change_the_database_is_a_service():
    """Views hold no transaction: what they change, a service changes."""
    guilty = [
        str(path.relative_to(ROOT))
        for path in SOURCES
        if ("views" in path.parts or path.name.endswith("views.py") or path.parent.name == "api")
        and "transaction." in path.read_text()
    ]
    assert guilty == []
