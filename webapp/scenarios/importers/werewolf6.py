"""Reads six-player Werewolf games of language models: JSONL, one game per line, answers as JSON texts.

The first player listed is a villager, then a werewolf, the seer, the other werewolf, the witch and a villager. A split
vote of the wolves and a tie of the village were decided by chance; the outcome is inferred from the players that
continue to act, by trying the possibilities until the rest of the record fits. The record states no deaths: they follow
from who acts, turn by turn. A game is left out with a notice if it does not end with the recorded winner under Parley's
rules, or if a recorded action at one of its players is not legal, such as a vote for a dead player. Words that name no
action at a player cause a notice as well: the player does nothing there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from training.dataset import DatasetLine
from training.errors import BadInput
from training.games.werewolf import Role
from training.records import Action, Move, Seat
from training.store import from_json
from webapp.scenarios.importers import werewolf
from webapp.scenarios.importers.reading import Progress, Reading, need, noted, read_bytes

ROLES: tuple[Role, ...] = ("villager", "werewolf", "seer", "werewolf", "witch", "villager")
DAYS = 50
"""More days than any record has."""
SKIPPED = re.compile(r"\W*(skip|none|pass|nothing|no action|do nothing)\b", re.IGNORECASE)
"""Words with which a player passes."""
MOST_WAYS = 100
"""Combinations of tie outcomes that are tried for one record."""
SETTINGS = {
    "order": "seat",
    "reveal": False,
    "prey": "anybody",
    "wolf_tie": "random",
    "tie": "random",
    "last_words": "nobody",
    "day_limit": DAYS,
}


@dataclass(frozen=True)
class Answer:
    """One turn of the record. `speech` and `done` are empty where the answer could not be parsed."""

    seat: Seat
    speech: str = ""
    done: str = ""

    def target(self, verb: str) -> str | None:
        """Return the name behind a verb, such as the one of `kill Ada`."""
        match = re.search(rf"\b{verb}\b\W+(\w+)", self.done, re.IGNORECASE)
        return match.group(1) if match else None


def read(path: Path, progress: Progress) -> Reading:
    """Read every game; one that does not fit the format is an error, one that is not legal is a notice."""
    reading = Reading()
    lines = [text for text in read_bytes(path).splitlines() if text.strip()]
    for number, text in enumerate(lines, 1):
        where = f"{path.name}, line {number}"
        with noted(reading, where):
            record = from_json(text, where)
            names, winners = _names(record, where), _winners(record, where)
            answers = _answers(record, reading, where)
            try:
                line, ignored = _line(f"werewolf6-{number}", names, answers, winners, where)
            except BadInput as error:
                reading.notice(where, f"left out: {error.why}")
            else:
                reading.lines.append(line)
                for turn, words in ignored:
                    why = f"{words[:80]!r} is no action at a player of the game; the player does nothing there"
                    reading.notice(f"{where}, turns.{turn}", why)
        progress(number, len(lines))
    if not lines:
        reading.error(BadInput("the file contains no game", path.name))
    return reading


# --- the record ------------------------------------------------------------------------------------------------------


def _names(record: Any, where: str) -> list[str]:
    names = list(need(record, "model_mapping", dict, where))
    if len(names) != len(ROLES):
        raise BadInput(f"expected {len(ROLES)} players, not {len(names)}", f"{where}, model_mapping")
    return names


def _winners(record: Any, where: str) -> set[Seat]:
    """Return the seats with the recorded reward 1; none where the game was interrupted."""
    rewards = need(record, "rewards", list, where)
    if len(rewards) != len(ROLES):
        raise BadInput(f"expected {len(ROLES)} numbers, not {len(rewards)}", f"{where}, rewards")
    return {seat for seat, reward in enumerate(rewards) if reward == 1}


def _answers(record: Any, reading: Reading, where: str) -> list[Answer]:
    names, answers = _names(record, where), []
    for number, turn in enumerate(need(record, "turns", list, where)):
        place = f"{where}, turns.{number}"
        player = need(turn, "agent_name", str, place)
        if player not in names:
            raise BadInput(f"unknown player {player!r}", f"{place}, agent_name")
        answers.append(_answer(names.index(player), need(turn, "response", str, place), reading, place))
    return answers


def _answer(seat: Seat, response: str, reading: Reading, where: str) -> Answer:
    try:
        content_of = json.loads(response)
        kind, content = content_of["action_type"], content_of["argument"]
    except (ValueError, KeyError, TypeError, RecursionError):
        reading.notice(where, "an answer that is not JSON with an action; the player does nothing there")
        return Answer(seat)
    return Answer(seat, done=str(content)) if kind == "action" else Answer(seat, speech=str(content))


# --- the game --------------------------------------------------------------------------------------------------------

Event = Literal["speakers", "prey", "vote"]


class Chance(Exception):
    """A random outcome is not stated yet; `events` are the possible ones, the most likely first."""

    def __init__(self, event: Event, day: int, seats: Sequence[Seat]) -> None:
        super().__init__(event)
        self.events: list[dict[str, Any]] = [{"event": event, "day": day, "seats": [seat]} for seat in seats]


Ignored = list[tuple[int, str]]
"""Turns whose words are no action at a player of the game, with these words."""


def _line(
    key: str, names: list[str], answers: list[Answer], winners: set[Seat], where: str
) -> tuple[DatasetLine, Ignored]:
    """Replay the record; at a random outcome, state one and restart, until a combination fits the whole record."""
    seats = list(range(len(names)))
    ways: list[list[dict[str, Any]]] = [
        [{"event": "speakers", "day": day, "seats": seats} for day in range(1, DAYS + 1)]
    ]
    problem = None
    for _ in range(MOST_WAYS):
        fixed = ways.pop()
        try:
            return _followed(key, names, answers, winners, fixed, where)
        except Chance as chance:
            ways += [[*fixed, event] for event in reversed(chance.events)]
        except BadInput as error:
            problem = problem or error
        if not ways:
            break
    raise problem or BadInput("too many random outcomes", where)


def _followed(
    key: str, names: list[str], answers: list[Answer], winners: set[Seat], fixed: list[dict[str, Any]], where: str
) -> tuple[DatasetLine, Ignored]:
    """Return the game with the random outcomes that `fixed` states."""
    longest = max((len(answer.speech) for answer in answers), default=0)
    settings = {**SETTINGS, "fixed": fixed, "max_chars": max(1000, longest)}
    start = werewolf.scenario(key, ROLES, names, settings)
    reader = _Reader(names, answers, fixed, winners, where)
    moves, _ = werewolf.follow(start, reader.decide, where)
    if remaining := len(answers) - reader.at:
        raise BadInput(f"has {remaining} turns after the end under Parley's rules", where)
    return werewolf.line(start, moves, f"werewolf6:{key.rpartition('-')[2]}", winners, where), reader.ignored


class _Reader:
    """Returns the answers as the engine asks for moves. `at` is the index of the next one."""

    def __init__(
        self,
        names: list[str],
        answers: list[Answer],
        fixed: Sequence[Mapping[str, Any]],
        winners: set[Seat],
        where: str,
    ) -> None:
        self.at = 0
        self.ignored: Ignored = []
        self._names, self._answers, self._winners, self._where = names, answers, winners, where
        self._fixed: dict[tuple[Event, int], Seat] = {(f["event"], f["day"]): f["seats"][0] for f in fixed}
        self._day = 0
        self._victim: str | None = None

    def decide(self, offers: werewolf.Offers, _phase: str) -> Mapping[Seat, Move | None]:
        """Return the seats' moves; raise `BadInput` if other seats are next in the record."""
        moves: dict[Seat, Move | None] = {}
        for _ in offers:
            if self.at == len(self._answers):
                raise BadInput("ends before the game does", self._where)
            answer = self._answers[self.at]
            if answer.seat not in offers or answer.seat in moves:
                expected = ", ".join(self._names[seat] for seat in offers.keys() - moves.keys())
                raise BadInput(
                    f"turn {self.at} is {self._names[answer.seat]}'s; Parley's rules expect {expected}", self._where
                )
            moves[answer.seat] = self._move(answer, offers[answer.seat])
            self.at += 1
        self._settle(offers, moves)
        return moves

    def _move(self, answer: Answer, offered: Mapping[str, Action]) -> Move | None:
        """Return a player's move; raise `BadInput` for an illegal action at a player of the game.

        Words without such an action are noted as ignored.
        """
        if "speak" in offered:
            self._ignore(answer.done)
            return werewolf.speak(answer.speech)
        for verb in ("save", "poison") if "pass" in offered else offered:
            target = answer.target(verb)
            if target not in self._names:
                continue
            saved = verb == "save" and "save" in offered and target == self._victim
            move = Move(action="save") if saved else werewolf.aim(offered, verb, target)
            if move is None:
                raise BadInput(
                    f"turn {self.at} is '{verb} {target}', which Parley's rules do not allow there", self._where
                )
            return move
        self._ignore(answer.speech or answer.done)
        return Move(action="pass") if "pass" in offered and answer.done else None

    def _ignore(self, words: str) -> None:
        if words and not SKIPPED.match(words):
            self.ignored.append((self.at, words))

    def _settle(self, offers: werewolf.Offers, moves: Mapping[Seat, Move | None]) -> None:
        """After a vote of the wolves or of the village: infer how a tie was broken."""
        voting: Event | None = None
        pack = [move for seat, move in moves.items() if "kill" in offers[seat]]
        if pack:
            voting, self._day = "prey", self._day + 1
        elif any("vote" in offered for offered in offers.values()):
            voting, pack = "vote", list(moves.values())
        if voting is None:
            return
        leaders = werewolf.leading(pack)
        if len(leaders) > 1 and (voting, self._day) not in self._fixed:
            raise Chance(voting, self._day, [self._names.index(name) for name in self._likeliest(voting, leaders)])
        if voting == "prey":
            stated = self._fixed.get(("prey", self._day))
            self._victim = self._names[stated] if len(leaders) > 1 and stated is not None else (*leaders, None)[0]

    def _likeliest(self, voting: Event, leaders: Sequence[str]) -> list[str]:
        """Return the tied players, first those that do not act afterwards, or that the witch saved."""
        answers, saved = self._answers[self.at :], None
        if voting == "prey" and answers and ROLES[answers[0].seat] == "witch" and not answers[0].speech:
            saved, answers = (
                answers[0].target("save"),
                answers[1:],
            )  # she acts in the night in which she may be attacked
        active = {self._names[answer.seat] for answer in answers}
        return sorted(leaders, key=lambda name: (name in active, not self._fits(name), name != saved))

    def _fits(self, name: str) -> bool:
        """Return whether the death of a player who does not act afterwards helps the recorded winners."""
        return self._names.index(name) not in self._winners
