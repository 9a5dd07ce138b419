r"""Finds the answer in a reply: a number or the letter of a choice. Pure functions over text; raises nothing.

A number is, in this order: the last one in the last `\boxed{…}` (as in the evaluation scripts of Qwen2.5-Math), the one
directly after the last `####` (GSM8K's own form), the last number of the reply (`flexible-extract` of GSM8K in
lm-evaluation-harness). Compared as there: commas, the dollar sign and a full stop at the end do not count; as in
Qwen2.5-Math's scripts, 72.0 equals 72. In a box only what follows the last `=` counts, a fraction is divided, and any
other calculation has no value; a calculation after `####` likewise. Exponents are no answers, and 1.5e3 is 1500.

A letter, a capital, is: the first in the last `\boxed{…}`, the one directly after the last `####`, the last after
`answer is` or `answer:`, the last in round brackets (`flexible-extract` of GPQA in lm-evaluation-harness), the one with
which the reply begins (`B. the sky`) or which is all of it. Where a reply goes through the choices, with `#### A. …` or
`A. …`, these are no answers.

A `\boxed{…}` or `####` without an answer of the right kind is passed over. A line such as `#### 1. Money` is a heading.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, DecimalException
from typing import Literal

Kind = Literal["number", "letter"]
Rule = Literal["boxed", "marked", "stated", "last", "none"]
"""How an answer was found: `\\boxed{…}`, `####`, `answer is`, the last one in the text, or not at all."""

MARK = "####"
_MARKED = re.compile(rf"(?<!#){MARK}(?!#)(?:[^\S\n]*\n)?([^\n]*)")
_BOXED = re.compile(r"\\boxed\s*\{")
_SIGN = r"(?:(?<![\w)])[-−](?:\\?\$)?|\\?\$[-−]?)?"
_DIGITS = (
    r"(?:[0-9]+(?:(?:,(?:\\!)?|\{,\}|\\,)[0-9]{3}(?![0-9]))*(?:\.[0-9]+)?|\.[0-9]+)"  # 1,200 1,\!200 1{,}200 1\,200
    r"(?:[eE][-+]?[0-9]{1,3}(?!\w))?"
)
_NUMBER = re.compile(rf"\^\s*+(?:\{{\s*+)?[-−]?{_DIGITS}|(?P<number>{_SIGN}{_DIGITS})")
"""A number, or an exponent, in which the group `number` is empty."""
_EQUALS = re.compile(r"=|≈|\\approx")
_FRACTION = re.compile(
    r"(?>(?:\s|\\?\$|\\displaystyle)*)(?P<sign>[-−]?)\s*+"
    rf"(?:\\[dt]?frac\s*\{{\s*([-−]?{_DIGITS})\s*\}}\s*\{{\s*({_DIGITS})\s*\}}|({_DIGITS})\s*/\s*({_DIGITS}))"
    r"(?>(?:\\text\s*\{[^{}0-9]*\}|\\[,;:% ]|[\s$.%]|(?<=\s)[A-Za-z]+)*)"
)
_CALCULATED = r"\s*(?:[-−+*/^×÷]|\\(?:times|cdot|div))[\s\\$({−-]*[0-9.]"
_CALCULATION = re.compile(rf"\\[cdt]?frac(?!\s*\{{\s*\\(?:text|mathrm))|\\sqrt|[0-9)]{_CALCULATED}")
"""A calculation; `\\frac` with words above the line is a unit."""
_CONTINUED = re.compile(rf"{_CALCULATED}|\s*x\s*\$?[0-9]")
_HEADING = re.compile(r"[.):]\s+\S")
_BRACE = re.compile(r"[{}]")


@dataclass(frozen=True, slots=True)
class Extracted:
    """An extracted answer, the rule that matched and its start; `value` is None without an answer."""

    value: str | None
    rule: Rule
    begin: int


def find(text: str, kind: Kind, letters: str = "") -> Extracted:
    """Return the answer in a reply; `letters` are those of the choices."""
    answers = _answers(text, kind, letters)
    starts = [answer.start() for answer in answers]  # looked up, since boxes that nest would be read over and over
    for begin, inside in _boxed(text):
        first = bisect_left(starts, inside.start)
        if first < len(starts) and starts[first] < inside.stop:
            value = answers[first][0] if kind == "letter" else _boxed_number(text[inside])
            return Extracted(value, "none" if value is None else "boxed", begin)
    marked = [
        (value, mark) for mark in _MARKED.finditer(text) if (value := _marked(mark[1], kind, letters)) is not None
    ]
    titles = {value for value, mark in marked if kind == "letter" and _titled(mark[1], value)}
    for value, mark in reversed(marked):
        if len(titles) < 2 or not _titled(mark[1], value):  # otherwise the reply goes through the choices
            return Extracted(value, "marked", mark.start())
    return _last_number(answers, text) if kind == "number" else _last_letter(text, letters)


def marked_number(text: str) -> str | None:
    """Return the number directly after the last `####` as it is compared; None if there is none."""
    lines = _MARKED.findall(text)
    return _marked(lines[-1], "number", "") if lines else None


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
    if kind == "number":
        return [match for match in _NUMBER.finditer(text) if match["number"]]
    return list(re.finditer(rf"(?<![A-Za-z])[{letters}](?![A-Za-z])", text))


def _plain(number: str) -> str:
    """Return a number as it is compared."""
    return re.sub(r"[$,{}\\!]", "", number).replace("−", "-")


def _boxed_number(content: str) -> str | None:
    """Return the number in a box, or the value of a fraction; None for any other calculation."""
    parts = [part for part in _EQUALS.split(content) if _answers(part, "number", "")]
    if not parts:
        return None
    if fraction := _FRACTION.fullmatch(parts[-1]):
        above, below = (Decimal(_plain(number)) for number in fraction.groups()[1:] if number)
        try:
            return str(Decimal(_plain(fraction["sign"]) + "1") * above / below)
        except DecimalException:  # division by zero, or a number of a million digits
            return None
    return None if _CALCULATION.search(parts[-1]) else _plain(_answers(parts[-1], "number", "")[-1][0])


def _marked(line: str, kind: Kind, letters: str) -> str | None:
    """Return the answer with which the text after a mark begins; None if a word does, or the number of a heading."""
    answers = _answers(line, kind, letters)
    if not answers or re.search(r"\w", line[: answers[0].start()]):
        return None
    after = line[answers[0].end() :]
    if kind == "letter":
        return None if re.match(r"\s+\w", after) else answers[0][0]  # "#### A closer look"
    if _CONTINUED.match(after):
        return _boxed_number(line)
    return None if _HEADING.match(after) else _plain(answers[0][0])


def _titled(line: str, letter: str) -> bool:
    """Return whether the text of a choice follows its letter after a mark."""
    return _HEADING.match(line.partition(letter)[2]) is not None


def _last_number(numbers: Sequence[re.Match[str]], text: str) -> Extracted:
    if not numbers:
        return Extracted(None, "none", len(text))
    return Extracted(_plain(numbers[-1][0]), "last", numbers[-1].start())


def _last_letter(text: str, letters: str) -> Extracted:
    stated = list(re.finditer(rf"(?i:answer\s*(?:is|:)\W*(?:(?:option|choice)\W+)?)([{letters}])(?![A-Za-z])", text))
    if stated:
        return Extracted(stated[-1][1], "stated", stated[-1].start())
    bracketed = list(re.finditer(rf"\(([{letters}])\)", text))
    if bracketed:
        return Extracted(bracketed[-1][1], "last", bracketed[-1].start())
    begun = re.match(rf"\W*([{letters}])(?:[.):](?!\w)|\W*\Z)", text)
    listed = re.findall(rf"(?<![A-Za-z])([{letters}])[.):]", text)
    if begun and len(set(listed)) < 2:  # otherwise the reply goes through the choices
        return Extracted(begun[1], "last", begun.start(1))
    return Extracted(None, "none", len(text))
