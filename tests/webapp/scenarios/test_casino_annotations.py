"""CaSiNo's annotations go to the turns that they were made of."""

import json

import pytest

from tests.webapp.scenarios import files
from training.errors import BadInput
from training.labels.codebooks import CODEBOOKS
from webapp.scenarios.importers import casino
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


def test_annotations_become_labels_of_turns_of_the_whole_dialogue(tmp_path):
    """By hand: the second and the fourth turn are annotated, the fourth twice; the deal between them has none."""
    record = json.loads(json.dumps(files.CASINO_DIALOGUE))
    talk = [n for n, entry in enumerate(record["chat_logs"]) if not entry["text"].endswith("-Deal")]
    first, second = talk[0], talk[1]
    texts = [record["chat_logs"][n]["text"] for n in (first, second)]
    record["annotations"] = [
        [texts[0], "small-talk"],
        [texts[1], "self-need,uv-part"],
        ["Nobody said this.", "no-need"],
    ]
    path = tmp_path / "casino.json"
    path.write_text(json.dumps([record]))
    reading = casino.read(path, lambda *_: None)
    (judgment,) = reading.lines[0].conversations[0].judgments
    assert (judgment.author, judgment.codebook, judgment.seat) == ("CaSiNo", "negotiation-moves", None)
    assert [(label.label, label.turn, label.value) for label in judgment.labels] == [
        ("small_talk", first, True), ("self_need", second, True), ("undervalue_partner", second, True),
    ]  # fmt: skip
    CODEBOOKS["negotiation-moves"].check(judgment.labels)
    assert (reading.report()["labels"], reading.report()["judgments"]) == (3, 1)
    assert [notice["where"] for notice in reading.notices] == ["casino.json, dialogue 0, annotations.2"]
