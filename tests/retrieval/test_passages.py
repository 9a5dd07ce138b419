"""Stored passages, and the choice of the best scores."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from training.retrieval import passages
from training.retrieval.corpus import Document
from training.retrieval.passages import Passages, best

DOCUMENTS = [Document("a", "", "one\ntwo"), Document("ü", "北京", '"quoted"\u2028'), Document("c", "T", "😀")]


def test_passages_are_read_one_by_one_and_in_order(tmp_path):
    assert passages.write(tmp_path, iter(DOCUMENTS)) == 3
    stored = Passages(tmp_path)
    assert len(stored) == 3
    assert list(stored) == DOCUMENTS
    assert [stored[place] for place in (2, 0, 1)] == [DOCUMENTS[place] for place in (2, 0, 1)]


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=30), st.integers(1, 40))
def test_the_best_are_sorted_by_score_and_then_by_position(values, k):
    expected = sorted(range(len(values)), key=lambda place: (-values[place], place))[:k]
    assert best(np.array(values, dtype=np.float32), k) == expected
