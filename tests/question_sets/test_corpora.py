"""Passages that come with question sets: titles, parts, and what is left out."""

import json

import pytest

from tests.question_sets import files
from training.errors import BadInput
from training.question_sets.corpora import Written, popqa_passages, pubmedqa_contexts, write
from training.retrieval.corpus import Document, read


@pytest.fixture
def passages(tmp_path):
    """The three files of two questions, and PopQA's table of them."""
    table = tmp_path / "pop.csv"
    table.write_text(files.table(*files.ROWS[:2]))
    folder = tmp_path / "passages"
    folder.mkdir()
    (folder / "sources").write_text("Which river runs through Prague?\nWho wrote The Grey Harbour?")
    (folder / "ref_correct").write_text("#Prague lies on the Vltava.\n# . ")
    (folder / "ref_incorrect").write_text(
        "#Elbe:  It takes in the Vltava; it is long. ; Prague (city): A city.\n# Ilse Brandt : She wrote: much."
    )
    return folder, table


def test_extracts_have_the_titles_of_their_pages(passages):
    assert list(popqa_passages(*passages, longest=100)) == [
        Document("popqa-11-correct", "", "Prague lies on the Vltava."),
        Document("popqa-11-incorrect-1", "Elbe", "It takes in the Vltava; it is long."),
        Document("popqa-11-incorrect-2", "Prague (city)", "A city."),
        Document("popqa-12-correct", "", "."),
        Document("popqa-12-incorrect-1", "Ilse Brandt", "She wrote: much."),
    ]


def test_long_texts_are_parted(passages):
    parts = [each for each in popqa_passages(*passages, longest=3) if each.title == "Elbe"]
    assert [(each.id, each.text) for each in parts] == [
        ("popqa-11-incorrect-1", "It takes in"),
        ("popqa-11-incorrect-1-part-2", "the Vltava; it"),
        ("popqa-11-incorrect-1-part-3", "is long."),
    ]


def test_files_of_different_lengths_are_refused(passages):
    (passages[0] / "ref_correct").write_text("#one line\n")
    with pytest.raises(BadInput) as raised:
        list(popqa_passages(*passages, longest=100))
    assert str(raised.value) == "ref_correct: 1 lines, but pop.csv has 2 questions"


def test_a_corpus_is_written_without_repeated_and_empty_passages(tmp_path, passages):
    out = tmp_path / "wiki.jsonl"
    twice = [*popqa_passages(*passages, longest=100), Document("again", "Elbe", "It takes in the Vltava; it is long.")]
    assert write(twice, out) == Written(passages=4, repeated=1, empty=1)
    assert [each.id for each in read(out)] == [
        "popqa-11-correct",
        "popqa-11-incorrect-1",
        "popqa-11-incorrect-2",
        "popqa-12-incorrect-1",
    ]
    with pytest.raises(BadInput, match="exists already"):
        write(twice, out)


def test_nothing_is_written_after_an_error(tmp_path):
    articles = {**files.ARTICLES, "903": {"QUESTION": "Why?", "CONTEXTS": [], "LABELS": []}}
    path, out = tmp_path / "pubmed.json", tmp_path / "out.jsonl"
    path.write_text(json.dumps(articles))
    with pytest.raises(BadInput, match=r"pubmed\.json, 903, CONTEXTS: the list is empty"):
        write(pubmedqa_contexts(path, 100), out)
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(BadInput, match="there is no passage"):
        write([Document("a", "", "…")], out)
    assert list(tmp_path.iterdir()) == [path]


def test_sections_of_pubmedqa_are_passages(tmp_path):
    path = tmp_path / "pubmed.json"
    path.write_text(json.dumps(files.ARTICLES))
    assert list(pubmedqa_contexts(path, 100)) == [
        Document("901-1", "PMID 901: background", "Hiccups are common."),
        Document("901-2", "PMID 901: methods", "Forty volunteers drank cold tea."),
        Document("902-1", "PMID 902: methods", "Twelve surgeons were timed."),
    ]
    path.write_text(json.dumps({"901": {**files.ARTICLES["901"], "LABELS": ["METHODS"]}}))
    with pytest.raises(BadInput, match="901, LABELS: 1 labels for 2 contexts"):
        list(pubmedqa_contexts(path, 100))
