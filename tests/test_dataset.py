"""Dataset files: the form of a line, and errors for wrong ones."""

import json
import os
from pathlib import Path

import pytest

from training.dataset import DatasetLine, read
from training.errors import BadInput
from training.records import Scenario

SCENARIO = {"id": "a", "game": "negotiation", "seats": ["A", "B"], "settings": {"b": 1, "a": 2}}

DEEP = json.dumps({**SCENARIO, "settings": {"x": "?"}}).replace('"?"', "[" * 700 + "]" * 700)
"""A scenario that the standard library reads, and pydantic's own reader does not."""


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
        ('{"seed": 1, "seed": 2}', "set.jsonl line 2: not JSON: the key 'seed' stands twice in one object"),
        (json.dumps({**SCENARIO, "seed": True}), "line 2, scenario.seed: must be a valid integer"),
        (json.dumps({**SCENARIO, "seed": "5"}), "line 2, scenario.seed: must be a valid integer"),
        (json.dumps({**SCENARIO, "seed": 5.0}), "line 2, scenario.seed: must be a valid integer"),
        (json.dumps({**SCENARIO, "version": True}), "line 2, scenario.version: expected 1"),
        (json.dumps({**SCENARIO, "version": 1.0}), "line 2, scenario.version: expected 1"),
        (json.dumps({**SCENARIO, "seed": 10**22}), "line 2, scenario.seed: a whole number must fit into 64 bits"),
        (json.dumps({**SCENARIO, "settings": {"x": [10**22]}}), r"scenario\.settings\.x\.0: a whole number must fit"),
        (
            json.dumps({**SCENARIO, "settings": {"x": "\ud800"}}),
            r"scenario\.settings\.x: the text contains an unpaired surrogate",
        ),
        (DEEP, r"line 2, scenario\.settings\.x\.…: nested more than 100 levels deep"),
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
    original, other = (DatasetLine(scenario=Scenario.from_dict(data)).dumps() for data in (SCENARIO, turned))
    assert original == other


def test_a_byte_order_mark_is_skipped(tmp_path):
    path = write(tmp_path, json.dumps(SCENARIO))
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert [line.scenario.id for line in read(path)] == ["a"]


def test_whole_numbers_pass_for_numbers_and_lists_for_tuples():
    line = DatasetLine.from_dict(
        {
            "scenario": SCENARIO,
            "conversations": [{"source": "s", "episode": {"scenario": SCENARIO, "returns": {"0": 1}}}],
        }
    )
    assert line.conversations[0].episode.returns == {0: 1.0}
    assert DatasetLine.from_dict(line.to_dict()) == line


def test_what_is_no_regular_file_is_refused_at_once(tmp_path):
    """A pipe that nobody writes to would never be opened, and `/dev/zero` never end."""
    os.mkfifo(tmp_path / "pipe")
    for path, why in ((tmp_path / "pipe", "a pipe"), (Path("/dev/zero"), "a device"), (tmp_path, "a folder")):
        with pytest.raises(BadInput, match=why) as refused:
            list(read(path))
        assert refused.value.where == str(path)


def test_a_record_is_not_made_of_what_is_no_object():
    with pytest.raises(BadInput, match="expected an object"):
        Scenario.from_dict([])
