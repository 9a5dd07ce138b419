"""Synthetic corpora follow their law and their seed; the measurement of retrieval finds what it looks for."""

import json
from collections import Counter

import pytest

from bench import passages, retrieval
from bench.__main__ import main
from training.retrieval import corpus


@pytest.fixture(scope="module")
def documents(tmp_path_factory):
    path = tmp_path_factory.mktemp("passages") / "corpus.jsonl"
    passages.write(path, 2500, seed=3, length=100, vocabulary=50_000)
    return list(corpus.read(path))


def test_words_are_as_frequent_as_the_law_says(documents):
    counts = Counter(word for document in documents for word in document.text.split())
    total = sum(counts.values())
    weights = [1 / (rank + 2.7) for rank in range(1, 50_001)]
    for rank, word in ((1, "a"), (10, "for"), (34, "baba")):  # the 33 stop words, then the first pair of syllables
        assert counts[word] / total == pytest.approx(weights[rank - 1] / sum(weights), rel=0.06)


def test_passages_have_the_length_that_was_asked_for(documents):
    lengths = [len(document.text.split()) for document in documents]
    assert (min(lengths), max(lengths)) == (50, 150)
    assert sum(lengths) / 2500 == pytest.approx(100, abs=2)  # 29 / √2500 = 0.6 is the standard error
    assert {len(document.title.split()) for document in documents} == {2}


def test_a_corpus_is_the_beginning_of_a_longer_one_with_the_same_seed(tmp_path, documents):
    path = tmp_path / "shorter.jsonl"
    passages.write(path, 1200, seed=3, length=100, vocabulary=50_000)
    assert list(corpus.read(path)) == documents[:1200]
    passages.write(path, 10, seed=4, length=100, vocabulary=50_000)
    assert list(corpus.read(path)) != documents[:10]


def test_words_are_different_and_none_is_a_stop_word():
    words = list(passages._words(30_000))
    assert len(set(words)) == 30_000
    assert words[:3] == ["a", "an", "and"]


@pytest.mark.process
def test_the_measurement_finds_the_passages_whose_words_it_searches(capsys, monkeypatch):
    command = ["retrieval", "--kind", "bm25", "--passages", "300", "--queries", "20", "--length", "40"]
    assert main([*command, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    row = result["bm25"]
    assert row["passages"] == 300
    assert row["search"]["found"] > 0.9
    assert row["bytes_per_passage"] == row["index_bytes"] / 300
    assert set(row["build"]["phases"]) == {"checksum", "read", "words", "scores", "writing"}
    assert sum(row["build"]["phases"].values()) == pytest.approx(row["build"]["seconds"], rel=0.05)
    assert 0 < row["search"]["private_bytes"] <= row["search"]["peak_bytes"]
    assert row["ok"]
    assert "bm25, 300 passages" in retrieval.show(result)
