"""A Werewolf script's notes, parsed from its observation alone.

Speeches are free text by scripts, models and people; wordings that the patterns do not match are missed.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from typing import cast, get_args

from training.games.werewolf import Role
from training.games.werewolf.claims import claimed
from training.records import Message, Observation, Seat

_ROLE = re.compile(r"You are (?:a|the) (\w+)\.")
_ROLES = "|".join(get_args(Role))
_INNOCENT = r"not a (?:were)?wolf|no (?:were)?wolf|innocent|good|clean|a villager"
_HEDGED = re.compile(r"\b(?:think|suspect|believe|if|whether|maybe|perhaps|say|says|said|not sure)\b", re.IGNORECASE)


class Patterns:
    """The patterns that contain players' names."""

    def __init__(self, names: Sequence[str]) -> None:
        name = "|".join(re.escape(each) for each in sorted(names, key=len, reverse=True))
        name = rf"(?<!\w)({name})(?!\w)"
        self.name = re.compile(name)
        self.was = re.compile(rf"{name} was (?:a|the) ({_ROLES})\.")
        self.vote = re.compile(rf"{name} for (?:{name}|nobody)")
        self.look = re.compile(rf"You look at {name}:.* is (not )?a werewolf\.")
        self.voted_out = re.compile(rf"^{name} is voted out\.")
        self.shot = re.compile(rf"^{name}, dying, shoots {name}\.")
        self.report = re.compile(
            rf"{name}(?:[,:]? (?:who )?(?:is|was|and found|turned out to be)| ?:)(?: \w+ (?:is|was))? "
            rf"(?:(?P<good>{_INNOCENT})|a (?:were)?wolf)\b"
        )
        self.accuse = re.compile(rf"\b(?:suspect|vote for|accuse|distrust|voting for) {name}")


def _hedged(text: str, at: int) -> bool:
    """Return whether the sentence contains a hedge before `at`."""
    begin = max(text.rfind(mark, 0, at) for mark in ".!?") + 1
    return _HEDGED.search(text, begin, at) is not None


@lru_cache(maxsize=512)
def patterns(names: tuple[str, ...]) -> Patterns:
    """Return the (cached) patterns for these names."""
    return Patterns(names)


class Notes:
    """One seat's notebook. Seats are numbers; `reports[s][t]` is whether s, as a seer, has called t a werewolf."""

    def __init__(self, observation: Observation, seat: Seat, names: tuple[str, ...]) -> None:
        self.seat = seat
        self._place = {name: at for at, name in enumerate(names)}
        self._patterns = patterns(names)
        self.role: Role = "villager"
        self.pack: set[Seat] = set()
        self.night = 0
        self.dead: set[Seat] = set()
        self.revealed: dict[Seat, Role] = {}
        self.looked: dict[Seat, bool] = {}
        self.claims: dict[Seat, Role] = {}
        self.reports: dict[Seat, dict[Seat, bool]] = defaultdict(dict)
        self.accused: dict[Seat, Seat] = {}  # of the current day: by whom, whom
        self.spoke: set[Seat] = set()  # on the current day
        self.whispered: dict[Seat, Seat] = {}  # of the current night: by whom, whom
        self.votes: list[dict[Seat, Seat]] = []
        self.victim: Seat | None = None
        self._read_brief(observation.messages[0].text, names)
        for message in observation.messages[1:]:
            self._read(message)

    @property
    def alive(self) -> list[Seat]:
        """The other seats that live."""
        return [seat for seat in self._place.values() if seat not in self.dead and seat != self.seat]

    def claimants(self, role: Role) -> list[Seat]:
        """Return the seats that claimed a role and were not revealed to have another."""
        return [seat for seat, claim in self.claims.items() if claim == role and self.revealed.get(seat, role) == role]

    def trusted_seer(self) -> Seat | None:
        """Return the only seat that claims to be the seer, or the claimant that was revealed as the seer."""
        claimants = self.claimants("seer")
        confirmed = [seat for seat in claimants if self.revealed.get(seat) == "seer"]
        return (confirmed or claimants)[0] if len(confirmed or claimants) == 1 else None

    # --- reading ---

    def _read_brief(self, text: str, names: Sequence[str]) -> None:
        brief = next((part for part in text.split("\n\n") if part.startswith("You are ")), "")
        if match := _ROLE.search(brief.removeprefix(f"You are {names[self.seat]}.")):
            self.role = cast("Role", match.group(1))
        if self.role == "werewolf":
            self.pack = {self._place[name] for name in self._patterns.name.findall(brief)} - {self.seat}

    def _read(self, message: Message) -> None:
        if message.author is not None:
            self._hear(message.author, message)
        elif message.channel == "private":
            self._read_private(message.text)
        elif message.channel == "public":
            self._read_public(message.text)

    def _seats(self, text: str) -> list[Seat]:
        return [self._place[name] for name in self._patterns.name.findall(text)]

    def _read_private(self, text: str) -> None:
        if match := self._patterns.look.search(text):
            self.looked[self._place[match.group(1)]] = not match.group(2)
        elif text.startswith("The werewolves attack "):
            named = self._seats(text)
            self.victim = named[0] if named else None

    def _read_public(self, text: str) -> None:
        if text.startswith("Night "):
            self.night, self.whispered = self.night + 1, {}
        elif text.startswith("Morning comes."):
            self.accused, self.spoke, self.victim = {}, set(), None
            line = text.removeprefix("Morning comes. ")
            if " died in the night." in line:
                self.dead |= set(self._seats(line.split(" died in the night.", 1)[0]))
        elif text.startswith("The votes: "):
            pairs = self._patterns.vote.findall(text)
            self.votes.append({self._place[by]: self._place[to] for by, to in pairs if to})
        elif match := self._patterns.voted_out.search(text):
            self.dead.add(self._place[match.group(1)])
        elif match := self._patterns.shot.search(text):
            self.dead.add(self._place[match.group(2)])
        for name, role in self._patterns.was.findall(text):
            self.revealed[self._place[name]] = role

    def _hear(self, seat: Seat, message: Message) -> None:
        """Read a speech, or a packmate's message."""
        text = message.text
        if message.channel == "wolves":
            named = [other for other in self._seats(text) if other not in self.pack | {self.seat}]
            if named:
                self.whispered[seat] = named[0]
        if message.channel != "public":
            return
        self.spoke.add(seat)
        roles = claimed(text)
        if roles:
            self.claims[seat] = "seer" if "seer" in roles else min(roles)
        if self.claims.get(seat) == "seer":
            for match in self._patterns.report.finditer(text):
                if not _hedged(text, match.start()):
                    self.reports[seat][self._place[match.group(1)]] = match.group("good") is None
        for name in self._patterns.accuse.findall(text):
            self.accused[seat] = self._place[name]
