"""The measurement of claims, and its page."""

import json
from pathlib import Path

import pytest

from bench.__main__ import main
from bench.claims_page import wilson
from tests.games.cases.negotiation import items
from training.dataset import Conversation, DatasetLine
from training.records import Episode, Move, SeatMove

PLACE = {"game": str, "move": int, "start": int, "end": int, "number": int}
CLAIM = {**PLACE, "kind": str, "verdict": str, "judged": list, "reason": str}
TURN = {"game": str, "move": int, "extracted": int, "missed": int, "reason": str}


@pytest.mark.parametrize(
    "successes, of, low, high",
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilsons_interval(successes, of, low, high):
    """Method 3 of table I in Newcombe, Two-sided confidence intervals for the single proportion, 1998."""
    assert wilson(successes, of) == pytest.approx((low, high), abs=5e-5)


def test_the_published_numbers_hold_no_words():
    raw = json.loads(Path("docs/results/claims.json").read_text("utf-8"))
    samples = [*raw["first_reading"].values(), *(row["sample"] for row in raw["datasets"].values())]
    turns = [turn for row in raw["datasets"].values() for turn in row["sample_of_turns"]]
    for expected, rows in ((CLAIM, [row for sample in samples for row in sample]), (TURN, turns)):
        assert rows
        for row in rows:
            assert {name: type(value) for name, value in row.items()} == expected
            assert all(len(value) < 40 for value in row.values() if isinstance(value, str))


def test_claims_are_counted_sampled_and_judged_once(tmp_path, capsys):
    texts = ("Hello, I need food the most.", "I need oil.", "Fine.")
    moves = tuple(SeatMove(seat=at % 2, move=Move(action="talk", text=text)) for at, text in enumerate(texts))
    scenario = items()
    line = DatasetLine(
        scenario=scenario, conversations=(Conversation(source="here", episode=Episode(scenario=scenario, moves=moves)),)
    )
    file, words = tmp_path / "talks.jsonl", tmp_path / "words.txt"
    file.write_text(line.dumps() + "\n", "utf-8")
    assert main(["claims", str(file), "--texts", str(words), "--json"]) == 0
    printed = capsys.readouterr().out
    assert "Hello" not in printed
    assert "Hello, <<I need food the most>>." in words.read_text("utf-8")
    result = json.loads(printed)
    talks = result["datasets"]["talks"]
    assert talks["claims"] == {"need": {"true": 1}, "priority": {"true": 1}}
    assert (talks["game"], talks["games"], talks["turns"]) == ("negotiation", 1, 3)
    assert sorted(turn["extracted"] for turn in talks["sample_of_turns"]) == [0, 1, 1]
    talks["sample"][0] |= {"judged": [1, 0, 1], "reason": "degree"}
    judged, without = tmp_path / "judged.json", tmp_path / "without.txt"
    judged.write_text(json.dumps(result), "utf-8")
    assert main(["claims", str(file), "--judged", str(judged), "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again == result
    without.write_text(scenario.id, "utf-8")
    assert main(["claims", str(file), "--without", str(without), "--json"]) == 0
    row = json.loads(capsys.readouterr().out)["datasets"]["talks"]
    assert (row["sample"], row["sample_of_turns"], row["read_before"]) == ([], [], 1)


def test_scripts_play_among_us_and_their_crew_says_what_it_saw(capsys):
    assert main(["claims", "--played", "3", "--json"]) == 0
    claims = json.loads(capsys.readouterr().out)["datasets"]["among_us"]["claims"]
    assert claims["place"].keys() == claims["company"].keys() == {"true"}
