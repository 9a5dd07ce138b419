"""How a short answer is scored against the right ones: F1 over sets of tokens, and exact match.

Pure functions of text that raise nothing. Texts are normalised as SQuAD's evaluation script does: lower case, without
punctuation, without the articles a, an and the. Unicode's punctuation counts beside ASCII's, so that a typographic
apostrophe makes no difference.
"""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Iterable

_ARTICLES = frozenset({"a", "an", "the"})


def tokens(text: str) -> list[str]:
    """Return the tokens of a text: its words in order, normalised."""
    kept = (char for char in unicodedata.normalize("NFC", text).lower() if not _is_punctuation(char))
    return [word for word in "".join(kept).split() if word not in _ARTICLES]


def _is_punctuation(char: str) -> bool:
    return char in string.punctuation if char.isascii() else unicodedata.category(char).startswith("P")


def f1(answer: str, gold: str) -> float:
    """Return the F1 score of an answer's tokens, from 0 to 1: both texts count as sets, not as multisets of tokens.

    It is 0 where either has no token.
    """
    first, second = set(tokens(answer)), set(tokens(gold))
    shared = len(first & second)
    return 2 * shared / (len(first) + len(second)) if shared else 0.0


def best_f1(answer: str, aliases: Iterable[str]) -> float:
    """Return the F1 score against the alias that fits best."""
    return max((f1(answer, alias) for alias in aliases), default=0.0)


def exact_match(answer: str, aliases: Iterable[str]) -> bool:
    """Return whether an answer has the same tokens as an alias, in the same order; never without a token."""
    words = tokens(answer)
    return bool(words) and any(words == tokens(alias) for alias in aliases)
