"""Checks claims in the meetings of Among Us: roles, where somebody was and with whom, and what somebody saw.

A place or a sighting without a round holds if it was so in some round since the meeting before this one; where it is
said to have been "shortly before", no rule tells how long ago that is. Who is on the way between
two rooms is in none. Company is a claim of its own: "I was in the Office with Ben" states a place and who was there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from training.games.among_us.rooms import ROOMS, room_name
from training.games.among_us.settings import Room
from training.games.among_us.world import Moment, World
from training.games.base import CheckedStatement, Verdict
from training.games.prose import listed
from training.games.talk import BEGIN, NAME, Sentence, number_of, sentences
from training.records import Seat

_compiled = partial(re.compile, flags=re.IGNORECASE)
_ADVERBS = r"(?:(?:definitely|really|actually|indeed|only|just|certainly|clearly|truly|also|still) ){0,3}"
_BEING = (
    rf"{_ADVERBS}(?P<not>not )?{_ADVERBS}(?:(?:a|an|the|one of the|your) )?"
    r"(?:(?:plain|simple|loyal|real|true|fellow) )?"
    r"(?P<what>impost[eo]r|killer|crew ?mate|crew ?member|crew|innocent)(?![\w'-]|,? or\b)"
)
_SELF = _compiled(rf"\bI(?:'m| am) {_BEING}")
_OTHER = _compiled(rf"(?P<name>{NAME})(?:'s| is| was) {_BEING}")
_IT_IS = _compiled(rf"{BEGIN}It(?:'s| is| was) (?P<name>{NAME})(?!'s|\w)")
_ROOM = rf"(?:(?:the )?(?:room )?\((?P<x>\d), ?(?P<y>\d)\)|(?:the )?(?P<room>{'|'.join(ROOMS)})(?!\w))"
_ROUND = r"(?:,? (?:in|at|on|during) round (?P<round>\d{1,4}))?(?!\w)"
_ROUND_BEFORE = r"(?:(?:in|at|on|during) round (?P<before>\d{1,4}),? )?"
_SOMEBODY = rf"(?:me\b|{NAME})"
_WITH = rf"(?: (?:together )?with (?P<with>{_SOMEBODY}(?:(?:, and|,| and) {_SOMEBODY})*)| (?P<alone>alone|by myself))?"
_LATE = _ROUND.replace("round>", "late>")
_WAS = _compiled(
    rf"{_ROUND_BEFORE}(?:\b(?P<self>I)|(?P<name>{NAME}))(?:'s| was| am| is| have been| stayed| had been)"
    rf" {_ADVERBS}(?P<not>not )?(?P<early>alone )?(?:in|at|inside) {_ROOM}{_ROUND}{_WITH}{_LATE}"
)
_WAS_WITH = _compiled(
    rf"{_ROUND_BEFORE}(?:\b(?P<self>I)|(?P<name>{NAME})) was {_ADVERBS}(?:together )?with (?P<with>me\b|{NAME})"
    rf"(?: (?:in|at) {_ROOM})?{_ROUND}"
)
_SAW_KILL = _compiled(
    rf"\bI saw (?P<name>{NAME}) (?:kill|killing|murder|stab) (?P<victim>{NAME})(?:,? (?:in|at) {_ROOM})?{_ROUND}"
)
_SAW = _compiled(
    rf"\bI saw (?P<name>{NAME}) (?:(?P<leave>leave|leaving)|(?P<come>enter|entering|come to|come into)|(?P<in>in|at)) "
    rf"{_ROOM}{_ROUND}"
)
_VAGUE = _compiled(r",? (?:shortly|just|right|moments|a moment) (?:before|ago)\b|,? (?:recently|just now)\b")
_BY_NAME = {name.lower(): room for name, room in ROOMS.items()}


def checked(world: World, names: Sequence[str], seat: Seat, text: str) -> list[CheckedStatement]:
    """Return the claims of `seat` in a text, in the order of the text, by what happened until now."""
    claims = [claim for sentence in sentences(text, names) for claim in _Reader(world, names, seat, sentence).read()]
    return sorted(claims, key=lambda claim: (claim.start, claim.end, claim.kind, claim.statement))


@dataclass(frozen=True, slots=True)
class _Reader:
    """One sentence of a seat's message."""

    world: World
    names: Sequence[str]
    seat: Seat
    sentence: Sentence

    def read(self) -> Iterator[CheckedStatement]:
        """Yield its claims."""
        yield from self._roles()
        yield from self._places()
        yield from self._kills()
        yield from self._sightings()

    def _matches(self, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
        return (match for match in pattern.finditer(self.sentence.text) if self.sentence.asserts(*match.span()))

    def _claim(self, match: re.Match[str], kind: str, statement: str, why: str, *, holds: bool) -> CheckedStatement:
        start, end = (self.sentence.start + at for at in match.span())
        verdict: Verdict = "true" if holds else "false"
        if holds and _VAGUE.match(self.sentence.text, match.end()):
            verdict = "unknowable"  # it was so once, but no rule tells how long ago `recently` is
        return CheckedStatement(start, end, kind, statement, verdict, f"the engine: {why}")

    # --- roles ---

    def _roles(self) -> Iterator[CheckedStatement]:
        for pattern in (_SELF, _OTHER, _IT_IS):
            for match in self._matches(pattern):
                groups = match.groupdict()
                who = number_of(groups["name"]) if groups.get("name") else self.seat
                imposter = re.match("impost|killer", groups.get("what") or "imposter", re.IGNORECASE) is not None
                said, role = imposter != bool(groups.get("not")), who == self.world.imposter
                statement = f"{self.names[who]} is {'the' if said else 'not the'} imposter"
                why = f"{self.names[who]} is {'the imposter' if role else 'a crewmate'}"
                kind = "role" if who == self.seat else "other's role"
                yield self._claim(match, kind, statement, why, holds=said == role)

    # --- places ---

    def _places(self) -> Iterator[CheckedStatement]:
        taken: list[tuple[int, int]] = []
        for match in [*self._matches(_WAS), *self._matches(_WAS_WITH)]:
            groups = match.groupdict()
            if any(a < match.end() and match.start() < b for a, b in taken):
                continue
            taken.append(match.span())
            who = self.seat if groups["self"] else number_of(groups["name"])
            room, round_ = self._room(match), _round(groups)
            moments = self._moments(round_)
            there = [moment for moment in moments if room in (None, moment.rooms.get(who)) and who in moment.rooms]
            when = "" if round_ is None else f" in round {round_}"
            where = "" if room is None else f" in the {room_name(room)}"
            if room is not None:
                negated = bool(groups.get("not"))
                statement = f"{self.names[who]} was {'not ' if negated else ''}{where.strip()}{when}"
                yield self._claim(
                    match, "place", statement, self._way(who, moments) + when, holds=bool(there) != negated
                )
                if negated:
                    continue
            yield from self._company(match, who, there, f"{where}{when}")

    def _company(self, match: re.Match[str], who: Seat, there: list[Moment], place: str) -> Iterator[CheckedStatement]:
        """Yield the claim about who was with `who` at one of the moments `there`."""
        groups, name = match.groupdict(), self.names[who]
        others = [_beside(moment, who) for moment in there]
        seen = listed(dict.fromkeys(self.names[other] for beside in others for other in beside)) if any(others) else ""
        why = f"{name} was with {seen or 'nobody'}{place}" if there else f"{name} was not{place or ' anywhere'}"
        if groups.get("alone") or groups.get("early"):
            holds = any(not beside for beside in others)
            yield self._claim(match, "company", f"{name} was alone{place}", why, holds=holds)
        elif groups["with"]:
            words = re.findall(rf"me\b|{NAME}", groups["with"], re.IGNORECASE)
            company = list(dict.fromkeys(self.seat if word.lower() == "me" else number_of(word) for word in words))
            holds = any(set(company) <= set(beside) for beside in others)
            named = listed(self.names[other] for other in company)
            yield self._claim(match, "company", f"{name} was with {named}{place}", why, holds=holds)

    def _room(self, match: re.Match[str]) -> Room | None:
        """Return the room that a match names; None where it names none, or one beyond the ship."""
        if match["room"]:
            return _BY_NAME[match["room"].lower()]
        return (int(match["x"]), int(match["y"])) if match["x"] and max(int(match["x"]), int(match["y"])) < 8 else None

    def _since(self) -> tuple[int, int]:
        """Return the range in `World.past` from the meeting before this one, or the start, until this one."""
        meetings = [at for at, moment in enumerate(self.world.past) if moment.meeting]
        end = meetings[-1] if meetings else len(self.world.past)
        return (meetings[-2] if len(meetings) > 1 else 0), end

    def _moments(self, round_: int | None) -> list[Moment]:
        if round_ is not None:
            return [moment for moment in self.world.past if moment.round == round_]
        first, end = self._since()
        return list(self.world.past[first:end])

    def _way(self, who: Seat, moments: Sequence[Moment]) -> str:
        rooms = dict.fromkeys(room_name(moment.rooms[who]) for moment in moments if who in moment.rooms)
        return f"{self.names[who]} was in {listed(f'the {room}' for room in rooms) if rooms else 'no room'}"

    # --- sightings ---

    def _kills(self) -> Iterator[CheckedStatement]:
        for match in self._matches(_SAW_KILL):
            who, victim = number_of(match["name"]), number_of(match["victim"])
            room, round_ = self._room(match), _round(match.groupdict())
            kills = [(at, event) for at, event in self.world.events if event.victim == victim]
            holds = any(
                event.who == who
                and self.seat in event.witnesses
                and room in (None, event.room)
                and round_ in (None, at)
                for at, event in kills
            )
            place = "" if room is None else f" in the {room_name(room)}"
            when = "" if round_ is None else f" in round {round_}"
            why = f"{self.names[victim]} was not killed"
            for at, event in kills:
                witnesses = (
                    listed(self.names[seat] for seat in sorted(event.witnesses)) if event.witnesses else "nobody"
                )
                why = (
                    f"{self.names[event.who]} killed {self.names[victim]} in the {room_name(event.room)} "
                    f"in round {at}, and {witnesses} saw it"
                )
            me = self.names[self.seat]
            statement = f"{me} saw {self.names[who]} kill {self.names[victim]}{place}{when}"
            yield self._claim(match, "sighting", statement, why, holds=holds)

    def _sightings(self) -> Iterator[CheckedStatement]:
        for match in self._matches(_SAW):
            who, room, round_ = number_of(match["name"]), self._room(match), _round(match.groupdict())
            if room is None:
                continue
            me, name, where = self.names[self.seat], self.names[who], f"the {room_name(room)}"
            when = "" if round_ is None else f" in round {round_}"
            if match["in"]:
                moments = self._moments(round_)
                holds = any(moment.rooms.get(who) == room == moment.rooms.get(self.seat) for moment in moments)
                statement, why = f"{me} saw {name} in {where}{when}", self._way(who, moments) + when
            else:
                deed = "leave" if match["leave"] else "enter"
                rounds = self._seen(who, room, "leaves" if match["leave"] else "comes")
                holds = bool(rounds) if round_ is None else round_ in rounds
                statement = f"{me} saw {name} {deed} {where}{when}"
                why = f"{me} saw {name} {deed} {where} in {_rounds(rounds)}"
            yield self._claim(match, "sighting", statement, why, holds=holds)

    def _seen(self, who: Seat, room: Room, kind: str) -> list[int]:
        """Return the rounds since the meeting before this one in which the speaker saw `who` leave, or enter."""
        first = self.world.past[self._since()[0]].round
        return [
            at
            for at, event in self.world.events
            if at >= first and (event.kind, event.who, event.room) == (kind, who, room) and self.seat in event.witnesses
        ]


def _beside(moment: Moment, who: Seat) -> list[Seat]:
    return [seat for seat, room in moment.rooms.items() if seat != who and room == moment.rooms[who]]


def _rounds(rounds: Sequence[int]) -> str:
    return f"round {listed(map(str, rounds))}" if rounds else "no round"


def _round(groups: dict[str, str | None]) -> int | None:
    for name in ("before", "round", "late"):
        if number := groups.get(name):
            return int(number)
    return None
