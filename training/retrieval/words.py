"""From text to the words that BM25 counts, the same for passages and queries.

A word is a run of letters, digits and underscores, without regard to case and compatibility forms (Unicode NFKC);
Chinese characters and Japanese kana, which are written without spaces, are a word each. There is no stemming.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")


def words(text: str) -> list[str]:
    """Return the words of a text in order."""
    folded = text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()
    return _WORD.findall(folded)


def spans(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield the words of a text, each with its beginning and end in the text as it is written."""
    for match in _WORD.finditer(text):
        for word in words(match.group()):
            yield word, match.start(), match.end()
