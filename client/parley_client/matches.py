"""Matches: set up a table, take a seat, read it, move."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from parley_client.errors import TimedOut
from parley_client.models import AdviceIn, AdviceOut, MatchIn, MatchLineOut, MatchOut, MoveIn, MoveOut, PlaceIn, SeatIn
from parley_client.transport import Transport

OVER = ("finished", "aborted")


class Matches:
    """The matches of a site, as the owner of the key sees them."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self, *, state: str = "") -> Iterator[MatchLineOut]:
        """Matches that may be seen, newest first; of one state (`open`, `running`, `finished`, `aborted`)."""
        return self._transport.rows(MatchLineOut, "matches", state=state)

    def get(self, match: int) -> MatchOut:
        """A match as the key's owner sees it: messages, and the actions that are possible now."""
        return self._transport.model(MatchOut, "GET", f"matches/{match}")

    def create(
        self, game: str, places: Sequence[Mapping[str, Any] | PlaceIn], *, consent: bool, **choices: Any
    ) -> MatchOut:
        """Set up a table; `places` are the seats, such as `{"me": True}`, and `choices` the other fields of `MatchIn`.

        `consent` says whether your part may be stored in datasets and used for training.
        """
        seats = [PlaceIn.model_validate(place) for place in places]
        body = MatchIn(game=game, places=seats, consent=consent, **choices)
        return self._transport.model(MatchOut, "POST", "matches", json=body.model_dump(mode="json", exclude_unset=True))

    def take_seat(self, match: int, *, consent: bool) -> MatchOut:
        """Take the first free seat of an open table."""
        return self._transport.model(
            MatchOut, "POST", f"matches/{match}/seat", json=SeatIn(consent=consent).model_dump()
        )

    def ready(self, match: int) -> MatchOut:
        """Say that you are ready, at a table of more than two seats that waits for it."""
        return self._transport.model(MatchOut, "POST", f"matches/{match}/ready")

    def move(
        self, match: int, turn: int, action: str, args: Mapping[str, int | str] | None = None, text: str = ""
    ) -> MoveOut:
        """Make the move of your turn `turn`; a repeated request returns the stored move.

        Raises `Conflict` if it is not your turn or the action is not possible now.
        """
        body = MoveIn(turn=turn, action=action, args=dict(args or {}), text=text)
        return self._transport.model(MoveOut, "POST", f"matches/{match}/moves", json=body.model_dump(mode="json"))

    def advice(self, match: int, turn: int, coach: str = "scripted") -> AdviceOut:
        """Ask a coach for advice at your turn; the answer is in the match once it is there."""
        body = AdviceIn(turn=turn, coach=coach)
        return self._transport.model(AdviceOut, "POST", f"matches/{match}/advice", json=body.model_dump(mode="json"))

    def turns(self, match: int, *, every: float = 0.5, timeout: float = 600.0) -> Iterator[MatchOut]:
        """Yield the match whenever it is your turn, until the game is over.

        Raises `TimedOut` if nothing changes for `timeout` seconds.
        """
        last, seen = time.monotonic(), -1
        while (current := self.get(match)).state not in OVER:
            if current.actions:
                yield current
                last = time.monotonic()
                continue
            if len(current.messages) != seen:
                last, seen = time.monotonic(), len(current.messages)
            if time.monotonic() - last > timeout:
                raise TimedOut(f"nothing has happened in match {match} for {timeout:.0f} seconds")
            time.sleep(every)
