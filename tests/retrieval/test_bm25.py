"""BM25 against scores worked by hand, and what is found at all."""

import math
import tracemalloc

import pytest

from training.errors import BadInput
from training.retrieval.bm25 import Bm25Settings
from training.retrieval.index import build, open_index

TEXTS = ("cat cat dog", "cat bird", "fish fish fish fish")  # 3, 2 and 4 words: 3 on average


def results(path, query, k=10, **settings):
    passages = open_index(build(path, Bm25Settings(**settings))).search(query, k)
    return {passage.id: passage.score for passage in passages}


def test_scores_are_those_of_lucenes_formula(corpus):
    """ln(1 + (N − n + 0.5) / (n + 0.5)) · f / (f + k1 (1 − b + b |d| / L)), with k1 = 1.5, b = 0.75, N = 3, L = 3."""
    path = corpus(*TEXTS)
    # cat is in two passages: ln(1 + 1.5 / 2.5). In 0 twice of 3 words: 2 / (2 + 1.5); in 1 once of 2 words:
    # 1 / (1 + 1.5 · (0.25 + 0.75 · 2 / 3)) = 1 / 2.125
    cat = {"0": math.log(1.6) * 2 / 3.5, "1": math.log(1.6) / 2.125}
    assert results(path, "cat") == pytest.approx(cat)
    # bird and dog are in one passage each: ln(1 + 2.5 / 1.5)
    both = {"1": math.log(8 / 3) / 2.125, "0": math.log(8 / 3) / 2.5}
    assert results(path, "a dog, a BIRD?") == pytest.approx(both)
    assert list(results(path, "dog bird")) == ["1", "0"]
    # sums over the words of the query, in which a word counts as often as it stands there
    assert results(path, "dog cat cat")["0"] == pytest.approx(both["0"] + 2 * cat["0"])


def test_k1_and_b_are_those_of_the_settings(corpus):
    # fish four times in 4 words: with b = 0 the length does not count, 4 / (4 + 2); with k1 = 0 the frequency neither
    assert results(corpus(*TEXTS), "fish", k1=2.0, b=0.0) == pytest.approx({"2": math.log(8 / 3) * 4 / 6})
    assert results(corpus(*TEXTS), "fish", k1=0.0) == pytest.approx({"2": math.log(8 / 3)})


def test_only_passages_with_a_word_of_the_query_are_returned(corpus):
    path = corpus(*TEXTS)
    assert list(results(path, "cat fish", k=2)) == ["2", "0"]
    assert len(results(path, "cat fish", k=3)) == len(results(path, "cat fish", k=1000)) == 3
    for query in ("", "  \n", "?!", "elephant", "the"):
        assert results(path, query) == {}


def test_stop_words_are_left_out_unless_the_settings_keep_them(corpus):
    path = corpus("the who", "the band")
    assert results(path, "the") == {}
    # with stop words a word of both passages scores ln(1 + 0.5 / 2.5) · 1 / 2.5
    assert results(path, "the", stopwords="none") == pytest.approx({"0": math.log(1.2) / 2.5, "1": math.log(1.2) / 2.5})


def test_equal_scores_are_in_the_order_of_the_corpus(corpus):
    path = corpus("same words", "other", "same words", "words same", "same", "same words")
    for k in (1, 2, 3, 4):
        assert list(results(path, "words same", k)) == ["0", "2", "3", "5"][:k]
    assert list(results(path, "words same")) == ["0", "2", "3", "5", "4"]


def test_other_scripts_are_found(corpus):
    path = corpus("Der Straßenbau in Köln", "北京大学", "Ko\u0308ln am Rhein")
    assert list(results(path, "STRASSENBAU")) == ["0"]
    assert list(results(path, "北京")) == ["1"]
    assert set(results(path, "KÖLN")) == {"0", "2"}


def test_the_title_is_searched_too(tmp_path):
    path = tmp_path / "titled.jsonl"
    path.write_text('{"id": "x", "title": "Paris", "text": "A city."}\n')
    (passage,) = open_index(build(path, Bm25Settings())).search("paris", 3)
    assert (passage.id, passage.title, passage.text) == ("x", "Paris", "A city.")


def test_a_passage_without_words_is_kept_and_a_corpus_without_words_refused(corpus):
    assert results(corpus("!", "word"), "word") == pytest.approx({"1": math.log(2) / (1 + 1.5 * (0.25 + 0.75 * 2))})
    with pytest.raises(BadInput, match="no passage contains a word"):
        build(corpus("!", "the"), Bm25Settings())


def test_fewer_than_one_passage_is_refused(corpus):
    with pytest.raises(BadInput, match="k: expected at least 1 passage"):
        results(corpus(*TEXTS), "cat", k=0)


def test_the_corpus_is_never_in_memory_as_a_whole(corpus):
    path = corpus(*[f"common {number % 10} " + "x" * 2000 for number in range(10_000)])
    build(corpus("warm up", name="small.jsonl"), Bm25Settings())
    tracemalloc.start()
    build(path, Bm25Settings())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert path.stat().st_size > 20e6
    assert peak < 10e6
