"""A person's move from the form or the socket, parsed against the seat's legal actions and submitted.

Raises `BadInput` or `IllegalMove` with a message for the person; nothing is changed then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from training.errors import BadInput, IllegalMove
from training.games.base import FORFEIT
from training.records import Move
from webapp.accounts.models import User
from webapp.arena.models import MatchMove
from webapp.arena.play import hosting, moves, services, statements
from webapp.arena.play.services import MatchState
from webapp.arena.play.statements import Locked

LATE = "too late: the time was up, and the default was played for you"
ELSEWHERE = "you do not sit at this table"
STAND_IN = "a stand-in moves for you: take your seat back first"


def play(*, match_id: int, user: User, data: Mapping[str, Any]) -> MatchMove:
    """Make this person's move; if the turn already has a move, return the stored one.

    A move that arrives after the default was played is refused with that reason.
    """
    sitting = statements.sitting_of(match_id, user.pk, hosting.NOTED_EVERY)
    if sitting is None:
        raise IllegalMove(ELSEWHERE)
    if sitting.stand_in:
        raise IllegalMove(STAND_IN)
    seat = sitting.seat
    if sitting.unnoted:
        hosting.note_presence(match_id=match_id, user=user)
    step = sitting.step_of(moves.turn_of(data))

    def read_now(state: MatchState, locked: Locked) -> Move:
        place = locked.seats[seat]  # the host may have replaced the player since
        if place.user_id != user.pk or place.stand_in:
            raise IllegalMove(STAND_IN if place.user_id == user.pk else ELSEWHERE)
        observation = state.game.observe(seat)
        if data.get("action") == FORFEIT.action and observation.actions:
            return FORFEIT
        words = data.get("text")
        return moves.read_move(
            {**data, "text": state.game.with_model_names(words)} if isinstance(words, str) else data, observation
        )

    made_move = services.submit(match_id=match_id, seat=seat, step=step, move=read_now)
    if made_move.move["origin"] == "timeout":
        raise IllegalMove(LATE)
    return made_move


def explain(error: BadInput | IllegalMove) -> str:
    """The refusal as a sentence for the person."""
    text = str(error)
    return f"{text[:1].upper()}{text[1:]}.{'' if text == LATE else ' Nothing was sent; your text is kept.'}"
