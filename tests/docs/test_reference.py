"""The reference has what the code has: fields, defaults, games, methods, commands, operations, settings."""

import json
import re

import pytest

from tools.docs import reference, rest
from tools.docs.schema import table, words_of
from training.cli.parser import build as command_line
from training.config import RunConfig
from training.games import REGISTRY as GAMES
from training.methods import REGISTRY as METHODS
from webapp import settings


def test_every_section_and_field_of_a_run_is_there_with_its_default():
    text = reference.configuration()
    for name, field in RunConfig.model_fields.items():
        section = field.default
        if name in {"method", "judge"} or not hasattr(type(section), "model_fields"):
            continue
        part = text.split(f"## `[{name}]`\n")[1].split("\n## ")[0]
        for inner, about in type(section).model_fields.items():
            row = next(line for line in part.splitlines() if line.startswith(f"| `{inner}` |"))
            if isinstance(about.default, bool | int | str):
                assert f"| `{json.dumps(about.default, ensure_ascii=False)}` |" in row.replace("\\|", "|"), (
                    name,
                    inner,
                )
            assert row.replace("\\|", "|").endswith(f"| {' '.join((about.description or '').split())} |"), (name, inner)
    assert "## `[[opponents]]`" in text
    assert "### LoraConfig" in text


def test_every_method_and_game_is_there():
    methods, games = reference.methods(), reference.games()
    for name, config in METHODS.items():
        part = methods.split(f"## `{name}`\n")[1].split("\n## ")[0]
        assert config.summary in part
        assert all(f"| `{field}` |" in part for field in config.model_fields)
    for name in GAMES:
        part = games.split(f"## `{name}`\n")[1].split("\n## ")[0]
        assert all(f"`{action}`" in part for action in GAMES[name].actions)
        assert all(f"| `{field}` |" in part for field in GAMES[name].settings.model_fields)


def test_every_command_is_there_with_its_help():
    text = reference.commands()
    listed = re.findall(r"^    ([a-z][a-z-]+)", command_line().format_help(), re.MULTILINE)
    assert {"games", "run", "suite"} < set(listed)
    for name in listed:
        assert re.search(rf"^## `{name}( \w+)?`$", text, re.MULTILINE), name
    assert "usage: python -m training play" in text


def test_every_variable_is_there_with_its_whole_text():
    text, source = reference.settings(), (reference.ROOT / "webapp" / "settings.py").read_text()
    read = set(re.findall(r'(?:environ\.get|environ\[|_listed)\(?"([A-Z_]+)"', source))
    assert read
    assert all(f"| `{name}` |" in text for name in read)
    assert "active_runs.researcher=40,open_tables=5" in text
    assert settings.__doc__


@pytest.fixture(scope="module")
def api():
    return rest.page()


def test_every_operation_is_there_with_what_it_takes_and_returns(api):
    document = rest.document()
    operations = [(method, path) for path, methods in document["paths"].items() for method in methods]
    assert len(operations) > 30
    assert all(f"### `{method.upper()} {path}`" in api for method, path in operations)
    part = api.split("### `POST /api/v1/matches/{pk}/moves`")[1].split("\n### ")[0]
    assert ("Body: MoveIn as JSON." in part, "Answer: 200, MoveOut." in part) == (True, True)
    assert "| 429 | Too many wrong keys from this address: wait a minute. |" in api


def test_types_are_words():
    assert words_of({"type": "integer", "minimum": 1, "maximum": 4}) == "integer, ≥ 1, ≤ 4"
    assert words_of({"enum": ["a", "b"]}) == '`"a"` \\| `"b"`'
    assert words_of({"anyOf": [{"$ref": "#/$defs/Lora"}, {"type": "null"}]}) == "Lora or nothing"
    assert (
        words_of({"type": "array", "items": {"type": "string"}, "maxItems": 3}) == "list of string, at most 3 entries"
    )
    fields = {"a": {"type": "string", "description": "one\ntwo | three"}, "b": {"type": "number", "default": 0.5}}
    assert table({"properties": fields, "required": ["a"]}).splitlines()[2:] == [
        "| `a` | string | required | one two \\| three |",
        "| `b` | number | `0.5` |  |",
    ]
