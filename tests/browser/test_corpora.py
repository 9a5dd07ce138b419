"""A corpus in a real browser: the upload, the progress of its index, and a search in both indexes."""

import json
from uuid import uuid4

import pytest
from playwright.sync_api import expect

from training.retrieval import dense

pytestmark = pytest.mark.slow
ENCODING = 120_000
"""Milliseconds in which a busy machine loads torch, and encodes a few passages."""
TOWERS = (
    {"id": "eiffel", "title": "Eiffel Tower", "text": "An iron tower in Paris, built by Gustave Eiffel's company."},
    {"id": "cat", "text": "The cat <b>sleeps</b> all day."},
)


@pytest.fixture
def name():
    """A name that no other test has used."""
    return f"corpus-{uuid4().hex[:8]}"


def upload(page, name, *passages):
    text = "".join(json.dumps(passage) + "\n" for passage in passages)
    page.goto("/corpora/upload/")
    page.get_by_label("File").set_input_files(
        {"name": "towers.jsonl", "mimeType": "application/jsonl", "buffer": text.encode()}
    )
    page.get_by_label("Name").fill(name)
    page.get_by_role("button", name="Upload").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(name)


def search(page, query):
    page.get_by_label("Search the passages").fill(query)
    page.get_by_role("button", name="Search").click()


def test_a_corpus_is_uploaded_indexed_before_ones_eyes_and_searched(visit, name):
    page = visit("rosa").page
    many = ({"id": str(number), "text": f"Passage {number} of many."} for number in range(3000))
    upload(page, name, *TOWERS, *many)
    progress = page.get_by_role("progressbar", name="Progress of the BM25 index")
    expect(progress.or_(page.locator("#state", has_text="built in"))).to_be_visible()  # it may be quick
    expect(page.locator("#state")).to_contain_text("built in")
    expect(page.locator("#corpus-status")).to_contain_text("BM25: ready")
    search(page, "iron tower")
    first = page.locator("#results-bm25 li").first
    expect(first).to_contain_text("Eiffel Tower")
    expect(first.locator("mark", has_text="iron")).to_be_visible()
    expect(page.locator("#results-bm25 li")).to_have_count(1)
    expect(page.locator("#results-dense [role=alert]")).to_contain_text(
        "There is no dense vectors index of" if dense.installed() else "run `make dense`"
    )
    search(page, "sleeps")
    expect(page.locator("#results-bm25 li")).to_contain_text("<b>sleeps</b>")
    search(page, "passage")
    expect(page.locator("#results-bm25 li")).to_have_count(10)
    page.get_by_role("link", name="More passages").click()
    expect(page.locator("#results-bm25 li")).to_have_count(20)


@pytest.mark.skipif(not dense.installed(), reason="dense retrieval is not installed")
def test_a_dense_index_is_asked_for_and_searched_beside_bm25(visit, name):
    page = visit("rosa").page
    upload(page, name, *TOWERS)
    page.locator("#build-dense").click()
    expect(page.locator("#corpus-status")).to_contain_text("dense vectors: ready", timeout=ENCODING)
    search(page, "kitten")
    expect(page.locator("#results-bm25")).to_contain_text("No passage shares a word")
    expect(page.locator("#results-dense li").first).to_contain_text("The cat", timeout=ENCODING)


def test_a_refused_corpus_says_where_and_its_name_is_free_again(visit, name):
    page = visit("rosa").page
    upload(page, name, *TOWERS, {"id": "no text"})
    expect(page.get_by_role("alert")).to_contain_text("towers.jsonl line 3, text:")
    page.get_by_role("link", name="upload it again").click()
    upload(page, name, *TOWERS)
    expect(page.locator("#corpus-status")).to_contain_text("BM25: ready")
    asked = []
    page.once("dialog", lambda dialog: (asked.append(dialog.message), dialog.accept()))
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("status")).to_contain_text(f"{name} was deleted")
    assert asked == [f"Delete {name} with its indexes? This cannot be undone."]
