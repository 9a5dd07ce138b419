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
from bisect import bisect_left
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
_BRACE = re.compile(r"[{}]")


@dataclass(frozen=True, slots=True)
class Found:
    """An answer with the rule that found it and the place in the text where it begins; `value` None = there is none."""

    value: str | None
    rule: Rule
    begin: int


def find(text: str, kind: Kind, letters: str = "") -> Found:
    """Return the answer in a reply; `letters` are those of the choices."""
    answers = _answers(text, kind, letters)
    starts = [answer.start() for answer in answers]  # looked up, since boxes that nest would be read over and over
    for begin, inside in _boxed(text):
        last = bisect_left(starts, inside.stop) - 1
        if last >= 0 and starts[last] >= inside.start:
            return Found(_plain(answers[last][0]), "boxed", begin)
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


def _boxed(text: str) -> Iterator[tuple[int, slice]]:
    r"""Yield where every `\boxed{…}` begins, and where its content is, the last one first.

    Braces may nest, or not be closed.
    """
    ends: dict[int, int] = {}  # where a brace that opens at a position closes
    open_braces: list[int] = []
    for brace in _BRACE.finditer(text):
        if brace[0] == "{":
            open_braces.append(brace.end())
        elif open_braces:
            ends[open_braces.pop()] = brace.start()
    for match in reversed(list(_BOXED.finditer(text))):
        yield match.start(), slice(match.end(), ends.get(match.end(), len(text)))


def _answers(text: str, kind: Kind, letters: str) -> list[re.Match[str]]:
    """Return all numbers, or all letters of choices that stand alone."""
    pattern = _NUMBER if kind == "number" else re.compile(rf"(?<![A-Za-z])[{letters}](?![A-Za-z])")
    return list(pattern.finditer(text))


def _plain(answer: str) -> str:
    """Return a letter, or a number as it is compared."""
    return re.sub(r"[$,{}]", "", answer)


def _last(text: str, kind: Kind, letters: str) -> str | None:
    """Return the last number of a marked answer, or its letter."""
    answers = _answers(text, kind, letters)
    return _plain(answers[-1][0]) if answers else None


def _last_number(text: str) -> Found:
    numbers = list(_NUMBER.finditer(text))
    if not numbers:
        return Found(None, "none", len(text))
    return Found(_plain(numbers[-1][0]), "last", numbers[-1].start())


def _last_letter(text: str, letters: str) -> Found:
    stated = list(re.finditer(rf"(?i:answer\s*(?:is|:))\W*([{letters}])(?![A-Za-z])", text))
    if stated:
        return Found(stated[-1][1], "stated", stated[-1].start())
    bracketed = list(re.finditer(rf"\(([{letters}])\)", text))
    if bracketed:
        return Found(bracketed[-1][1], "last", bracketed[-1].start())
    alone = re.fullmatch(rf"\W*([{letters}])\W*", text)
    return Found(alone[1], "last", alone.start(1)) if alone else Found(None, "none", len(text))
