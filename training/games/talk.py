"""Table talk as the rules of a game read it: names as marks, sentences, and whether a statement is asserted.

A statement is not asserted in a question, a quotation, a condition, a report of what others say, or an opinion. The
rules prefer to miss a claim over inventing one. Marked texts have the length of the text, so that offsets stay valid.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from training.records import Seat

NAME = "[\ue000-\ue0df]\ue0ff*+"
"""Pattern of a seat's name in a marked text."""
THING = "[\ue100-\ue1ff]\ue0ff*+"
"""Pattern of another marked word, such as an item."""
NEAR = 250
"""Characters of a sentence that are read before and after a statement."""
BEGIN = "^[^\\w\ue000-\ue1ff]*"
"""Pattern of the beginning of a sentence, up to its first word or name."""
_REST = "\ue0ff"
_PRIVATE = re.compile("[\ue000-\ue1ff]")
_QUOTED = re.compile(r"“[^“”]*”|\"[^\"]*\"|‘[^‘]*?[’'](?!\w)|(?<!\w)'(?:[^']|(?<=\w)'(?=\w))+'(?!\w)")
_WHOLE = re.compile(r"[\"“][^\"“”]*[\"”]")
_END = re.compile(
    r"(?<![.!?…])[.!?…]++(?=[\s\"”'’)\]*]|$)|[.](?=[A-Z])|\n+|"
    r",\s*(?=(?:and|but|so|or)?\s*(?:what|how|who|which|do|does|can|could|would|will|are|is|why|shall|may|should)\b)",
    re.IGNORECASE,
)
_QUESTION = re.compile(
    r"[^\w\ue000-\ue1ff]*(?:(?:and|but|so|or|ok|okay|well|then)[^\w\ue000-\ue1ff]+)*"
    r"(?:do|does|did|are|is|am|can|could|would|will|should|shall|may|which|why|how|who|when|where|have|has|"
    r"what(?! i ))\b",
    re.IGNORECASE,
)
_REPORTS = re.compile(
    r"\b(?:if|unless|whether|until|either|sa(?:y|ys|id|ying)|claim\w*|think\w*|thought|believ\w*|suspect\w*|guess\w*|"
    r"suppos\w*|assum\w*|feel\w*|felt|bet|accus\w*|imagin\w*|doubt\w*|wonder\w*|pretend\w*|according|convinced|"
    r"impl(?:y|ies|ied)|means?|meant|theory|scenario|told|tells?|heard|hear|call(?:s|ed|ing)|fram(?:e|es|ed|ing)|"
    r"narrative|idea|ask\w*|let's|as though|argu\w+|insist\w*|conclu\w+|deduc\w+|(?<!I )(?<!I can )confirm\w*|"
    r"from the|suggest\w*|evidence)\b",
    re.IGNORECASE,
)
"""Words after which a sentence states what somebody thinks or says, or a condition."""
_HEDGES = re.compile(
    r"\b(?:may ?be|perhaps|probabl\w+|possibl\w+|possibility|might|may|could|would|should|must|seem\w*|appear\w*|"
    r"looks?|likely|sure|hope\w*|wish\w*|potential\w*|like|when|once|case|chance|agree\w*|"
    r"good to know|suspicions?|observations?|world|unlikely|proof|prove\w*|want\w*|try\w*|read|"
    r"lean\w*)\b",
    re.IGNORECASE,
)
"""Words that weaken what follows in the same part of a sentence."""
_DENIED = re.compile(r"\b(?:not|never|no|nobody|without|cannot)\b|n't\b|\bdont\b", re.IGNORECASE)
_PART = re.compile(r"[,;:—–]|\s-\s")
_CLAUSE = re.compile(r"[,;:—–]|\s-\s|\b(?:and|but|because|so)\b", re.IGNORECASE)
_AFTER = re.compile(
    r"\b(?:if|unless|or)\b|\bI (?:think|guess|believe|suspect|bet|feel|suppose)\b|"
    r"\b(?:maybe|perhaps|probably|imo|imho|supposedly|allegedly)\b",
    re.IGNORECASE,
)
_CLAIMING = re.compile(
    r"\b(?:I'm|I am|I) (?:now |hard[- ]|officially )?claim(?:ing)?\b|" + BEGIN + r"(?:\w+ )?claim(?:ing)?\b",
    re.IGNORECASE,
)
_ANNOUNCED = re.compile(
    r"\bI(?:'d like to| would like to| want to| wanted to| need to| have to| must| should| can| will|'ll)? "
    r"(?:clarify|assure|inform|announce|reveal|state|note|tell|confirm|emphasi[sz]e|point out|stress|mention|add|say|"
    r"share)"
    r"(?: (?:you|all|everyone|everybody|one point|now))*"
    r"(?: that)?\b",
    re.IGNORECASE,
)
_SELF = re.compile(
    r"\b(?:I|we)(?:'d| would| do| also| really| honestly)* (?:think|guess|believe|feel|suppose|say|mean)\b",
    re.IGNORECASE,
)


