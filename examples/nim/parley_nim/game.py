"""Nim as a state machine: a turn takes any number of sticks from one heap.

Settings that do not fit raise `BadInput`; moves that are not possible raise `IllegalMove` and change nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from parley_nim import words
from training.games.log import LoggedGame, Settings, read_settings
from training.records import ALL, SPECTATOR, Action, Argument, Move, Scenario, Seat, Viewer
from training.seeding import rng
from training.views import Cells, TableView


class NimSettings(Settings):
    """Everything a game is made of besides the players."""

    heaps: tuple[Annotated[int, Field(ge=1, le=12)], ...] = Field(
        default=(3, 4, 5), min_length=1, max_length=6, description="Sticks in each heap."
    )
    first_seat: Literal[0, 1] | None = Field(default=None, description="Who begins. Empty: drawn from the seed.")


class Nim(LoggedGame):
    """Two seats in turn; the last stick wins."""

    def __init__(self, scenario: Scenario) -> None:
        settings = read_settings(NimSettings, scenario)
        super().__init__(scenario, max_chars=0)
        self.heaps = list(settings.heaps)
        drawn = rng(scenario.seed, "nim", "first").randrange(2)
        self._seat: Seat = drawn if settings.first_seat is None else settings.first_seat
        self._turns = [0, 0]
        self._winner: Seat | None = None
        self._moment = ""
        self._log.brief(
            {seat: words.opening(settings.heaps, self.names, self._take(), seat) for seat in (0, 1)}, channel="private"
        )
        self._log.brief(dict.fromkeys((SPECTATOR, ALL), words.opening(settings.heaps, self.names, self._take())))
        self._log.tell(words.state(self.heaps, self.names[self._seat]), lines=())  # people see the heaps

    def to_act(self) -> frozenset[Seat]:
        """Return whose turn it is; nobody's once somebody has won."""
        return frozenset() if self._winner is not None else frozenset({self._seat})

    def _take(self) -> Action:
        choices = tuple(
            words.choice(count, heap) for heap, size in enumerate(self.heaps) for count in range(1, size + 1)
        )
        argument = Argument(name="sticks", kind="choice", choices=choices)
        return Action(name="take", args=(argument,), text="private", label="Take sticks from one heap")

    def _offered(self, seat: Seat) -> tuple[Action, ...]:
        return (self._take(),)

    def default(self, seat: Seat) -> Move:
        """Return the first choice: one stick of the first heap that has any."""
        choice = self._take().args[0].choices[0] if self.to_act() else ""
        return Move(action="take", args={"sticks": choice}, origin="default")

    def _deed(self, seat: Seat, action: Action, move: Move) -> str:
        return words.deed(str(move.args["sticks"]))

    def show(self, viewer: Viewer) -> TableView:
        """Return the heaps as rows of sticks; a stick is a button that takes it and all to its right."""
        acts = viewer in self.to_act()
        rows = tuple(words.row(heap, size, acts) for heap, size in enumerate(self.heaps))
        return TableView(
            zones=(Cells(title="Heaps", rows=rows),),
            ask=words.ASK if acts else "",
            rules=words.RULES,
            headline="" if self._winner is None else words.headline(self.names, self._winner, viewer),
            moment=self._moment,
            mood="" if self._winner is None else "over",
        )

    def _apply(self, moves: Mapping[Seat, Move]) -> None:
        ((seat, move),) = moves.items()
        self._turns[seat] += 1
        if move.origin == "forfeit":
            self._winner = 1 - seat
            self._moment = words.moment(self.names[seat])
            self._log.tell(words.given_up(self.names[seat], self.names[1 - seat]))
            return
        taken = str(move.args["sticks"])
        if move.origin == "seat":
            self._log.say({seat: self._reply(seat, move)})
        else:
            self._log.tell(words.unchosen(self.names[seat], taken))
        count, heap = words.read_choice(taken)
        self.heaps[heap] -= count
        if any(self.heaps):
            self._seat = 1 - seat
            self._log.tell(words.state(self.heaps, self.names[self._seat]), lines=())
        else:
            self._winner = seat
            self._moment = words.moment(self.names[seat], taken)
            self._log.tell(words.over(self.names[seat]))

    def returns(self) -> Mapping[Seat, float | None]:
        """Return 1 for the winner and -1 for the other; None before the end."""
        if self._winner is None:
            return {0: None, 1: None}
        return {seat: 1.0 if seat == self._winner else -1.0 for seat in (0, 1)}

    def metrics(self) -> Mapping[str, float]:
        """Return how many turns the game took."""
        return {"turns": float(sum(self._turns))} if self._winner is not None else {}

    def seat_metrics(self) -> Mapping[Seat, Mapping[str, float]]:
        """Return of each seat its turns and whether it has won."""
        if self._winner is None:
            return {}
        return {seat: {"win": float(seat == self._winner), "turns": float(self._turns[seat])} for seat in (0, 1)}
