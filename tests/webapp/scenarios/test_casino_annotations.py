"""CaSiNo's annotations go to the turns that they were made of."""

import json

import pytest

from tests.webapp.scenarios import files
from training.errors import BadInput
from webapp.scenarios.importers.casino_annotations import STRATEGIES, align


def dialogue(annotations, texts=("Hello!", "Hello!", "Submit-Deal", "Hello!", "I need food.", "Accept-Deal")):
    return {"chat_logs": [{"text": text} for text in texts], "annotations": annotations}


def test_labels_go_to_turns_by_order_and_deals_have_none():
    annotations = [
        ["Hello!", "small-talk"], ["Hello!", "non-strategic"], ["Hello!", "showing-empathy,small-talk"],
        ["I need food.", "self-need, other-need"],
    ]  # fmt: skip
    aligned = align(dialogue(annotations), "file")
    assert aligned.labels == {
        0: ("small-talk",), 1: ("non-strategic",), 3: ("showing-empathy", "small-talk"), 4: ("self-need", "other-need"),
    }  # fmt: skip
    assert aligned.unplaced == ()


def test_a_turn_without_annotation_is_left_out():
    texts = ("One.", "Two.", "Three.", "Four.")
    aligned = align(dialogue([["One.", "self-need"], ["Three.", "no-need"], ["Four.", "uv-part"]], texts), "file")
    assert aligned.labels == {0: ("self-need",), 2: ("no-need",), 3: ("uv-part",)}


def test_an_annotation_of_no_turn_is_named_and_the_others_stay():
    texts = ("One.", "Two.", "Three.")
    aligned = align(dialogue([["One.", "self-need"], ["Zwei.", "no-need"], ["Three.", "uv-part"]], texts), "file")
    assert aligned.labels == {0: ("self-need",), 2: ("uv-part",)}
    assert aligned.unplaced == (1,)


def test_a_dialogue_without_annotations_has_no_labels():
    assert align(dialogue([]), "file").labels == {}


def test_the_dialogue_of_the_importers_tests_can_be_aligned():
    (record,) = json.loads(files.casino())
    said = [entry["text"] for entry in record["chat_logs"] if not entry["task_data"]]
    record["annotations"] = [[text, STRATEGIES[0]] for text in said]
    assert len(align(record, "file").labels) == len(said)


@pytest.mark.parametrize(
    "annotations, message",
    [
        ([["Hello!"]], "file, annotations.0: expected a pair"),
        ([["Hello!", "small-talk"], ["Hello!", ["small-talk"]]], "file, annotations.1: expected a pair"),
        ([["Hello!", "small-talk,dancing"]], "file, annotations.0: unknown strategy 'dancing'"),
        ("Hello!", "file, annotations: expected list"),
    ],
)
def test_annotations_of_another_form_are_refused(annotations, message):
    with pytest.raises(BadInput, match=message):
        align(dialogue(annotations), "file")
