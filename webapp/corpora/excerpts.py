"""What of a passage is shown in a list of results: the part with the most words of the query, which are marked.

Text stays text: a template escapes each part and puts `<mark>` around the marked ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from training.retrieval.words import spans

LENGTH = 320
"""Characters of an excerpt."""
BEFORE = 60
"""Characters before the first marked word."""
WHOLE = 200_000
"""Characters of all whole passages of a page; each has the same share, and the rest of it is not shown."""


class Part(NamedTuple):
    """A piece of text, marked or not."""

    text: str
    marked: bool


class Excerpt(NamedTuple):
    """The parts of an excerpt, and whether something of the text stands before or after it."""

    parts: list[Part]
    cut_before: bool
    cut_after: bool


def marked(text: str, words: frozenset[str], most: int = WHOLE) -> list[Part]:
    """Return the text in parts, at most so many characters."""
    return list(_parts(text, words, 0, min(len(text), most)))


def excerpt(text: str, words: frozenset[str]) -> Excerpt:
    """Return the part of a text with the most different words of the query, and the first such; else its beginning."""
    begin, end = _window(text, words)
    return Excerpt(list(_parts(text, words, begin, end)), begin > 0, end < len(text))


def _window(text: str, words: frozenset[str]) -> tuple[int, int]:
    """Where the excerpt begins and ends: between words, as far as they are not longer than `BEFORE`."""
    if len(text) <= LENGTH:
        return 0, len(text)
    places = [(begin, word) for word, begin, _ in spans(text) if word in words]
    best, begin, ahead = 0, 0, 0
    inside: Counter[str] = Counter()
    for first, word in places:
        while ahead < len(places) and places[ahead][0] < first + LENGTH - BEFORE:
            inside[places[ahead][1]] += 1
            ahead += 1
        if len(inside) > best:
            best, begin = len(inside), max(0, first - BEFORE)
        inside[word] -= 1
        if not inside[word]:
            del inside[word]
    if begin:
        begin += max(0, text[begin : begin + BEFORE].find(" ") + 1)
    end = min(len(text), begin + LENGTH)
    if end < len(text):
        end -= max(0, text[end - BEFORE : end][::-1].find(" ") + 1)
    return begin, end


def _parts(text: str, words: frozenset[str], begin: int, end: int) -> Iterator[Part]:
    """The text from `begin` to `end`, cut at the beginnings and ends of the words that are marked."""
    done = begin
    for word, first, last in spans(text[begin:end]):
        if word in words and begin + first >= done:
            if begin + first > done:
                yield Part(text[done : begin + first], marked=False)
            yield Part(text[begin + first : begin + last], marked=True)
            done = begin + last
    if done < end:
        yield Part(text[done:end], marked=False)
