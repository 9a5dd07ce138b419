"""The measurement of strategies on dialogues made for it, its counts by hand, and the lines of its page."""

import json
from random import Random

import numpy as np
import pytest
from scipy import stats

from bench import strategies, strategies_page
from bench.__main__ import main
from bench.strategies import Part, compared, keywords, read, split
from tests.toy_models import write_random_llama
from training.errors import BadInput
from webapp.scenarios.importers.casino_annotations import STRATEGIES

SAID = ("hello", "sorry", "together", "enough", "which", "cold", "fair", "need", "yours", "hm")
WORDS = dict(zip(STRATEGIES, SAID, strict=True))


def dialogue(number):
    """Eight utterances, whose words name their strategies, and a deal."""
    chance = Random(number)
    pairs = []
    for turn in range(8):
        labels = chance.sample(STRATEGIES, 1 + turn % 2)
        pairs.append((" ".join(["well", *(WORDS[label] for label in labels), str(turn)]), ",".join(labels)))
    logs = [{"text": text, "task_data": {}, "id": f"mturk_agent_{1 + at % 2}"} for at, (text, _) in enumerate(pairs)]
    return {
        "dialogue_id": number,
        "chat_logs": [*logs, {"text": "Submit-Deal", "task_data": {}, "id": "mturk_agent_1"}],
        "annotations": [list(pair) for pair in pairs],
    }


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "casino.json"
    path.write_text(json.dumps([*map(dialogue, range(40)), {**dialogue(40), "annotations": []}]), "utf-8")
    return path


def part(texts, labels, dialogues):
    return Part(np.arange(len(texts)), np.array(texts, dtype=object), dialogues, np.array(labels, dtype=bool))


def test_turns_are_read_with_their_labels(file):
    turns, unplaced = read(file)
    assert unplaced == 0
    assert len(turns.texts) == 40 * 9  # the dialogue without annotations is left out
    assert turns.labels.sum() == 40 * (4 * 1 + 4 * 2)
    assert turns.rated.sum() == 40 * 8
    assert not turns.rated[8]
    assert {WORDS[name] for name, flag in zip(turns.names, turns.labels[1], strict=True) if flag} < set(
        turns.texts[1].split()
    )


def test_a_split_holds_dialogues_whole(file):
    turns, _ = read(file)
    fit, test = split(turns, 30, 0)
    assert len(set(fit.dialogues)) == 30
    assert len(set(test.dialogues)) == 10
    assert not set(fit.dialogues) & set(test.dialogues)
    assert len(fit.rows) + len(test.rows) == 320
    assert not np.array_equal(fit.rows, split(turns, 30, 1)[0].rows)


def test_f1_by_hand_and_the_lead_over_a_method():
    true = part(["a"] * 4, [[1, 0], [1, 0], [0, 1], [0, 0]], ["x", "x", "y", "y"])
    seen = {
        "head": np.array([[1, 0], [0, 0], [1, 1], [0, 0]], dtype=bool),
        "never": np.zeros((4, 2), dtype=bool),
    }
    row = compared(seen, true, ("first", "second"), 0)
    # first: a hit, a miss, a false alarm: 2/(2 + 1 + 1); second: a hit
    assert row["f1"]["head"] == {"first": 0.5, "second": 1.0}
    assert row["f1"]["never"] == {"first": 0.0, "second": 0.0}
    assert row["macro"]["head"]["mean"] == 0.75
    assert row["head_minus"]["never"] == row["macro"]["head"]
    # two dialogues are drawn as xx (first 2/3, second 0), xy (1/2, 1) or yy (0, 1)
    assert row["macro"]["head"]["low"] == pytest.approx(1 / 3, abs=1e-4)
    assert row["macro"]["head"]["high"] == 0.75


def test_keywords_are_found(file):
    turns, _ = read(file)
    fit, test = split(turns, 30, 0)
    assert np.array_equal(keywords(fit, test, 0), test.labels)


def test_the_whole_measurement(file, tmp_path, capsys):
    base = str(write_random_llama(tmp_path / "model", layers=1))
    arguments = [
        "strategies",
        str(file),
        "--model",
        base,
        "--train",
        "30",
        "--seeds",
        "2",
        "--dir",
        str(tmp_path / "d"),
    ]
    assert main([*arguments, "--json"]) == 0
    raw = json.loads(capsys.readouterr().out)
    assert (raw["dialogues"], raw["train"], raw["test"], raw["turns"]) == (40, 30, 10, 320)
    assert sum(raw["labels"].values()) == 480
    for row in raw["rows"]:
        assert row["macro"]["keywords"]["mean"] == 1.0
        assert row["macro"]["tfidf"]["mean"] > 0.9
        assert row["macro"]["majority"]["mean"] == 0.0
        for name, errors in row["errors"].items():
            assert errors["low"] <= errors["corrected"] <= errors["high"]
            assert row["f1"]["always"][name] == pytest.approx(
                2 * errors["labelled"] / (1 + errors["labelled"]), abs=1e-3
            )
    assert raw["rows"][0]["f1"] != raw["rows"][1]["f1"]
    assert main(arguments) == 0  # continues from the folder
    assert "seed 1, macro F1: head" in capsys.readouterr().out
    lines = list(strategies_page.page(raw))
    assert len(lines) == 11 + 4 + 2 + 10 + 11
    assert main([*arguments[:5], "29", *arguments[6:]]) == 2  # the folder has another number of dialogues


@pytest.mark.parametrize(
    "text, message",
    [("{}", "expected a list"), ("[]", "no dialogue"), ('[{"chat_logs": []}]', "dialogue 0, annotations: missing")],
)
def test_another_file_is_refused(tmp_path, text, message):
    (tmp_path / "other.json").write_text(text, "utf-8")
    with pytest.raises(BadInput, match=message):
        read(tmp_path / "other.json")


def test_intervals_over_splits_that_share_dialogues_are_wider():
    values = [0.1, 0.2, 0.3, 0.4]
    plain = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    low, high = strategies_page.corrected_interval(values, 250, 97)
    # the variance of the mean is (1/4 + 97/250) instead of 1/4 times that of the values
    factor = ((1 / 4 + 97 / 250) / (1 / 4)) ** 0.5
    assert (high - low) / (plain.high - plain.low) == pytest.approx(factor)
    assert (high + low) / 2 == pytest.approx(0.25)


def test_the_row_of_errors_and_its_coverage():
    rows = [
        {"labelled": 0.2, "seen": 0.3, "corrected": 0.22, "low": 0.1, "high": 0.3},
        {"labelled": 0.4, "seen": 0.5, "corrected": 0.46, "low": 0.41, "high": 0.5},
    ]
    assert strategies_page._off(rows) == "0.100 | 0.040 | 1 of 2"
    assert strategies.RESAMPLES >= 1000
