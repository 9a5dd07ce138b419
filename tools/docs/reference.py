"""The reference, made from the code: configuration, methods, games, command line, settings and the Python client."""

import argparse
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools.docs.schema import line, referred, table
from training.cli.parser import build as command_line
from training.config import RunConfig
from training.games import REGISTRY as GAMES
from training.games import GameSpec
from training.methods import REGISTRY as METHODS

ROOT = Path(__file__).resolve().parents[2]
CLIENT = ("Client", "Datasets", "Runs", "Checkpoints", "Matches", "Judgments", "Experiments")
"""Classes of `parley_client`, each in the module of its name."""


def pages() -> dict[str, str]:
    """Every page by its name."""
    return {
        "configuration": configuration(),
        "methods": methods(),
        "games": games(),
        "command-line": commands(),
        "settings": settings(),
        "python-client": client(),
    }


def configuration() -> str:
    """The fields of a run's TOML file, a heading for each section."""
    schema = RunConfig.model_json_schema()
    parts, defined, named = ["# Configuration of a run", CONFIGURATION], schema["$defs"], {}
    plain = {}
    for name, field in schema["properties"].items():
        names = [each for each in referred(field) if each in defined]
        if name == "method":
            continue
        if not names:
            plain[name] = field
        elif "items" in field:
            named[f"[[{name}]]"] = (names[0], field)
        else:
            named[f"[{name}]"] = (names[0], field)
    parts += ["## Top level", table({"properties": plain})]
    shown = set()
    for heading, (name, field) in named.items():
        shown.add(name)
        text = field.get("description") or defined[name].get("description", "")
        parts += [f"## `{heading}`", text, table(defined[name])]
    rest = _below(schema, shown)
    return _joined([*parts, "## Values inside sections", *_definitions(defined, sorted(rest))])


CONFIGURATION = """A run is one TOML file. `python -m training run FILE` checks it and names the field that is wrong; on
the site the form of a new run has the same fields. `training/configs/` has ready-made files. A section that a file
leaves out keeps its defaults. `[method]` is on [its own page](methods.md), the settings of a game in `[game.settings]`
on [that of games](games.md)."""


def _below(schema: dict[str, Any], shown: set[str]) -> set[str]:
    """What the shown sections refer to, directly or not, without the methods."""
    defined, ahead, below = schema["$defs"], list(shown), set[str]()
    while ahead:
        for name in referred(defined[ahead.pop()]):
            if name in defined and name not in shown | below:
                below.add(name)
                ahead.append(name)
    return below


def _definitions(defined: dict[str, Any], names: list[str], level: str = "###") -> Iterator[str]:
    for name in names:
        yield from (f"{level} {name}", defined[name].get("description", ""), table(defined[name]))


def methods() -> str:
    """The methods with their configuration."""
    parts = [
        "# Methods",
        "`[method]` of a [configuration](configuration.md) names one of these; its other fields follow.",
    ]
    for name, config in METHODS.items():
        schema = config.model_json_schema()
        page = (
            f"[What it does, and its mathematics](../methods/{name}.md)."
            if (ROOT / f"docs/methods/{name}.md").exists()
            else ""
        )
        parts += [f"## `{name}`", config.summary, page, table(schema)]
        parts += _definitions(schema.get("$defs", {}), sorted(schema.get("$defs", {})))
    return _joined(parts)


def games() -> str:
    """The games with their settings."""
    parts = [
        "# Games",
        "What each game is and how it is scored: [games](../games.md). Settings stand in `[game.settings]`.",
    ]
    for name in GAMES:
        parts += _game(name, GAMES[name])
    return _joined(parts)


def _game(name: str, spec: GameSpec) -> Iterator[str]:
    yield f"## `{name}`"
    yield f"{spec.title}. {spec.summary}"
    low, high = spec.players
    facts = [
        f"Seats: {low}" if low == high else f"Seats: {low} to {high}",
        f"returns from {spec.low:g} to {spec.high:g}",
    ]
    facts += [word for word, true in (("zero-sum", spec.zero_sum), ("cooperative", spec.cooperative)) if true]
    facts += ["scored by a judge"] * spec.judged + [f"{spec.deadline_s} s for a move"]
    yield f"{', '.join(facts)}. Actions: {', '.join(f'`{action}`' for action in spec.actions)}."
    schema = spec.settings.model_json_schema()
    yield table(schema) or "It has no settings."
    yield from _definitions(schema.get("$defs", {}), sorted(schema.get("$defs", {})))


def commands() -> str:
    """The help of every command of `python -m training`."""
    os.environ["COLUMNS"] = "100"
    parts = ["# Command line", "Every command has `--json`. Commands of the site: [the project's page](../project.md)."]
    for parsers in command_line()._actions:  # noqa: SLF001 (argparse has no other way to list the commands)
        if isinstance(parsers, argparse._SubParsersAction):  # noqa: SLF001 (as above)
            for path, parser in _walk(parsers):
                parts += [f"## `{path}`", f"```text\n{parser.format_help().strip()}\n```"]
    return _joined(parts)


def _walk(
    parsers: "argparse._SubParsersAction[argparse.ArgumentParser]",
) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    for name, parser in parsers.choices.items():
        inner = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]  # noqa: SLF001
        if not inner:
            yield name, parser
        for below in inner:
            yield from ((f"{name} {path}", member) for path, member in _walk(below))


def settings() -> str:
    """The environment variables of the site, from the docstring of its settings."""
    text = (ROOT / "webapp" / "settings.py").read_text().split('"""')[1]
    rows: list[list[str]] = []
    for entry in text.split("\n\n", 1)[1].splitlines():
        if match := re.match(r"([A-Z][A-Z0-9_]+)\s+(.*)", entry):
            rows.append([match[1], match[2]])
        elif entry.strip():
            rows[-1][1] += f" {entry.strip()}"
    lines = [f"| `{name}` | {line(meaning)} |" for name, meaning in rows]
    head = ["| variable | meaning |", "| --- | --- |"]
    return _joined(
        ["# Settings of the site", "The site reads these variables of the environment.", "\n".join(head + lines)]
    )


def client() -> str:
    """The classes of `parley_client`, by Sphinx from their docstrings."""
    parts = ["# Python client", "How to install and use it: [parley_client](../client.md)."]
    for name in CLIENT:
        module = f"parley_client.{name.lower()}"
        parts += [f"## {name}", f"```{{eval-rst}}\n.. autoclass:: {module}.{name}\n   :members:\n```"]
    parts += [
        "## Errors",
        "```{eval-rst}\n.. automodule:: parley_client.errors\n   :members:\n   :exclude-members: refusal\n```",
    ]
    return _joined(parts)


def _joined(parts: list[str]) -> str:
    return "\n\n".join(part for part in parts if part) + "\n"