def marked(text: str, words: Sequence[str], first: str = "\ue000") -> str:
    """Return a text of the same length in which word number i is `first` + i, padded; case does not matter."""
    if not words:
        return text
    order = sorted(range(len(words)), key=lambda at: -len(words[at]))
    pattern = "|".join(f"({re.escape(words[at])})" for at in order)

    def mark(match: re.Match[str]) -> str:
        number = order[(match.lastindex or 1) - 1]
        return chr(ord(first) + number) + _REST * (len(match[0]) - 1)

    return re.sub(rf"(?<![\w'])(?:{pattern})(?!\w)", mark, text, flags=re.IGNORECASE)


def number_of(mark: str) -> Seat:
    """Return the number of a marked word."""
    return ord(mark[0]) & 0xFF


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of a speech: its place in the speech, and its marked text."""

    start: int
    text: str

    def before(self, start: int) -> str:
        """Return the words of the sentence before `start`, of a long sentence the last ones."""
        return self.text[max(0, start - NEAR) : start]

    def asserts(self, start: int, end: int, *, of_self: bool = False) -> bool:
        """Return whether the words from `start` to `end` of the sentence are asserted.

        `of_self`: an `I think` before it does not matter, since speakers know what they speak of.
        """
        before, after = _ANNOUNCED.sub(_blank, _CLAIMING.sub(_blank, self.before(start))), self.text[end : end + NEAR]
        if of_self:
            before = _SELF.sub(_blank, before)
        if _REPORTS.search(before) or _HEDGES.search(_PART.split(before)[-1]):
            return False
        if _DENIED.search(_CLAUSE.split(before)[-1]):
            return False
        tail = _CLAUSE.split(after, maxsplit=1)[0]
        return not _AFTER.search(tail) and not re.match(r"\W*I (?:think|guess|believe|suspect)\b", after, re.IGNORECASE)


def sentences(text: str, names: Sequence[str], things: Sequence[str] = ()) -> Iterator[Sentence]:
    """Yield the sentences that are no questions, with names and things marked and quotations blanked out."""
    plain = _PRIVATE.sub(" ", text)
    stripped = plain.strip()
    if _WHOLE.fullmatch(stripped):
        plain = re.sub(r"[\"“”]", " ", plain)  # the whole speech is quoted, which quotes nobody
    plain = _QUOTED.sub(lambda match: "\ue0fe" * len(match[0]), plain).replace("’", "'").replace("‘", "'")
    plain = marked(marked(plain, names), things, "\ue100")
    start = 0
    for end in [*_END.finditer(plain), None]:
        sentence = plain[start : end.start() if end else len(plain)]
        if sentence.strip() and not (end and "?" in end[0]) and not _QUESTION.match(sentence):
            yield Sentence(start, sentence)
        start = end.end() if end else len(plain)


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])
