"""`python -m training provision`: its JSON, its table, and the options that its errors name."""

import json

import pytest

from training.cli import main

ARGUMENTS = ["provision", "--accuracies", "0.7,0.5,0.4", "--guess", "0.45", "--cost", "0.02"]


def test_the_json_has_one_letter_per_player(capsys):
    assert main([*ARGUMENTS, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"equilibria": [["S", "G", "G"]]}


def test_the_table_has_moves_payoffs_and_the_verdict(capsys):
    assert main(ARGUMENTS) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["accuracy", "0.7", "0.5", "0.4"] in lines
    assert ["S", "0.6800", "G", "0.7000", "G", "0.7000"] in lines
    assert " ".join(lines[-1]) == "Unique: player 1, the best searcher, searches alone."


def test_ties_are_exact_and_guesses_may_be_one_per_player(capsys):
    # .6 − .5 = 2 · .05; the mean of .1 and .3 is .2
    assert main(["provision", "--accuracies", "0.6,0.5", "--guess", "0.1,0.3", "--cost", "0.05", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"equilibria": [["S", "G"], ["G", "S"]]}


@pytest.mark.parametrize(
    "option, value, why",
    [
        ("--accuracies", "0.7,1.5", "1.5 is not between 0 and 1"),
        ("--accuracies", "0.7", "give 2 to 12 players, not 1"),
        ("--accuracies", ",".join(["0.5"] * 13), "give 2 to 12 players, not 13"),
        ("--accuracies", "0.7,,0.5", "'' is not a number"),
        ("--guess", "0.1,0.2", "give one number, or one for each of 3 players, not 2"),
        ("--guess", "1.1", "1.1 is not between 0 and 1"),
        ("--cost", "-0.1", "-0.1 is negative"),
        ("--cost", "cheap", "'cheap' is not a number"),
    ],
)
def test_errors_name_the_option(capsys, option, value, why):
    arguments = list(ARGUMENTS)
    arguments[arguments.index(option) + 1] = value
    assert main([*arguments, "--json"]) == 2
    shown = capsys.readouterr()
    assert json.loads(shown.out)["error"] == {"kind": "input", "where": option, "why": why}
    assert f"{option}: {why}" in shown.err


@pytest.mark.parametrize("option", ["--accuracies", "--guess", "--cost"])
def test_every_number_is_required(capsys, option):
    at = ARGUMENTS.index(option)
    assert main(ARGUMENTS[:at] + ARGUMENTS[at + 2 :]) == 2
    assert option in capsys.readouterr().err
