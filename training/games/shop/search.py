"""Full-text search by BM25, in which equal scores keep the catalogue's order."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from training.retrieval.base import bm25s

MOST_RESULTS = 50
"""Results of a search at most, as in WebShop."""
K1, B = 0.9, 0.4
"""BM25's parameters, those of Pyserini, with which WebShop searches."""
DIGITS = 4
"""Decimals of a score that count: the last bits may differ between machines."""
STOP_WORDS = frozenset(
    re.findall(
        r"[a-z]+",
        "a an and are as at be but by for from has have i in is it its must my need of on or than that the their these "
        "this to want was which will with would you your",
    )
)


class Index:
    """An index of texts by id. Building it takes some seconds for 50,000 texts."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._ids = tuple(texts)
        self._scorer = bm25s().BM25(k1=K1, b=B, method="lucene", backend="numpy", csc_backend="numpy")
        self._scorer.index([words(text) for text in texts.values()], show_progress=False)
        self._ranked = lru_cache(maxsize=1024)(self._rank)

    def search(self, query: str) -> tuple[str, ...]:
        """Return the ids of at most `MOST_RESULTS` texts that share a word with the query, best first."""
        return self._ranked(tuple(words(query)))

    def _rank(self, query: tuple[str, ...]) -> tuple[str, ...]:
        if not query:
            return ()
        scores = self._scorer.get_scores(list(query)).round(DIGITS)
        order = (-scores).argsort(kind="stable")[:MOST_RESULTS]
        return tuple(self._ids[place] for place in order if scores[place] > 0)


def words(text: str) -> list[str]:
    """Return the words that count: lower case, without stop words and without the s of a plural."""
    terms = re.findall(r"[a-z0-9]+", text.lower())
    return [singular(word) for word in terms if word not in STOP_WORDS]


def singular(word: str) -> str:
    """Return a word without its plural's s."""
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
