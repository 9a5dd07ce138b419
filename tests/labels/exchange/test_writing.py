"""What tables, Web Annotations and Label Studio's tasks hold, by hand and by the rules of their authors."""

import csv
import io
import json
from xml.etree import ElementTree as ET

from tests.labels.exchange.make import CODEBOOK, SCENARIO, TEXTS, judged, judgment, labelled, line
from training.dataset import DatasetLine, episode_hash
from training.labels.exchange import FORMATS
from training.labels.exchange.label_studio import config
from training.labels.exchange.table import COLUMNS
from training.records import Label

FOX = Label(label="span_span", turn=1, start=2, end=5)
"""“Fox”, after an emoji: characters 2 to 5 in code points, 3 to 6 in UTF-16."""
LINK = Label(label="relation_pair", turn=2, other_turn=0)


def write(name, *lines):
    return "".join(FORMATS[name].write(CODEBOOK, labelled(*lines)))


def rows(*judgments):
    return list(csv.DictReader(io.StringIO(write("csv", line(judged(*judgments))), newline="")))


def items(*judgments):
    return json.loads(write("w3c", line(judged(*judgments))))["first"]["items"]


def test_jsonl_is_what_a_dataset_version_holds():
    lines = [
        DatasetLine(scenario=SCENARIO, conversations=(judged(judgment()), judged(judgment("person:2")))),
        DatasetLine(scenario=SCENARIO.model_copy(update={"id": "other"})),
    ]
    assert write("jsonl", *lines) == "".join(f"{each.dumps()}\n" for each in lines)


def test_a_row_names_the_words_and_their_place():
    (row,) = rows(judgment(labels=(FOX,)))
    assert tuple(row) == COLUMNS
    assert [row[name] for name in ("label", "value", "turn", "start", "end", "words", "seat")] == [
        "span_span", "", "1", "2", "5", "Fox", "",
    ]  # fmt: skip
    assert row["episode_sha256"] == episode_hash(judged().episode.to_dict())


def test_a_cell_is_no_formula_and_a_number_stays_one():
    said = judgment(
        "=cmd|x", (Label(label="text_game", value="+1"), Label(label="scale_game", value=-5.0, reason="@SUM(A1)")),
        reason="-a",
    )  # fmt: skip
    first, second = rows(said)
    assert (first["author"], first["value"], first["comment"]) == ("'=cmd|x", "'+1", "'-a")
    assert (second["value"], second["reason"]) == ("-5.0", "'@SUM(A1)")


def test_a_judgment_without_labels_has_a_row():
    (row,) = rows(judgment(labels=None, reason="cut off", seat=1))
    assert (row["scored"], row["comment"], row["label"], row["seat"]) == ("false", "cut off", "", "1")


def test_an_annotation_quotes_the_characters_that_its_position_names():
    """Web Annotation Data Model, 4.2.5: positions are code points, and the quote selects the same text."""
    (item,) = items(judgment(labels=(FOX,)))
    position, quote = item["target"]["selector"]
    text = TEXTS[1]
    assert (position["start"], position["end"], quote["exact"]) == (2, 5, "Fox")
    assert text[position["start"] : position["end"]] == quote["exact"]
    assert (quote["prefix"], quote["suffix"]) == (
        text[: position["start"]],
        text[position["end"] : position["end"] + 32],
    )
    assert text.count(quote["prefix"] + quote["exact"] + quote["suffix"]) == 1
    assert item["target"]["source"].endswith("#turn-1")
    assert (item["motivation"], item["labelType"]) == ("highlighting", "span_span")


def test_a_relation_links_two_targets_in_order():
    (item,) = items(judgment(labels=(LINK,)))
    assert [target.rpartition("#")[2] for target in item["target"]] == ["turn-2", "turn-0"]
    assert item["motivation"] == "linking"


def test_annotations_have_ids_of_their_own_and_are_counted():
    collection = json.loads(write("w3c", line(judged(judgment(), judgment("model:m"), judgment("person:2", ())))))
    annotations = collection["first"]["items"]
    assert collection["total"] == len(annotations) == len({item["id"] for item in annotations})
    names = [collection["id"], collection["first"]["id"], *(item["id"] for item in annotations)]
    assert len(set(names)) == len(names), "the recommendation asks for an IRI of each"
    assert all(name.startswith("urn:uuid:") for name in names)
    assert {item["creator"]["type"] for item in annotations} == {"Person", "Software"}
    assert "@context" in collection


def test_label_studio_counts_in_utf16():
    """In JavaScript, "🦊 Fox".indexOf("Fox") is 3."""
    (task,) = json.loads(write("label-studio", line(judged(judgment(labels=(FOX,))))))
    (result,) = task["annotations"][0]["result"]
    assert result["value"] == {
        "start": "1", "end": "1", "startOffset": 3, "endOffset": 6, "paragraphlabels": ["span_span"],
    }  # fmt: skip
    assert task["data"]["dialogue"][1] == {"author": "Ben", "text": TEXTS[1]}


def test_label_studio_has_the_judgments_under_the_codebook_of_the_queue_alone():
    other = judgment("CaSiNo", (), codebook="negotiation-moves", codebook_version=1)
    (task,) = json.loads(write("label-studio", line(judged(other, judgment(labels=(LINK,))))))
    assert [each["judgment"]["author"] for each in task["annotations"]] == ["person:1"]


def test_every_result_has_its_control_and_object_in_the_configuration():
    root = ET.fromstring(config(CODEBOOK, 2))  # noqa: S314 - written by the line itself
    controls = {node.get("name"): node for node in root if node.get("toName")}
    objects = {node.get("name") for node in root if node.get("value", "").startswith("$")}
    tasks = json.loads(write("label-studio", line(judged(judgment(reason="so", unsure=True)))))
    results = tasks[0]["annotations"][0]["result"]
    for result in (each for each in results if each["type"] != "relation"):
        control = controls[result["from_name"]]
        assert (control.tag.lower(), control.get("toName")) == (result["type"], result["to_name"])
        assert result["to_name"] in objects
        names = {child.get("value") for child in control}
        if result["type"] in ("choices", "paragraphlabels"):
            assert names >= set(result["value"][result["type"]])
    regions = {result["id"] for result in results if result["type"] != "relation"}
    relations = [result for result in results if result["type"] == "relation"]
    assert all({each["from_id"], each["to_id"]} <= regions for each in relations)
    assert len(relations) == 6
