"""Labels of Label Studio and doccano: conversations that can be played, their judgments, and refusals that store
nothing.
"""

import json
from io import StringIO

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.urls import reverse

from training.errors import BadInput
from training.games import replay
from training.labels.codebooks import CODEBOOKS
from training.records import Label
from webapp.judgments.codebooks.services import save_codebook
from webapp.judgments.models import Judgment
from webapp.scenarios import importers
from webapp.scenarios.models import Dataset, Import

pytestmark = pytest.mark.django_db
SPANS = [
    {"name": "person", "title": "Person", "kind": "span", "about": "span", "definition": "A person?"},
    {"name": "rude", "title": "Rude", "kind": "yes_no", "about": "turn", "definition": "Rude?", "required": False},
]


@pytest.fixture
def words(researcher):
    """A codebook of this site with two versions, of which the first has no person."""
    save_codebook(name="words", title="Words", labels=SPANS[1:], by=researcher)
    return save_codebook(name="words", title="Words", labels=SPANS, by=researcher)


def task(number=7, data=None, results=(), **fields):
    annotation = {"completed_by": 3, "result": list(results)} | fields
    return {"id": number, "data": data or {"text": "🦊 Ann says:\nno way."}, "annotations": [annotation]}


def span(start, end, name="person"):
    return {"id": "a", "from_name": "x", "to_name": "t", "type": "labels",
            "value": {"start": start, "end": end, "labels": [name]}}  # fmt: skip


def read(tmp_path, *tasks, format="label-studio", **options):
    path = tmp_path / "export.json"
    lines = "\n".join(json.dumps(each) for each in tasks)
    path.write_text(lines if format == "doccano" else json.dumps(tasks))
    return importers.read(format, path, lambda *_: None, {"codebook": "words", **options})


def spoken(line):
    (conversation,) = line.conversations
    replay(conversation.episode.scenario, conversation.episode.moves)
    return [(entry.seat, entry.move.text) for entry in conversation.episode.moves]


def test_a_text_is_one_turn_and_its_labels_are_judgments_of_an_outside_author(tmp_path, words):
    reading = read(tmp_path, task(results=[span(2, 5)], updated_at="2026-01-02T03:04:05Z"), task(8))
    assert reading.errors == []
    first, second = reading.lines
    assert spoken(first) == spoken(second) == [(0, "🦊 Ann says: no way.")]
    assert (first.scenario.id, first.scenario.seats) == ("label-studio-7", ("Author", "Reader"))
    (judgment,) = first.conversations[0].judgments
    assert (judgment.author, judgment.codebook_version) == ("label-studio:3", 2)
    assert judgment.labels == (Label(label="person", turn=0, start=2, end=5),)
    assert reading.report()["judgments"] == 2


def test_lines_are_turns_where_that_is_asked_for(tmp_path, words):
    reading = read(tmp_path, task(results=[span(12, 14)]), split="lines")
    assert spoken(reading.lines[0]) == [(0, "🦊 Ann says:"), (0, "no way.")]
    assert reading.lines[0].conversations[0].judgments[0].labels == (Label(label="person", turn=1, start=0, end=2),)


@pytest.mark.parametrize("authors", ["AB", "AAB", "ABBA", "A"])
def test_a_dialogue_keeps_who_says_what(tmp_path, words, authors):
    chat = [{"author": author, "text": f"Word {number}."} for number, author in enumerate(authors)]
    reading = read(tmp_path, task(data={"chat": chat}))
    assert reading.errors == []
    assert spoken(reading.lines[0]) == [("AB".index(author), f"Word {n}.") for n, author in enumerate(authors)]


def test_a_long_dialogue_is_read_to_its_end(tmp_path, words):
    chat = [{"author": "AB"[number % 2], "text": f"{number}"} for number in range(400)]
    assert len(spoken(read(tmp_path, task(data={"chat": chat})).lines[0])) == 400
    reading = read(tmp_path, task(data={"chat": [*chat, {"author": "A", "text": "over"}]}))
    assert "at most 400 turns" in reading.errors[0]["why"]


