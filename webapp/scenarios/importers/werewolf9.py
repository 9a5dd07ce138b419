"""Reads nine-player Werewolf games of people: one JSON file a game, with roles, nights, votes and what was said.

Players are called by number. What a player said stands under "Day n Daytime - [p] is speaking", again as "(round 2)"
before a second vote, and as last words; the order of these keys is the order of speaking. A game that our rules do not
bring to the recorded winner is left out with a notice. Source: Wu et al., "Enhance Reasoning for Large Language Models
in the Game Werewolf", 2024.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from training.errors import BadInput
from training.games.werewolf import NINE, Role
from training.games.werewolf.actions import NOBODY
from training.records import Action, Move, Seat
from webapp.scenarios.importers import werewolf
from webapp.scenarios.importers.reading import Progress, Reading, load_json, need, noted

SETTINGS = {"order": "seat", "reveal": False, "tie": "runoff", "last_words": "voted", "wolf_win": "side"}
WINNERS = {"Werewolves Win": True, "The good side wins": False}
"""Whether the wolves have won, by the words of the record."""
BALLOTS = ("Voting Pattern", "Voting Pattern (Round 2)")
SPEECH = re.compile(r"Day (\d+) Daytime - \[(\d+)\] (is speaking|gives the last words)( \(round 2\))?")


def read(path: Path, progress: Progress) -> Reading:
    """Read every JSON file of the folder as one game; other files are notices."""
    reading = Reading()
    files = sorted(path.iterdir())
    for number, file in enumerate(files, 1):
        if file.suffix == ".json":
            with noted(reading, file.name):
                _read(file, reading)
        else:
            reading.notice(file.name, "not a JSON file; left out")
        progress(number, len(files))
    if not any(file.suffix == ".json" for file in files):
        reading.error(BadInput("there is no JSON file", "file"))
    return reading


def _read(file: Path, reading: Reading) -> None:
    record = load_json(file)
    state = need(record, "game_state", dict, file.name)
    roles = _roles(need(state, "roles", dict, f"{file.name}, game_state"), file.name)
    result = need(state, "Game Result", str, f"{file.name}, game_state")
    if result not in WINNERS:
        raise BadInput(f"unknown result {result!r}", f"{file.name}, game_state, Game Result")
    winners = {seat for seat, role in enumerate(roles) if (role == "werewolf") == WINNERS[result]}
    reader = _Reader(state, need(record, "audio", dict, file.name), file.name)
    settings = {**SETTINGS, "fixed": reader.fixed, "max_chars": max(1000, reader.longest)}
    names = [f"Player {seat + 1}" for seat in range(len(roles))]
    start = werewolf.scenario(f"werewolf9-{file.stem}", roles, names, settings)
    try:
        moves = werewolf.follow(start, reader.decide, file.name)
        reading.lines.append(werewolf.line(start, moves, f"werewolf9:{file.stem}", winners, file.name))
    except BadInput as error:
        reading.notice(file.name, f"left out: {error.why}")


def _roles(found: Mapping[str, Any], where: str) -> list[Role]:
    known: dict[str, Role] = {role.capitalize(): role for role in NINE}
    roles = []
    for number in range(1, len(NINE) + 1):
        role = need(found, str(number), str, f"{where}, game_state, roles")
        if role not in known:
            raise BadInput(f"unknown role {role!r}; expected {', '.join(known)}", f"{where}, game_state, roles")
        roles.append(known[role])
    return roles


class _Reader:
    """Answers what the engine asks from the record of nights, votes and speeches."""

    def __init__(self, state: Mapping[str, Any], audio: Mapping[str, Any], where: str) -> None:
        self._state, self._where = state, where
        self._day = 0
        self._ballots: deque[Mapping[str, Any]] = deque()
        self._said: dict[tuple[int, Seat], deque[str]] = defaultdict(deque)
        self.longest = 0
        spoke: dict[tuple[str, int], list[Seat]] = defaultdict(list)
        for key, entry in audio.items():
            found = SPEECH.fullmatch(key)
            if found is None:
                continue
            day, seat = int(found[1]), int(found[2]) - 1
            text = need(entry, "text", str, f"{where}, audio, {key}")
            self._said[day, seat].append(text)
            self.longest = max(self.longest, len(text))
            if found[3] == "is speaking":
                spoke["runoff" if found[4] else "speakers", day].append(seat)
        self.fixed = [{"event": event, "day": day, "seats": seats} for (event, day), seats in spoke.items()]

    def decide(self, offers: werewolf.Offers) -> Mapping[Seat, Move | None]:
        """Return what the seats did."""
        if any("kill" in offered for offered in offers.values()):
            self._day += 1
            daytime = self._part("Daytime")
            self._ballots = deque(daytime[key] for key in BALLOTS if key in daytime)
        ballot = self._ballots.popleft() if self._ballots and self._votes(offers) else {}
        return {seat: self._move(seat, offered, ballot) for seat, offered in offers.items()}

    @staticmethod
    def _votes(offers: werewolf.Offers) -> bool:
        return any("vote" in offered for offered in offers.values())

    def _part(self, part: str) -> Mapping[str, Any]:
        key = f"Day {self._day} {part}"
        found: Mapping[str, Any] = need(self._state, key, dict, self._where) if key in self._state else {}
        return found

    def _move(self, seat: Seat, offered: Mapping[str, Action], ballot: Mapping[str, Any]) -> Move | None:
        night = self._part("Night")
        if "speak" in offered:
            said = self._said[self._day, seat]
            return werewolf.speak(said.popleft()) if said else None
        if "save" in offered and night.get("Witch antidote", -1) != -1:
            return Move(action="save")
        named = {
            "kill": night.get("Werewolf"),
            "inspect": night.get("Seer"),
            "poison": night.get("Witch poison"),
            "vote": ballot.get(str(seat + 1)),
        }
        for name, number in named.items():
            if name in offered and number is not None:
                return werewolf.aim(offered, name, NOBODY if number == -1 else f"Player {number}")
        return Move(action="pass") if "pass" in offered else None
