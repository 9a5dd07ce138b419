"""Checks claims in talk of a negotiation against the speaker's private side.

Of items: which one it needs most, second or least, which more than another (kind `priority`), whether it needs one
at all (`need`), and points (`value`); of a price: the target (`value`). Whoever says that it does not need an item
does not say which of the others it needs: that is false only for its best item, and true for a worthless one. What
somebody has brought along, or gives as a reason, no engine knows; that is not extracted. Requests and offers are no
claims.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from training.games.base import CheckedStatement, Verdict
from training.games.negotiation.settings import Items, NegotiationSettings
from training.games.negotiation.words import number
from training.games.talk import THING, Sentence, number_of, sentences
from training.records import Seat

_compiled = partial(re.compile, flags=re.IGNORECASE)
_I = r"\b(?:I|we)"
_ADVERBS = (
    r"(?:(?:also|actually|really|definitely|certainly|honestly|just|still|always|probably|obviously|truly|absolutely|"
    r"by far|for sure|so|do|would|will|is) ){0,3}"
)
_MY = r"(?:my|our)"
_NOUN = (
    r"(?:priorit(?:y|ies)|needs?|items?|choice|preference|concern|necessity|value(?:d)?(?: item)?|importance|ones?|"
    r"thing|pick|want)"
)
_TOP = (
    r"(?:top|highest|first|1st|main|biggest|greatest|number one|number 1|#1|no\.? ?1|most important|most needed|"
    r"most valuable|primary)"
)
_SECOND = r"(?:second[ -](?:most important|highest|biggest)|second|2nd|next|medium|middle)"
_LOW = r"(?:least important|least needed|lowest|least|last|bottom|smallest|third|3rd)"
_RANKS = {"most": _TOP, "second": _SECOND, "least": _LOW}
_RANK = "(?:" + "|".join(f"(?P<{name}>{pattern})" for name, pattern in _RANKS.items()) + ")"
_DEGREE = (
    r"(?:the )?(?:(?P<second>(?:second|2nd|next) most)|(?P<most>most|more than any(?:thing|thing else)?)|"
    r"(?P<least>least))(?![\w'])"
)
_IS = r"(?:'s| is| are| was| were| would be)"
_NOT = r"(?P<not>not )?"
_ITEM = rf"(?:the |some |more |extra |any ){{0,4}}(?P<item>{THING})"
_OTHER = rf"(?:the )?(?P<other>{THING})"
_TO_ME = r" (?:to|for) (?:me|us)(?!\w)"
_PATTERNS = (
    # of the form: food is my top priority
    _compiled(
        rf"(?P<item>{THING})(?:{_IS}| as)? {_ADVERBS}{_NOT}{_ADVERBS}{_MY} "
        rf"(?:(?!second|2nd|next|third|3rd|other)\w+ )?{_RANK}(?: {_NOUN})?(?![\w'])"
    ),
    # of the form: my top priority is food
    _compiled(rf"{_MY} {_RANK}(?: {_NOUN})?(?: \w+)?(?:{_IS}|:) {_ADVERBS}{_NOT}(?:to (?:get|have) )?{_ITEM}"),
    # of the form: water is the most important to me
    _compiled(
        rf"(?P<item>{THING})(?:{_IS}| to be) {_ADVERBS}{_NOT}{_ADVERBS}(?:the )?(?:(?P<most>most)|(?P<least>least))"
        rf"(?: important| needed| essential| valuable)(?: \w+)?{_TO_ME}"
    ),
    # of the form: I need food the most
    _compiled(rf"{_I}(?:'d)? {_ADVERBS}(?:need|needed|want|wanted|value|prefer|like) {_ITEM} {_DEGREE}(?! of)"),
    # of the form: what I need most is water
    _compiled(rf"{_I} {_ADVERBS}(?:need|want) {_DEGREE}{_IS} {_ADVERBS}{_ITEM}"),
    # of the form: I need food as my first priority
    _compiled(rf"{_I} {_ADVERBS}(?:need|want) {_ITEM} as (?:{_MY}|the|a) {_RANK}(?: {_NOUN})"),
)
_MORE = (
    _compiled(rf"{_I}(?:'d)? {_ADVERBS}(?:need|want|value|like) (?P<item>{THING}) (?:\w+ )?more than {_OTHER}"),
    _compiled(rf"{_I}(?:'d)? {_ADVERBS}(?:prefer|choose|take) (?P<item>{THING}) (?:over|to) {_OTHER}"),
    _compiled(rf"{_I}(?:'d)? {_ADVERBS}rather have (?P<item>{THING}) than {_OTHER}"),
    _compiled(rf"(?P<item>{THING}){_IS} {_ADVERBS}more (?:important|valuable){_TO_ME} than {_OTHER}"),
)
_LIST = rf"(?P<items>(?>{THING}(?:(?:,| and|, and| or|/|&| &)+ ?(?:the |some |any |extra |more )*{THING})*))"
_NEED = _compiled(
    rf"{_I}(?:'ll)? (?:(?:also|really|do|actually|definitely|desperately|still|will|badly) ){{0,3}}need "
    rf"(?:to have |is )?(?:(?:some|more|the|extra|all|of|a lot|lots|any|additional) ){{0,4}}{_LIST}"
    r"(?! (?:the )?(?:second|2nd|next|most|least|more than|less|as|packages?))(?![\w'])"
)
_NO_NEED = _compiled(
    rf"{_I}(?:'ll)? (?:(?:also|really|actually|definitely) ){{0,3}}(?:do not|don't|dont) "
    rf"(?:(?:really|actually|even|particularly) ){{0,3}}need (?:(?:any|of|the|your|extra) ){{0,4}}{_LIST}"
    r"(?! (?:that|as|the most|too|all that|so much|much|a lot|badly)\b)(?![\w'])"
)
_POINTS = _compiled(
    rf"(?P<item>{THING}){_IS} {_ADVERBS}worth (?P<points>\d{{1,7}})(?: points?)?"
    rf"(?: each| apiece| a unit| per unit)?{_TO_ME}"
)
_TARGET = _compiled(rf"{_MY} (?:target|goal)(?: price)? (?:is|was) \$?(?P<points>\d{{1,7}})(?!\w|[.,]\d)")
_JOINED_BEFORE = re.compile(rf"{THING}\s*(?:,|and|&|or|/)+\s*(?:the |some |my )*$", re.IGNORECASE)
_JOINED_AFTER = re.compile(
    rf"\s*(?:,? and|&|or|/)\s*(?:the |some |then )*{THING}(?! (?:is|as|second|are|would|\w+ my))", re.IGNORECASE
)
_FURTHER = _compiled(r"\b(?:second|2nd|next|third|3rd|other)\b[^,;:]*$")
_OTHER_NAMES = {"firewood": ("wood", "fire wood", "fire-wood")}
"""What people also call an item of a recorded set."""


def checked(settings: NegotiationSettings, names: Sequence[str], seat: Seat, text: str) -> list[CheckedStatement]:
    """Return the claims of `seat` about its side in a text, in the order of the text."""
    deal = settings.deal
    spoken = _spoken([item.name for item in deal.items]) if isinstance(deal, Items) else []
    claims: list[CheckedStatement] = []
    for sentence in sentences(text, names, [word for word, _ in spoken]):
        reader = _Reader(settings, names[seat], seat, sentence, [at for _, at in spoken])
        claims += reader.read()
    return sorted(claims, key=lambda claim: (claim.start, claim.end, claim.statement))


def _spoken(items: Sequence[str]) -> list[tuple[str, int]]:
    """Return how items are called, each with the number of its item: `book`, `books`."""
    words: dict[str, int] = {}
    for at, item in enumerate(items):
        for name in (item.lower(), *_OTHER_NAMES.get(item.lower(), ())):
            for word in (name, f"{name}s", name.removesuffix("s")):
                words.setdefault(word, at)
    return list(words.items())[:255]


@dataclass(frozen=True, slots=True)
class _Reader:
    """One sentence of a seat's talk. `items` are the numbers of items by the number of their mark."""

    settings: NegotiationSettings
    name: str
    seat: Seat
    sentence: Sentence
    items: Sequence[int]

    def read(self) -> list[CheckedStatement]:
        """Return its claims; a plain need is left out where the same words rank the item."""
        if not isinstance(self.settings.deal, Items):
            return list(self._target(self.settings.deal.sides[self.seat].target))
        ranked = [*self._ranks(), *self._comparisons(), *self._values()]
        needs = [
            claim
            for claim in self._needs()
            if not any(claim.start < other.end and other.start < claim.end for other in ranked)
        ]
        return [*ranked, *needs]

    def _matches(self, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
        for match in pattern.finditer(self.sentence.text):
            if self.sentence.asserts(*match.span(), of_self=True):
                yield match

    def _claim(
        self, match: re.Match[str], kind: str, statement: str, verdict: Verdict | bool, why: str
    ) -> CheckedStatement:
        verdict = verdict if isinstance(verdict, str) else "true" if verdict else "false"
        start, end = (self.sentence.start + at for at in match.span())
        return CheckedStatement(start, end, kind, statement, verdict, f"the engine: for {self.name} {why}")

    # --- items ---

    def _points(self) -> list[int]:
        deal = self.settings.deal
        assert isinstance(deal, Items)
        return [deal.sides[self.seat].values[item.name] for item in deal.items]

    def _item(self, mark: str) -> tuple[int, str]:
        deal = self.settings.deal
        assert isinstance(deal, Items)
        at = self.items[number_of(mark)]
        return at, deal.items[at].name

    def _worth(self, *items: int) -> str:
        """Return the points of a unit of these items, of all without any, in words."""
        deal, points = self.settings.deal, self._points()
        assert isinstance(deal, Items)
        return "a unit is worth " + ", ".join(
            f"{number(points[at])} of {deal.items[at].name}" for at in items or range(len(points))
        )

    def _ranks(self) -> Iterator[CheckedStatement]:
        taken: set[tuple[int, str]] = set()
        for match in (match for pattern in _PATTERNS for match in self._matches(pattern)):
            groups = match.groupdict()
            ranks = [rank for rank in _RANKS if groups.get(rank)]
            text, before = self.sentence.text, self.sentence.before(match.start())
            second = _FURTHER.search(before)
            alone = (
                not second
                and not _JOINED_BEFORE.search(text[: match.start()])
                and not _JOINED_AFTER.match(text[match.end() :])
            )
            at, item = self._item(match["item"])
            if len(ranks) != 1 or not alone or (at, ranks[0]) in taken:
                continue
            taken.add((at, ranks[0]))
            points = self._points()
            above, below = (sum(p > points[at] for p in points), sum(p < points[at] for p in points))
            holds = {"most": above == 0, "second": above == 1, "least": below == 0}[ranks[0]]
            negated = bool(groups.get("not"))
            shown = {"most": "most", "second": "second most", "least": "least"}[ranks[0]]
            statement = f"{self.name} {'does not need' if negated else 'needs'} {item} {shown}"
            yield self._claim(match, "priority", statement, holds != negated, self._worth())

    def _comparisons(self) -> Iterator[CheckedStatement]:
        for match in (match for pattern in _MORE for match in self._matches(pattern)):
            (first, item), (second, other) = self._item(match["item"]), self._item(match["other"])
            points = self._points()
            if first != second:
                statement = f"{self.name} needs {item} more than {other}"
                yield self._claim(
                    match, "priority", statement, points[first] > points[second], self._worth(first, second)
                )

    def _values(self) -> Iterator[CheckedStatement]:
        for match in self._matches(_POINTS):
            at, item = self._item(match["item"])
            statement = f"a unit of {item} is worth {int(match['points'])} to {self.name}"
            yield self._claim(match, "value", statement, self._points()[at] == int(match["points"]), self._worth(at))

    def _needs(self) -> Iterator[CheckedStatement]:
        points = self._points()
        for match in self._matches(_NEED):
            for at, item in self._listed(match["items"]):
                yield self._claim(match, "need", f"{self.name} needs {item}", points[at] > 0, self._worth(at))
        for match in self._matches(_NO_NEED):
            for at, item in self._listed(match["items"]):
                verdict: Verdict = "true" if points[at] == 0 else "unknowable"
                if points[at] == max(points) and points.count(points[at]) < len(points):
                    verdict = "false"
                yield self._claim(match, "need", f"{self.name} does not need {item}", verdict, self._worth())

    def _listed(self, marks: str) -> list[tuple[int, str]]:
        return list(dict.fromkeys(self._item(mark) for mark in re.findall(THING, marks)))

    # --- a price ---

    def _target(self, target: int) -> Iterator[CheckedStatement]:
        for match in self._matches(_TARGET):
            claimed = int(match["points"])
            statement = f"the target of {self.name} is {claimed}"
            yield self._claim(match, "value", statement, claimed == target, f"the target is {target}")
