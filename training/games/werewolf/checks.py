"""Checks claims in speeches of Werewolf: roles, results of inspections, other deeds of the night, and votes.

A statement about a role is read word by word: a witch who says "I am a villager" is not right. `town`, `innocent` and
the like mean "not a werewolf". Whoever says "I inspected Ben, he is a wolf" claims the result and Ben's role.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from training.games.base import CheckedStatement
from training.games.prose import listed
from training.games.talk import BEGIN, NAME, NEAR, Sentence, number_of, sentences
from training.games.werewolf.claims import CLAIM, ROLE_WORD
from training.games.werewolf.village import Deed, Village
from training.records import Seat

_compiled = partial(re.compile, flags=re.IGNORECASE)
_ADVERBS = (
    r"(?:(?:definitely|really|actually|indeed|in fact|just|only|simply|certainly|clearly|truly|also|obviously|now|"
    r"still|100%|in) ){0,3}"
)
_NOT = r"(?P<not>not |no )?"
_ARTICLE = r"(?:(?:a|an|the|one of the|your|part of the|on the|our) )?"
_KINDS = (
    r"(?:(?:plain|vanilla|simple|regular|normal|ordinary|confirmed|fellow|true|real|actual|last|remaining|"
    r"village(?:'s)?) )?"
)
_WOLF = r"(?:were)?wol(?:f|ves)(?:'s?)?(?: team| side|-side|pack)?|red|evil"
_GOOD = r"town(?:ie|sperson)?|innocent|good guy|village(?:rs?)?(?:'s|'|s')? (?:side|team)|side of the village(?:rs)?"
_WHAT = rf"(?P<what>{ROLE_WORD}s?\b|{_WOLF}|{_GOOD})"
_END = (
    r"(?![\w'-]|\s+(?:target|candidate|suspect|partner|read|victim|hunter|claim|pretending|move|team|read|play|tactic|"
    r"behaviou?r|who (?:might|may|could)|lean|flag|herring|or\b)|/)"
)
_BEING = rf"{_ADVERBS}{_NOT}{_ADVERBS}{_ARTICLE}{_KINDS}{_WHAT}{_END}"
_SELF = _compiled(rf"\bI(?:'m| am| was) {_BEING}")
_OTHER = _compiled(rf"(?P<name>{NAME})(?:'s(?! red)| is| was) {_BEING}")
_BOTH = _compiled(rf"(?P<one>{NAME}) and (?P<two>{NAME}) (?:are|were) (?:both )?{_BEING}")
_CALLING = _compiled(
    rf"(?:\bI(?:'m| am)? (?:now |hard[- ]|officially )?claim(?:ing)?|{BEGIN}(?:hard[- ]|full )?claim(?:ing)?)"
    rf"(?: now)?:?(?: to be| as)?(?: the| a)? (?P<what>{ROLE_WORD}){_END}"
)
_HAVE = r"(?:have |'ve |had |already |also |just |then |personally |secretly ){0,3}"
_LOOKED = (
    r"(?:(?P<firm>inspected|investigated|peeked(?: at)?|scanned|examined)|checked(?: on| out)?|looked (?:at|into)|"
    r"(?P<able>decided to|chose to|was able to|managed to) inspect|"
    r"used my (?:\w+ )?(?:ability|power|role|inspection|vision) (?:to inspect|on))"
)
_INSPECTION = _compiled(
    rf"\bI {_HAVE}{_LOOKED} (?P<name>{NAME})(?!'s|\w)(?:(?P<gap>[^\ue000-\ue0df]{{0,70}}?)"
    rf"(?:\b(?:is|was|are|as|be|found|confirmed|side of|back|got)\b|'s|=|:|→|->|-|—|–)\s*"
    rf"{_ADVERBS}{_NOT}{_ADVERBS}{_ARTICLE}{_KINDS}{_WHAT}{_END})?"
)
_UNSURE = _compiled(
    r"\b(?:think|suspect|believe|might|may|could|probably|likely|possibly|perhaps|maybe|if|whether|or|but|seems?)\b"
)
_DEEDS = {
    "save": "saved",
    "poison": "poisoned",
    "protect": "protected",
    "guard": "guarded",
    "shoot": "shot",
    "inspect": "inspected",
    "vote": "voted for",
}
_BARE = {
    "vote": "vote for",
    "save": "save",
    "poison": "poison",
    "protect": "protect",
    "guard": "guard",
    "inspect": "inspect",
}
_PAST = {
    **dict.fromkeys(("saved", "healed"), ("save",)),
    **dict.fromkeys(("protected", "guarded", "protect", "guard"), ("protect", "guard", "save")),
    "poisoned": ("poison",),
    "shot": ("shoot",),
    **dict.fromkeys(("save", "heal", "antidote", "healing potion", "save potion"), ("save",)),
    **dict.fromkeys(("poison", "poison potion"), ("poison",)),
    "inspect": ("inspect",),
    "inspected": ("inspect",),
}
_DID = _compiled(
    rf"\bI {_HAVE}(?:(?P<verb>saved|healed|protected|guarded|poisoned|shot)|"
    r"(?:decided to|chose to|was able to|managed to) (?P<able>save|heal|poison|protect|guard)|"
    rf"used (?:my|the) (?P<potion>save potion|save|heal|antidote|healing potion|poison potion|poison)"
    rf"(?: potion)?(?: last night)? (?:on|to save|to heal|to protect|to poison)) (?P<name>{NAME}|myself)(?!'s|\w)"
)
_UNDONE = _compiled(
    rf"\bI (?:did not|didn't|never) (?P<verb>inspect|save|poison|vote(?: for)?|protect|guard) "
    rf"(?P<name>{NAME}|anyone|anybody)(?!'s|\w| (?:just |only |simply )?because)"
)
_VOTED = _compiled(
    rf"(?:\bI|(?<!and )(?<!except )(?<!besides )(?<!only )(?<!or )(?P<by>{NAME})) "
    rf"{_HAVE}voted(?: for| against| to \w+| out)? "
    rf"(?P<name>{NAME}|me\b|myself\b)(?!'s|\w)(?! out)"
)
_WHOLE = _compiled(_END)
_DAY = _compiled(r"\b(?:n|d|night |day )(\d)\b")


def checked(v: Village, seat: Seat, text: str) -> list[CheckedStatement]:
    """Return the claims of `seat` in a speech, checked against the village's state now."""
    statements: dict[tuple[int, int, str, str], CheckedStatement] = {}
    for sentence in sentences(text, v.names):
        for claim in _Reader(v, seat, sentence).read():
            statements.setdefault((claim.start, claim.end, claim.kind, claim.statement), claim)
    return sorted(statements.values(), key=lambda claim: (claim.start, claim.end, claim.kind, claim.statement))


