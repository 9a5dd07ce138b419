r"""Finds the answer in a reply: a number or the letter of a choice. Pure functions over text; raises nothing.

A number is, in this order: the last one in the last `\boxed{…}` (as in the evaluation scripts of Qwen2.5-Math), the one
after the last `####` (GSM8K's own form), the last number of the reply (`flexible-extract` of GSM8K in
lm-evaluation-harness). Compared as there: commas, the dollar sign and a full stop at the end do not count; as in
Qwen2.5-Math's scripts, 72.0 equals 72.

A letter, a capital, is: the one in the last `\boxed{…}`, the one after the last `####`, the last after `answer is` or
`answer:`, the last in round brackets (`flexible-extract` of GPQA in lm-evaluation-harness), a reply that is the letter
alone.

A `\boxed{…}` or `####` without an answer of the right kind is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

Kind = Literal["number", "letter"]
Rule = Literal["boxed", "marked", "stated", "last", "none"]
"""How an answer was found: `\\boxed{…}`, `####`, `answer is`, the last one in the text, or not at all."""

MARK = "####"
_BOXED = re.compile(r"\\boxed\s*\{")
_NUMBER = re.compile(r"(?:(?<![\w)])-\$?|\$-?)?(?:[0-9]+(?:(?:,|\{,\})[0-9]{3}(?![0-9]))*(?:\.[0-9]+)?|\.[0-9]+)")
_BRACES = {"{": 1, "}": -1}


@dataclass(frozen=True, slots=True)
class Found:
    """An answer with the rule that found it and the place in the text where it begins; `value` None = there is none."""

    value: str | None
    rule: Rule
    begin: int


def find(text: str, kind: Kind, letters: str = "") -> Found:
    """Return the answer in a reply; `letters` are those of the choices."""
    for begin, inside in _boxed(text):
        if (value := _last(inside, kind, letters)) is not None:
            return Found(value, "boxed", begin)
    for mark in reversed(list(re.finditer(rf"{MARK}([^\n]*)", text))):
        if (value := _last(mark[1], kind, letters)) is not None:
            return Found(value, "marked", mark.start())
    return _last_number(text) if kind == "number" else _last_letter(text, letters)


def marked_number(text: str) -> str | None:
    """Return the number after the last `####` as it is compared; None if there is none."""
    _, mark, after = text.rpartition(MARK)
    return _last(after, "number", "") if mark else None


def same_number(first: str, second: str) -> bool:
    """Return whether two numbers, as `find` returns them, are equal."""
    return Decimal(first) == Decimal(second)


def _boxed(text: str) -> Iterator[tuple[int, str]]:
    r"""Yield the place and the content of every `\boxed{…}`, the last one first; braces may nest, or not be closed."""
    for match in reversed(list(_BOXED.finditer(text))):
        depth, at = 1, match.end()
        while at < len(text) and depth:
            depth += _BRACES.get(text[at], 0)
            at += 1
        yield match.start(), text[match.end() : at - (not depth)]


def _last(text: str, kind: Kind, letters: str) -> str | None:
    """Return the last number of a marked answer, or its letter, which stands alone."""
    if kind == "number":
        return _last_number(text).value
    alone = re.findall(rf"(?<![A-Za-z])[{letters}](?![A-Za-z])", text)
    return alone[-1] if alone else None


def _last_number(text: str) -> Found:
    numbers = list(_NUMBER.finditer(text))
    if not numbers:
        return Found(None, "none", len(text))
    return Found(re.sub(r"[$,{}]", "", numbers[-1][0]), "last", numbers[-1].start())


def _last_letter(text: str, letters: str) -> Found:
    stated = list(re.finditer(rf"(?i:answer\s*(?:is|:))\W*([{letters}])(?![A-Za-z])", text))
    if stated:
        return Found(stated[-1][1], "stated", stated[-1].start())
    bracketed = list(re.finditer(rf"\(([{letters}])\)", text))
    if bracketed:
        return Found(bracketed[-1][1], "last", bracketed[-1].start())
    alone = re.fullmatch(rf"\W*([{letters}])\W*", text)
    return Found(alone[1], "last", alone.start(1)) if alone else Found(None, "none", len(text))
