"""Counts with which nothing can be measured are refused before a measurement begins."""

import pytest

from bench.__main__ import parser

(COMMANDS,) = (action.choices for action in parser()._actions if action.choices)
COUNTS = [(name, action) for name, command in COMMANDS.items() for action in command._actions if action.metavar == "N"]


@pytest.mark.parametrize("name, action", COUNTS, ids=[f"{name}{action.option_strings[0]}" for name, action in COUNTS])
def test_a_count_of_nothing_is_refused(name, action, capsys):
    files = [part for option in ("--conversations", "--starts", "--held-out") for part in (option, "games.jsonl")]
    positional = {
        "miniature": ["toy"],
        "critic": ["games.jsonl"],
        "strategies": ["casino.json"],
        "emergence": ["casino.json"],
        "annotation": ["recorded"],
        "lineage": ["negotiation", *files],
    }
    what = positional.get(name, [])
    for wrong in ("-1", "x", *(["0"] if action.default else [])):
        with pytest.raises(SystemExit) as left:
            parser().parse_args([name, *what, action.option_strings[0], wrong])
        assert left.value.code == 2
        assert f"argument {action.option_strings[0]}: " in capsys.readouterr().err
    arguments = parser().parse_args([name, *what, action.option_strings[0], "7"])
    assert getattr(arguments, action.dest) == 7


@pytest.mark.parametrize("command", [["socket", "--moves", "1"], ["learning", "--samples", "1"]])
def test_one_is_too_few_for_quantiles_and_groups(command):
    with pytest.raises(SystemExit, match="2"):
        parser().parse_args(command)


def test_the_help_of_every_measurement_can_be_printed():
    assert all(name in parser().format_help() for name in COMMANDS)
    assert all(command.format_help() for command in COMMANDS.values())
