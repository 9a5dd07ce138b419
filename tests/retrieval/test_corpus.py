"""Corpus files: what a line may be, and the place of whatever is wrong with it."""

import hashlib
import json

import pytest

from training.errors import BadInput
from training.retrieval import corpus as corpora
from training.retrieval.corpus import Document, checksum, read

LINE = {"id": "a", "title": "Title", "text": "Some text."}


def write(tmp_path, *lines):
    path = tmp_path / "passages.jsonl"
    path.write_bytes(b"\n".join(line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines))
    return path


def test_a_title_may_be_missing_and_other_fields_are_ignored(tmp_path):
    path = write(tmp_path, LINE, b"", {"id": "b", "text": "Ünïcode 北京", "url": ["x"]})
    assert list(read(path)) == [Document("a", "Title", "Some text."), Document("b", "", "Ünïcode 北京")]
    assert [document.content for document in read(path)] == ["Title\nSome text.", "Ünïcode 北京"]


def test_a_byte_order_mark_is_skipped(tmp_path):
    path = write(tmp_path, b"\xef\xbb\xbf" + json.dumps(LINE).encode())
    assert list(read(path)) == [Document(**LINE)]


@pytest.mark.parametrize(
    "line, message",
    [
        ({"title": "x", "text": "y"}, "passages.jsonl line 2, id: the field is missing"),
        ({"id": "b"}, "passages.jsonl line 2, text: the field is missing"),
        ({"id": " ", "text": "y"}, "passages.jsonl line 2, id: the field is empty"),
        ({"id": "b", "text": "\n"}, "passages.jsonl line 2, text: the field is empty"),
        ({"id": 2, "text": "y"}, "passages.jsonl line 2, id: expected a string"),
        ({"id": "b", "text": None}, "passages.jsonl line 2, text: expected a string"),
        ({"id": "b", "title": ["x"], "text": "y"}, "passages.jsonl line 2, title: expected a string"),
        ({"id": "b", "text": "\ud800"}, "passages.jsonl line 2, text: the text contains an unpaired surrogate"),
        ({"id": "b", "text": "a\0"}, "passages.jsonl line 2, text: the text contains a NUL character"),
        (b" " * 2**22 + b"{}", "passages.jsonl line 2: a line of more than 4194304 bytes"),
        (LINE, "passages.jsonl line 2, id: a second passage with the id 'a'"),
        ([LINE], "passages.jsonl line 2: expected an object"),
        (b"{", "passages.jsonl line 2: not JSON"),
        (b'{"id": "b", "text": "y", "id": "c"}', "passages.jsonl line 2: not JSON: the key 'id' stands twice"),
        (b'{"id": "b", "text": "\xff"}', "passages.jsonl line 2: not UTF-8"),
    ],
)
def test_a_wrong_line_is_named_with_its_field(tmp_path, line, message):
    with pytest.raises(BadInput) as raised:
        list(read(write(tmp_path, LINE, line)))
    assert str(raised.value).startswith(message)


def test_a_folder_or_a_missing_file_is_refused(tmp_path):
    for path in (tmp_path, tmp_path / "none.jsonl"):
        with pytest.raises(BadInput, match=str(path)):
            checksum(path)


def test_the_checksum_is_that_of_the_bytes_and_reports_progress(tmp_path, monkeypatch):
    monkeypatch.setattr(corpora, "_BLOCK", 40)
    path, calls = write(tmp_path, LINE, LINE), []
    content = path.read_bytes()
    assert checksum(path, lambda *call: calls.append(call)) == (hashlib.sha256(content).hexdigest(), 1)
    assert calls == [(done, len(content), "checksum") for done in (40, 80, len(content))]
