"""Claims in table talk, extracted by rule and checked against the engine's state at the moment when they were made.

Verdicts reveal hidden facts, such as roles and values: whoever calls this decides that its reader may see everything.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from pydantic import Field

from training.games import ClaimCheckingGame, advance, make
from training.reading import Record
from training.records import Move, Scenario, Seat, SeatMove


class Claim(Record):
    """A statement of fact in a spoken move, and whether it was true when it was said.

    `move` is an index into the episode's moves; `start` and `end` are offsets in that move's text, `end` exclusive.
    `statement` is the proposition with the names of seats, `why` the engine's fact that decides.
    """

    move: int = Field(ge=0)
    seat: Seat
    start: int = Field(ge=0)
    end: int = Field(ge=0)
    kind: str
    statement: str
    verdict: Literal["true", "false", "unknowable"]
    why: str


def claims_of(scenario: Scenario, moves: Iterable[SeatMove]) -> list[Claim]:
    """Return the claims in the moves of an episode in their order; none for games that check no claims.

    Only words that a seat chose are read. Raises `BadInput` for a wrong scenario and `IllegalMove` for moves that do
    not replay. For readers who may see everything.
    """
    game = make(scenario)
    if not isinstance(game, ClaimCheckingGame):
        return []
    claims: list[Claim] = []
    pending: dict[Seat, Move] = {}
    for index, entry in enumerate(moves):
        if entry.move.origin == "seat" and entry.move.text.strip():
            claims += (
                Claim(
                    move=index,
                    seat=entry.seat,
                    start=each.start,
                    end=each.end,
                    kind=each.kind,
                    statement=each.statement,
                    verdict=each.verdict,
                    why=each.why,
                )
                for each in game.claims(entry.seat, entry.move.text)
            )
        pending = advance(game, pending, entry)
    return claims
