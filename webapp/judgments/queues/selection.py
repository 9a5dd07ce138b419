"""A filter over games and seats, by what is stored of them: "wolves that won", "a proposal that was refused".

It reads matches, episodes of runs and imported conversations alike. Roles, results and steps come from the database;
events and texts from the moves, for which the file of an episode is read. A game that cannot be read matches no event.
Annotators never see a filter.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Literal

from pydantic import Field

from training.errors import BadInput
from training.reading import Record
from training.records import SeatMove
from webapp.arena.models import Match
from webapp.judgments import games
from webapp.judgments.models import JudgedGame, role_at
from webapp.judgments.search.games import facts_of, survived, won
from webapp.runs.models import PlayedEpisode

Outcome = Literal["", "won", "lost", "survived", "eliminated"]
Event = Literal["", "refused_proposal", "unreadable_reply", "timeout", "forfeit"]
OUTCOMES: tuple[tuple[Outcome, str], ...] = (
    ("", "any"),
    ("won", "won"),
    ("lost", "lost"),
    ("survived", "survived"),
    ("eliminated", "was eliminated"),
)
EVENTS: tuple[tuple[Event, str], ...] = (
    ("", "any game"),
    ("refused_proposal", "a proposal that was refused"),
    ("unreadable_reply", "a reply that the game could not read"),
    ("timeout", "a time that ran out"),
    ("forfeit", "a seat that gave up"),
)


class Selection(Record):
    """The criteria for selecting a game; empty values impose none.

    `role` and `outcome` are of one seat, and select the seats that have both. A seat counts as a winner if the game
    says so, otherwise if its return is the game's highest and returns differ. `step_from` and `step_to` are training
    steps, ends included: only episodes of runs have one. `action` is the name of a move that somebody made, `text`
    stands in what somebody said, in capital or small letters.
    """

    game: str = Field(default="", max_length=40)
    role: str = Field(default="", max_length=40)
    outcome: Outcome = ""
    step_from: int | None = Field(default=None, ge=0)
    step_to: int | None = Field(default=None, ge=0)
    event: Event = ""
    action: str = Field(default="", max_length=40)
    text: str = Field(default="", max_length=200)

    @property
    def words(self) -> str:
        """The filter in words; empty if it has no criterion."""
        parts = [
            self.game and f"game {self.game}",
            self.role and f"role {self.role}",
            self.outcome and dict(OUTCOMES)[self.outcome],
            self.step_from is not None and f"step from {self.step_from}",
            self.step_to is not None and f"step to {self.step_to}",
            self.event and dict(EVENTS)[self.event],
            self.action and f"a move “{self.action}”",
            self.text and f"somebody says “{self.text}”",
        ]
        return ", ".join(part for part in parts if part)

    def seats(self, game: JudgedGame) -> list[int] | None:
        """Return the seats of a game that match; None if the game does not. Raises `BadInput` like `seat_count`."""
        if not self._fits(game):
            return None
        seats = [seat for seat in range(games.seat_count(game)) if self._fits_seat(game, seat)]
        if not seats or not self._happened(game):
            return None
        return seats

    def matching(self, rows: Iterable[JudgedGame], most: int | None = None) -> list[JudgedGame]:
        """Return the games that match, in their order, at most so many. One that cannot be read does not match."""
        chosen: list[JudgedGame] = []
        for game in rows:
            if most is not None and len(chosen) >= most:
                break
            try:
                matches = self.seats(game) is not None
            except BadInput:
                matches = False
            if matches:
                chosen.append(game)
        return chosen

    def _fits(self, game: JudgedGame) -> bool:
        if self.game and game_name(game) != self.game:
            return False
        if self.step_from is None and self.step_to is None:
            return True
        if not isinstance(game, PlayedEpisode):
            return False
        return (self.step_from is None or game.step >= self.step_from) and (
            self.step_to is None or game.step <= self.step_to
        )

    def _fits_seat(self, game: JudgedGame, seat: int) -> bool:
        if self.role and role_at(game, seat).casefold() != self.role.casefold():
            return False
        return not self.outcome or outcome_of(game, seat, self.outcome)

    def _happened(self, game: JudgedGame) -> bool:
        if not (self.event or self.action or self.text):
            return True
        try:
            moves = games.of(game).moves
        except BadInput:
            return False
        sought = self.text.casefold()
        return (
            (not self.event or _has_event(self.event, game, moves))
            and (not self.action or any(entry.move.action == self.action for entry in moves))
            and (not sought or any(sought in entry.move.text.casefold() for entry in moves))
        )


EVERYTHING = Selection()
"""Selects every game with every seat."""


def game_name(game: JudgedGame) -> str:
    """Return the name of the game that was played; of an episode, raises `BadInput` where its file cannot be read."""
    if isinstance(game, Match):
        return game.game
    if isinstance(game, PlayedEpisode):
        return str(game.summary.get("game") or games.of(game).scenario.game)
    return str(game.data["scenario"]["game"])


def outcome_of(game: JudgedGame, seat: int, outcome: Outcome) -> bool:
    """Return whether a seat's result is known and is this one."""
    facts, seats = facts_of(game), games.seat_count(game)
    results = won(facts, seats) if outcome in ("won", "lost") else survived(facts, seats)
    return bool(results) and results[seat] == (outcome in ("won", "survived"))


def _has_event(event: Event, game: JudgedGame, moves: Sequence[SeatMove]) -> bool:
    match event:
        case "refused_proposal":
            return any(
                first.move.action == "propose" and second.move.action in ("reject", "walk_away")
                for first, second in pairwise(moves)
            )
        case "unreadable_reply":
            if isinstance(game, Match):
                return game.moves.exclude(attempts=[]).exists()
            if isinstance(game, PlayedEpisode):
                return bool(game.summary.get("refused"))
            return any(not turn.get("passed", True) for turn in game.data.get("turns", ()))
        case _:
            return any(entry.move.origin == event for entry in moves)
