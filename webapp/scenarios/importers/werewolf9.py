"""Reads nine-player Werewolf games of people: one JSON file per game, with roles, nights, votes and what was said.

Players are called by number. What a player said stands under "Day n Daytime - [p] is speaking", again as "(round 2)"
before a second vote, and as last words; the order of these keys is the order of speaking. The engine plays the record
under each variant of the rules that may have been used. A game is imported only if all of it fits: every recorded
action is played, and every death has the recorded day and cause. Otherwise it is left out with a notice that says what
does not fit. Source: Wu et al., "Enhance Reasoning for Large Language Models in the Game Werewolf", 2024.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, get_args

from training.dataset import DatasetLine
from training.errors import BadInput
from training.games.werewolf import NINE, Role, WerewolfSettings
from training.games.werewolf.actions import NOBODY
from training.records import Action, Move, Seat
from webapp.scenarios.importers import werewolf
from webapp.scenarios.importers.reading import Progress, Reading, load_json, need, noted

SETTINGS = {"order": "seat", "reveal": False, "tie": "runoff"}
VARIANTS: dict[str, tuple[str, ...]] = {"wolf_win": ("side",), "last_words": ("voted", "all")}
"""The settings that records may differ in, the usual value first; all other values of `wolf_win` are tried as well."""
WINNERS = {"Werewolves Win": True, "The good side wins": False}
"""Whether the wolves have won, by the words of the record."""
SPEECH = re.compile(r"Day (\d+) Daytime - \[(\d+)\] (is speaking|gives the last words)( \(round 2\))?")
PART = re.compile(r"Day \d+ (Night|Daytime)")
BALLOTS = {"vote": "Voting Pattern", "run-off": "Voting Pattern (Round 2)"}
"""The recorded votes of a phase."""
NIGHT = {"kill": "Werewolf", "inspect": "Seer", "poison": "Witch poison"}
"""The recorded target of an action."""
DEATHS, EXILED, ANTIDOTE, FINAL = "Death Message", "Voting Result", "Witch antidote", "final"
KNOWN = {
    "Night": {*NIGHT.values(), ANTIDOTE, "Witch", DEATHS},
    "Daytime": {*BALLOTS.values(), EXILED},
    "": {"roles", FINAL, "Game Result", "Automatically Passed for Not Speaking", "player_id"},
}
"""The known entries of nights, of days, and of the whole record."""
ALIVE = "in_game"
FATES = {ALIVE, "killed", "poisoned", "exiled", "shot"}
"""The known values of `final`; the causes are those of `werewolf.Death`."""


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
    audio = need(record, "audio", dict, file.name)
    roles = _roles(need(state, "roles", dict, f"{file.name}, game_state"), file.name)
    result = need(state, "Game Result", str, f"{file.name}, game_state")
    if result not in WINNERS:
        raise BadInput(f"unknown result {result!r}", f"{file.name}, game_state, Game Result")
    winners = {seat for seat, role in enumerate(roles) if (role == "werewolf") == WINNERS[result]}
    if unknown := _unknown(state, audio):
        reading.notice(file.name, f"left out: entries that this reader does not know: {', '.join(unknown)}")
        return
    problem = None
    for variant in _variants():
        try:
            reading.lines.append(_line(file, state, audio, roles, winners, variant))
        except BadInput as error:
            problem = problem or error
        else:
            return
    assert problem is not None, "there is a variant"
    reading.notice(file.name, f"left out: {problem.why}")


def _roles(listed: Mapping[str, Any], where: str) -> list[Role]:
    roles_by_name: dict[str, Role] = {role.capitalize(): role for role in NINE}
    roles = []
    for number in range(1, len(NINE) + 1):
        role = need(listed, str(number), str, f"{where}, game_state, roles")
        if role not in roles_by_name:
            raise BadInput(f"unknown role {role!r}; expected {', '.join(roles_by_name)}", f"{where}, game_state, roles")
        roles.append(roles_by_name[role])
    return roles


def _unknown(state: Mapping[str, Any], audio: Mapping[str, Any]) -> list[str]:
    """Return the entries of a record that may hold actions or deaths which this reader does not understand."""
    unknown = [f"audio, {key}" for key in audio if not SPEECH.fullmatch(key)]
    for key, value in state.items():
        part = PART.fullmatch(key)
        if part is None:
            unknown += [key] if key not in KNOWN[""] else []
        elif isinstance(value, dict):
            unknown += [f"{key}, {entry}" for entry in value if entry not in KNOWN[part[1]]]
        else:
            unknown.append(key)
    final = state.get(FINAL, {})
    if not isinstance(final, dict):
        return [*unknown, FINAL]
    return [*unknown, *(f"{FINAL}, {number}: {fate}" for number, fate in final.items() if fate not in FATES)]


def _variants() -> list[dict[str, str]]:
    """Return the combinations of settings under which a record may have been played, the usual one first."""
    offered = get_args(WerewolfSettings.model_fields["wolf_win"].annotation)
    usual = VARIANTS["wolf_win"]
    values = {**VARIANTS, "wolf_win": (*usual, *(value for value in offered if value not in usual))}
    return [dict(zip(values, combination, strict=True)) for combination in product(*values.values())]


def _line(
    file: Path,
    state: Mapping[str, Any],
    audio: Mapping[str, Any],
    roles: Sequence[Role],
    winners: Collection[Seat],
    variant: Mapping[str, str],
) -> DatasetLine:
    """Return the game as it is played under these rules; raise `BadInput` unless it is the recorded one."""
    reader = _Reader(state, audio, file.name)
    settings = {**SETTINGS, **variant, "fixed": reader.fixed, "max_chars": max(1000, reader.longest)}
    names = [_name(seat + 1) for seat in range(len(roles))]
    start = werewolf.scenario(f"werewolf9-{file.stem}", roles, names, settings)
    moves, deaths = werewolf.follow(start, reader.decide, file.name)
    reader.check_played()
    reader.check_deaths(deaths)
    return werewolf.line(start, moves, f"werewolf9:{file.stem}", set(winners), file.name)


def _name(number: object) -> str:
    return f"Player {number}"


class _Reader:
    """Returns moves from the record of nights, votes and speeches, and tracks the entries that are used."""

    def __init__(self, state: Mapping[str, Any], audio: Mapping[str, Any], where: str) -> None:
        self._state, self._where = state, where
        self._speeches: dict[str, str] = {}
        self._unplayed = dict.fromkeys((*_actions(state), *audio))  # in the order of the file
        spoke: dict[tuple[str, int], list[Seat]] = defaultdict(list)
        for key, entry in audio.items():
            match = SPEECH.fullmatch(key)
            assert match, "other keys are unknown entries"
            self._speeches[key] = need(entry, "text", str, f"{where}, audio, {key}")
            if match[3] == "is speaking":
                spoke["runoff" if match[4] else "speakers", int(match[1])].append(int(match[2]) - 1)
        self.longest = max(map(len, self._speeches.values()), default=0)
        self.fixed = [{"event": event, "day": day, "seats": seats} for (event, day), seats in spoke.items()]

    def decide(self, offers: werewolf.Offers, phase: str) -> Mapping[Seat, Move | None]:
        """Return the seats' moves; raise `BadInput` for a recorded action that Parley's rules do not offer."""
        return {seat: self._move(seat, offered, phase) for seat, offered in offers.items()}

    def _move(self, seat: Seat, offered: Mapping[str, Action], phase: str) -> Move | None:
        day, _, kind = phase.partition(": ")
        day = f"Day {day.rpartition(' ')[2]}"
        if "speak" in offered:
            return self._speech(f"{day} Daytime - [{seat + 1}]", kind)
        if "vote" in offered:
            ballot = self._part(f"{day} Daytime").get(BALLOTS[kind], {})
            return self._aimed(
                offered, "vote", ballot.get(str(seat + 1)), f"{day} Daytime, {BALLOTS[kind]}, {seat + 1}"
            )
        night = f"{day} Night"
        if night not in self._state:
            raise BadInput("ends before the game does", self._where)
        part = self._part(night)
        if "pass" in offered and part.get(ANTIDOTE, -1) != -1:
            return self._saved(offered, part, f"{night}, {ANTIDOTE}")
        for name, entry in NIGHT.items():
            if name in offered and entry in part:
                return self._aimed(offered, name, part[entry], f"{night}, {entry}")
        return Move(action="pass") if "pass" in offered else None

    def _speech(self, begin: str, kind: str) -> Move | None:
        words = {
            "discussion": "is speaking",
            "run-off": "is speaking (round 2)",
            "last words": "gives the last words",
        }
        key = f"{begin} {words[kind]}"
        self._unplayed.pop(key, None)
        return werewolf.speak(self._speeches.get(key, ""))

    def _aimed(self, offered: Mapping[str, Action], name: str, number: object, entry: str) -> Move | None:
        """Return a recorded action at a player or at nobody (-1); None where nothing is recorded."""
        if number is None:
            return None
        move = werewolf.aim(offered, name, NOBODY if number == -1 else _name(number))
        if move is None and number != -1:
            raise BadInput(f"{entry}: Parley's rules do not allow {name} at {number} there", self._where)
        self._unplayed.pop(entry, None)
        return move or (Move(action="pass") if "pass" in offered else None)

    def _part(self, key: str) -> Mapping[str, Any]:
        return need(self._state, key, dict, self._where) if key in self._state else {}

    def _saved(self, offered: Mapping[str, Action], night: Mapping[str, Any], entry: str) -> Move:
        """Return the move with which the witch saves the wolves' victim, the only player whom she can save."""
        if "save" not in offered or night[ANTIDOTE] != night.get(NIGHT["kill"]):
            raise BadInput(f"{entry}: Parley's rules do not allow save at {night[ANTIDOTE]} there", self._where)
        self._unplayed.pop(entry, None)
        return Move(action="save")

    def check_played(self) -> None:
        """Raise `BadInput` if the record has actions that Parley's rules did not request."""
        if unplayed := list(self._unplayed):
            more = f" and {len(unplayed) - 3} more" if len(unplayed) > 3 else ""
            raise BadInput(f"Parley's rules do not request {'; '.join(unplayed[:3])}{more}", self._where)

    def check_deaths(self, deaths: Sequence[werewolf.Death]) -> None:
        """Raise `BadInput` if the deaths differ from the record in player, day or cause."""
        self._check_days(deaths)
        causes = {str(death.seat + 1): death.cause for death in deaths}
        for number, fate in self._part(FINAL).items():
            if causes.get(number, ALIVE) != fate:
                raise BadInput(
                    f"{_name(number)} is {causes.get(number, ALIVE)} by Parley's rules, not {fate}", self._where
                )

    def _check_days(self, deaths: Sequence[werewolf.Death]) -> None:
        for key in self._state:
            match = PART.fullmatch(key)
            part = self._part(key) if match else {}
            day = int(key.split()[1]) if match else 0
            night = [d.seat + 1 for d in deaths if d.day == day and d.cause in ("killed", "poisoned")]
            exiled = [d.seat + 1 for d in deaths if d.day == day and d.cause == "exiled"] or [-1]
            if DEATHS in part and sorted(part[DEATHS]) != night:
                raise BadInput(f"{key}: {part[DEATHS]} died in the record, {night} by Parley's rules", self._where)
            if EXILED in part and [part[EXILED]] != exiled:
                why = f"{key}: {part[EXILED]} was voted out in the record, {exiled[0]} by Parley's rules"
                raise BadInput(why, self._where)


def _actions(state: Mapping[str, Any]) -> list[str]:
    """Return the entries of nights and days in which a player acted; -1 stands for nobody."""
    actions = []
    for key, part in state.items():
        if not PART.fullmatch(key):
            continue
        actions += [f"{key}, {entry}" for entry in (*NIGHT.values(), ANTIDOTE, "Witch") if part.get(entry, -1) != -1]
        for ballot in BALLOTS.values():
            votes = part.get(ballot) or {}
            actions += [f"{key}, {ballot}, {voter}" for voter, vote in votes.items() if vote != -1]
    return actions