@pytest.mark.parametrize(
    "tasks, options, where, why",
    [
        ([task(results=[span(2, 5, "dog")])], {}, "export.json, task 7, annotations.0, result.0, value.labels",
         "words v2 has no label 'dog'; it has person, rude"),
        ([task(results=[span(2, 5)])], {"codebook": "words v1"},
         "export.json, task 7, annotations.0, result.0, value.labels", "words v1 has no label 'person'"),
        ([task(results=[span(2, 50)])], {}, "export.json, task 7, annotations.0, result.0, value", "no span of a text"),
        ([task(results=[span(2, 5), span(4, 8)])], {}, "export.json, task 7, annotations.0, person", "spans overlap"),
        ([task(), task(data={"text": "Else."})], {}, "export.json, task 7", "another text with the id '7'"),
        ([task(data={"c": [{"author": a, "text": a} for a in "ABC"]})], {}, "export.json, task 7", "two participants"),
        ([task(data={"text": "x" * 20_001})], {}, "export.json, task 7", "at most 20000 characters"),
        ([], {}, "export.json", "contains no text"),
        ([{"data": {"text": "x"}}], {}, "export.json, task 0, annotations", "missing"),
        ([task()], {"codebook": ""}, "codebook", "name the codebook"),
        ([task()], {"codebook": "none"}, "codebook", "no codebook is named 'none'; there are"),
        ([task()], {"codebook": "words v9"}, "codebook", "words has no version 9"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_with_its_place(tmp_path, words, tasks, options, where, why):
    reading = read(tmp_path, *tasks, **options)
    (error,) = reading.errors
    assert (error["where"], why in error["why"], reading.lines) == (where, True, []), error


def test_a_task_that_stands_twice_is_one_text_with_the_labels_of_both(tmp_path, words):
    first, again = task(results=[span(2, 5)]), task(results=[span(2, 5)], completed_by=9)
    (line,) = read(tmp_path, first, again).lines
    assert [each.author for each in line.conversations[0].judgments] == ["label-studio:3", "label-studio:9"]


def test_predictions_are_left_out_with_a_notice(tmp_path, words):
    reading = read(tmp_path, {**task(), "predictions": [{}, {}]})
    assert reading.notices == [{"where": "export.json, task 7", "why": "2 predictions of models are left out"}]


def test_labels_of_doccano_become_judgments(tmp_path, words):
    records = [
        {"id": 4, "text": "Ann left.", "label": [[0, 3, "Person"]]},
        {"text": "Go <i>away</i>.", "label": ["Rude"]},
    ]
    reading = read(tmp_path, *records, format="doccano")
    assert reading.errors == []
    assert [line.scenario.id for line in reading.lines] == ["doccano-4", "doccano-2"]
    assert spoken(reading.lines[1]) == [(0, "Go (i)away(/i).")]
    labels = [line.conversations[0].judgments[0].labels for line in reading.lines]
    assert labels == [
        (Label(label="person", turn=0, start=0, end=3),), (Label(label="rude", value=True, turn=0),),
    ]  # fmt: skip


def command(tmp_path, content, *options):
    path = tmp_path / "all.jsonl"
    path.write_text(content)
    out = StringIO()
    try:
        call_command("import_dataset", "doccano", path, "--json", *options, name="texts", stdout=out)
    except SystemExit as error:
        return error.code, json.loads(out.getvalue())
    return 0, json.loads(out.getvalue())


def test_the_command_imports_under_a_codebook(tmp_path, words, admin):
    code, report = command(tmp_path, '{"text": "Ann left.", "label": [[0, 3, "Person"]]}\n', "--codebook", "words")
    assert (code, report["judgments"], report["labels"]) == (0, 1, 1)
    row = Judgment.objects.get()
    assert (row.outside_author, str(row.codebook_version)) == ("doccano", "words v2")
    assert row.records() == (Label(label="person", turn=0, start=0, end=3),)


def test_the_command_stores_nothing_of_a_file_with_an_error(tmp_path, words, admin):
    lines = '{"text": "fine"}\n{"text": "Ann", "label": [[0, 9, "Person"]]}\n'
    code, report = command(tmp_path, lines, "--codebook", "words")
    assert (code, [error["where"] for error in report["errors"]]) == (2, ["all.jsonl line 2, label.0"])
    assert not Dataset.objects.exists()
    code, report = command(tmp_path, '{"text": "fine"}\n')
    assert (code, [error["where"] for error in report["errors"]]) == (2, ["codebook"])


def test_codebooks_that_come_with_parley_are_known(tmp_path):
    reading = read(tmp_path, task(data={"text": "Hi."}), codebook="negotiation-moves")
    assert reading.lines[0].conversations[0].judgments[0].codebook_version == CODEBOOKS["negotiation-moves"].version
    with pytest.raises(BadInput, match="no such field"):
        read(tmp_path, task(), colour="red")


@pytest.mark.parametrize("format", ["label-studio", "doccano"])
def test_the_form_asks_for_the_codebook_before_it_takes_the_file(client_of, researcher, format):
    data = {"format": format, "name": "texts", "option-codebook": " ", "option-split": "text", "option-text": ""}
    file = SimpleUploadedFile("tasks.json", b"[]")
    refused = client_of(researcher).post(reverse("scenarios:upload"), {**data, "chosen": file})
    assert refused.status_code == 400
    (why,) = refused.context["form"].errors["option-codebook"]
    assert why == "Name the codebook under which the labels are read."
    assert not Import.objects.exists()
