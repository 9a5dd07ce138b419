"""Dataset files: what a line is, and what is said of a wrong one."""

import json

import pytest

from training.dataset import DatasetLine, read
from training.errors import BadInput
from training.records import Scenario

SCENARIO = {"id": "a", "game": "negotiation", "seats": ["A", "B"], "settings": {"b": 1, "a": 2}}


def write(tmp_path, *lines):
    path = tmp_path / "set.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_bare_scenarios_and_full_lines_are_read_alike(tmp_path):
    path = write(tmp_path, json.dumps(SCENARIO), "", json.dumps({"scenario": {**SCENARIO, "id": "b"}}))
    assert [line.scenario.id for line in read(path)] == ["a", "b"]


@pytest.mark.parametrize(
    "text, message",
    [
        ("{", "set.jsonl line 2: not JSON"),
        ("3", "set.jsonl line 2: expected an object"),
        (json.dumps({**SCENARIO, "id": ""}), "line 2, scenario.id"),
        (json.dumps({**SCENARIO, "seed": -1, "id": "b"}), "line 2, scenario.seed"),
        (json.dumps(SCENARIO), "line 2, scenario.id: a second scenario"),
        ("[" * 100_000, "set.jsonl line 2: not JSON: nested too deeply"),
        ('{"seed": ' + "1" * 5000 + "}", "set.jsonl line 2: not JSON: Exceeds the limit"),
        ('{"seed": NaN}', "set.jsonl line 2: not JSON: NaN is not a number"),
    ],
)
def test_a_wrong_line_says_where(tmp_path, text, message):
    with pytest.raises(BadInput, match=message):
        list(read(write(tmp_path, json.dumps(SCENARIO), text)))


def test_bytes_that_are_no_text_are_named_with_their_line(tmp_path):
    path = write(tmp_path, json.dumps(SCENARIO))
    path.write_bytes(path.read_bytes() + b"\n{\xff}\n")
    with pytest.raises(BadInput, match=r"set\.jsonl line 3: not UTF-8 at byte 1"):
        list(read(path))


def test_a_line_is_written_the_same_whatever_the_order_of_its_keys():
    turned = {**SCENARIO, "settings": {"a": 2, "b": 1}}
    one, other = (DatasetLine(scenario=Scenario.from_dict(data)).dumps() for data in (SCENARIO, turned))
    assert one == other
