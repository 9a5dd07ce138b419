"""Synthetic corpora for measurements: words by a Zipf-Mandelbrot law, any number of passages, the same for a seed.

The word of rank r has a probability in proportion to 1 / (r + 2.7) (Mandelbrot 1953). The most frequent words are the
English stop words of bm25s; others are made of syllables, the more frequent the shorter. A corpus is the beginning of
every longer one with the same seed and length of passages.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from training.retrieval.base import bm25s
from training.store import dumps

if TYPE_CHECKING:
    from numpy.typing import NDArray

VOCABULARY = 1_000_000
BLOCK = 1000
"""Passages that are drawn at once, with a seed of their own."""
TITLE = 2
_SYLLABLES = [consonant + vowel for consonant in "bcdfghklmnprst" for vowel in "aeiou"]


def write(path: Path, passages: int, seed: int, length: int = 100, vocabulary: int = VOCABULARY) -> None:
    """Write a corpus file; passages have from half to one and a half times `length` words, and a title of two."""
    words = np.array(list(_words(vocabulary)), dtype=object)
    limits = np.cumsum(1 / (np.arange(1, vocabulary + 1) + 2.7))
    with path.open("w", encoding="utf-8") as file:
        for begin in range(0, passages, BLOCK):
            rng = np.random.default_rng((seed, begin // BLOCK))
            drawn = _drawn(rng, words, limits, length)
            for number, (title, text) in zip(range(begin, min(passages, begin + BLOCK)), drawn, strict=False):
                file.write(dumps({"id": f"p{number}", "title": title, "text": text}) + "\n")


def _drawn(
    rng: np.random.Generator, words: NDArray[np.object_], limits: NDArray[np.float64], length: int
) -> Iterator[tuple[str, str]]:
    """Yield title and text of the passages of a block."""
    lengths = TITLE + rng.integers(max(1, length // 2), length + length // 2, size=BLOCK, endpoint=True)
    ranks = np.searchsorted(limits, rng.random(lengths.sum()) * limits[-1], side="right")
    for passage in np.split(words[ranks], np.cumsum(lengths)[:-1]):
        yield " ".join(passage[:TITLE]), " ".join(passage[TITLE:])


def _words(count: int) -> Iterator[str]:
    """Yield the words in the order of their ranks; each is different."""
    common = bm25s().stopwords.STOPWORDS_EN
    yield from common[:count]
    for number in range(count - len(common)):
        rest, syllables = divmod(number, len(_SYLLABLES))
        word = _SYLLABLES[syllables]
        while rest or len(word) < 4:  # two syllables and more, so that none is a stop word
            rest, syllables = divmod(rest, len(_SYLLABLES))
            word = _SYLLABLES[syllables] + word
        yield word