@dataclass(frozen=True, slots=True)
class _Reader:
    """One sentence of a seat's speech."""

    v: Village
    seat: Seat
    sentence: Sentence

    def read(self) -> Iterator[CheckedStatement]:
        """Yield its claims."""
        yield from self._of_self()
        yield from self._of_others()
        yield from self._inspections()
        yield from self._deeds()
        yield from self._votes()

    def _matches(self, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
        return (match for match in pattern.finditer(self.sentence.text) if self.sentence.asserts(*match.span()))

    def _claim(self, span: tuple[int, int], kind: str, statement: str, why: str, *, holds: bool) -> CheckedStatement:
        start, end = (self.sentence.start + at for at in span)
        return CheckedStatement(start, end, kind, statement, "true" if holds else "false", why)

    # --- roles ---

    def _role(self, span: tuple[int, int], kind: str, who: Seat, what: str, *, negated: bool) -> CheckedStatement:
        role, meant = self.v.roles[who], _meant(what)
        holds = (role == "werewolf") == (meant == "werewolf") if meant in ("werewolf", "innocent") else role == meant
        negated = negated != (meant == "innocent")
        shown = "werewolf" if meant == "innocent" else meant
        statement = f"{self.v.names[who]} is {'not ' if negated else ''}{_the(shown)}"
        if meant != "innocent":
            holds = holds != negated
        elif not negated:
            holds = not holds
        return self._claim(span, kind, statement, f"the engine: {self.v.names[who]} is {_the(role)}", holds=holds)

    def _of_self(self) -> Iterator[CheckedStatement]:
        starts: set[int] = set()
        for match in [*self._matches(_SELF), *self._matches(_CALLING)]:
            starts.add(match.start())
            negated = bool(match.groupdict().get("not"))
            yield self._role(match.span(), "role", self.seat, match["what"], negated=negated)
        for match in CLAIM.finditer(self.sentence.text):
            role = match.group(1) or match.group(2)
            whole = _WHOLE.match(self.sentence.text, match.end())
            if match.start() not in starts and whole and self.sentence.asserts(*match.span()):
                yield self._role(match.span(), "role", self.seat, role, negated=False)

    def _of_others(self) -> Iterator[CheckedStatement]:
        for match in self._matches(_OTHER):
            who = number_of(match["name"])
            kind = "role" if who == self.seat else "other's role"
            yield self._role(match.span(), kind, who, match["what"], negated=bool(match["not"]))
        for match in self._matches(_BOTH):
            for group in ("one", "two"):
                who = number_of(match[group])
                yield self._role(match.span(), "other's role", who, match["what"], negated=bool(match["not"]))

    # --- what was done ---

    def _inspections(self) -> Iterator[CheckedStatement]:
        v = self.v
        for match in self._matches(_INSPECTION):
            who, what = number_of(match["name"]), match["what"]
            if what and not _UNSURE.search(match["gap"]):
                wolf = (_meant(what) == "werewolf") != bool(match["not"])
                looked = v.learned[self.seat].get(who) is not None
                holds = looked and wolf == (v.roles[who] == "werewolf")
                saw = f"{v.names[self.seat]} inspected {v.names[who]} and saw {'a' if wolf else 'no'} werewolf"
                yield self._claim(match.span(), "result", saw, self._seen(who), holds=holds)
                if who != self.seat:
                    yield self._role(match.span(), "other's role", who, what, negated=bool(match["not"]))
            elif match["firm"] or match["able"]:
                end = match.end("name")
                yield self._deed((match.start(), end), self.seat, ("inspect",), who)

    def _seen(self, who: Seat) -> str:
        v = self.v
        if who not in v.learned[self.seat]:
            return f"the engine: {v.names[self.seat]} did not inspect {v.names[who]}"
        finding = "a werewolf" if v.roles[who] == "werewolf" else "not a werewolf"
        return f"the engine: {v.names[self.seat]} saw that {v.names[who]} is {finding}"

    def _deeds(self) -> Iterator[CheckedStatement]:
        for match in self._matches(_DID):
            who = self.seat if match["name"].lower() == "myself" else number_of(match["name"])
            actions = _PAST[(match["verb"] or match["able"] or match["potion"]).lower()]
            yield self._deed(match.span(), self.seat, actions, who)
        for match in self._matches(_UNDONE):
            verb = match["verb"].lower().split()[0]
            anybody = match["name"].lower().startswith("any")
            yield self._deed(
                match.span(), self.seat, (verb,), None if anybody else number_of(match["name"]), negated=True
            )

    def _votes(self) -> Iterator[CheckedStatement]:
        for match in self._matches(_VOTED):
            by = number_of(match["by"]) if match["by"] else self.seat
            target = match["name"].lower()
            yield self._deed(
                match.span(), by, ("vote",), self.seat if target in ("me", "myself") else number_of(target)
            )

    def _deed(
        self, span: tuple[int, int], by: Seat, actions: tuple[str, ...], target: Seat | None, *, negated: bool = False
    ) -> CheckedStatement:
        """Return the claim that `by` did one of these actions to `target` (None: to anybody), or did not."""
        v, vote = self.v, actions == ("vote",)
        day = self._when(span, vote=vote)
        past = [deed for deed in v.deeds if deed.seat == by and deed.action in actions and day in (None, deed.day)]
        did = any(target in (None, deed.target) for deed in past)
        verb = _DEEDS[actions[0]]
        whom = "anybody" if target is None else v.names[target]
        time = "" if day is None else f" on day {day}" if vote else f" in night {day}"
        statement = f"{v.names[by]} {f'did not {_BARE[actions[0]]}' if negated else verb} {whom}{time}"
        why = f"the engine: {v.names[by]} {verb} {_whom(v, past)}{time}"
        return self._claim(span, "vote" if vote else "deed", statement, why, holds=did != negated)

    def _when(self, span: tuple[int, int], *, vote: bool) -> int | None:
        """Return the day that the sentence names, or the day after the night; None where it names none, or several."""
        start, end = span
        text = f"{self.sentence.before(start)}{self.sentence.text[start : end + NEAR]}".lower()
        days = {int(number) for number in _DAY.findall(text)}
        if not vote and "last night" in text:
            days.add(self.v.day)
        if vote and re.search(r"\byesterday|\blast (?:round|day|vote)\b", text):
            days.add(self.v.day - 1)
        return days.pop() if len(days) == 1 else None


def _whom(v: Village, deeds: list[Deed]) -> str:
    return listed(dict.fromkeys(v.names[deed.target] for deed in deeds)) if deeds else "nobody"


def _meant(what: str) -> str:
    """Return the role that is meant, or `innocent`."""
    word = what.lower()
    if re.match(_WOLF, word, re.IGNORECASE) or word.startswith("werewol"):
        return "werewolf"
    return "innocent" if re.match(_GOOD, word, re.IGNORECASE) else word.removesuffix("s")


def _the(role: str) -> str:
    return f"{'a' if role in ('villager', 'werewolf') else 'the'} {role}"
