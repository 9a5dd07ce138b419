"""Shared parts of the games: one append-only log per viewer, and a base class with such a log.

`read_settings` and `check_settings` raise `BadInput` naming the field; `step` raises `IllegalMove` before anything has
changed.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from training.analysis import AnalysisZone
from training.errors import BadInput, IllegalMove
from training.games.actions import beside, canonical, check_move, clean
from training.reading import explain, in_words
from training.records import ALL, SPECTATOR, Action, Message, Move, Observation, Probe, Scenario, Seat, Viewer
from training.views import Line, TableView, Zone, news


class Settings(BaseModel):
    """Base of all games' settings: frozen, without unknown fields; forms are built from the fields' descriptions."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


S = TypeVar("S", bound=Settings)


def read_settings(model: type[S], scenario: Scenario) -> S:
    """Return the scenario's settings, validated; raise `BadInput` with the field's path."""
    try:
        return model.model_validate(scenario.settings)
    except ValidationError as error:
        where, why = explain(error)
        raise BadInput(why, f"settings.{where}" if where else "settings") from error


def check_settings(model: type[Settings], settings: Mapping[str, Any], *, strict: bool = True) -> None:
    """Raise `BadInput` with the field's path for a setting that is unknown, out of range, or of another type.

    `read_settings` converts "5" and 5.0 to a whole number, which stored games may hold; `strict` refuses them. The
    settings may be only a few: whether some are missing, and whether all fit together, is left to the game.
    """
    try:
        model.model_validate_json(json.dumps(settings, default=dict), strict=strict)
    except ValidationError as error:
        for problem in error.errors(include_url=False):
            path = problem["loc"]
            if path and not (len(path) == 1 and problem["type"] == "missing"):
                raise BadInput(in_words(problem), ".".join(map(str, ("settings", *path)))) from error


def check_names(scenario: Scenario, reserved: str) -> None:
    """Raise `BadInput` unless every name can be the target of an action.

    Such a name has single spaces, no angle brackets, and differs from the others and `reserved` regardless of case.
    """
    used = {reserved}
    for name in scenario.seats:
        if not name or clean(name) != name or set(name) & set("<>") or name.lower() in used:
            raise BadInput(f"a player cannot be called {name!r} here", "seats")
        used.add(name.lower())


def elimination(left: int | None, final: int) -> dict[str, float]:
    """Return the metrics of a seat that left the game in round `left` (None: never) of a game of `final` rounds."""
    if left is None or left >= final:
        return {"eliminated": 0.0}
    return {"eliminated": 1.0, "eliminated_round": float(left)}


@dataclass(frozen=True, slots=True)
class Reply:
    """A chosen move as others read it: the text for models, the lines for people."""

    text: str
    lines: tuple[Line, ...]


class Log:
    """One list of messages per viewer; the tool seat has the same list as ALL."""

    def __init__(self, seats: int) -> None:
        self._lines: dict[Viewer, list[Message]] = {viewer: [] for viewer in (*range(seats), SPECTATOR, ALL)}
        self._lines[seats] = self._lines[ALL]
        self.players: tuple[Seat, ...] = tuple(range(seats))

    def read(self, viewer: Viewer) -> tuple[Message, ...]:
        """Return all messages of `viewer` in order."""
        if viewer not in self._lines:
            raise ValueError(f"no such viewer: {viewer}")
        return tuple(self._lines[viewer])

    def add(self, viewer: Viewer, message: Message) -> None:
        """Show one message to one viewer; all methods below call this one."""
        self._lines[viewer].append(message)

    def tell(
        self,
        text: str,
        hearers: Collection[Viewer] | None = None,
        channel: str = "public",
        lines: tuple[Line, ...] | None = None,
    ) -> None:
        """Show a message of the game to `hearers` (None = everybody) and to ALL.

        `lines` are what people read of it; None = the same sentence.
        """
        message = Message(author=None, text=text, channel=channel, lines=news(text) if lines is None else lines)
        for viewer in self._hearers(hearers):
            self.add(viewer, message)

    def tell_each(
        self,
        texts: Mapping[Viewer, str],
        channel: str = "public",
        lines: Mapping[Viewer, tuple[Line, ...]] | None = None,
    ) -> None:
        """Show each viewer in `texts` its own message.

        `lines` are what people read of it at their places, nothing where a place is missing; None = the same sentence.
        """
        for viewer, text in texts.items():
            shown = news(text) if lines is None else lines.get(viewer, ())
            self.add(viewer, Message(author=None, text=text, channel=channel, lines=shown))

    def brief(self, texts: Mapping[Viewer, str], channel: str = "public") -> None:
        """Show each viewer in `texts` a message for models alone, such as the rules or a list of legal actions.

        People find the same facts in their view of the table.
        """
        self.tell_each(texts, channel, lines={})

    def say(
        self,
        replies: Mapping[Seat, Reply],
        hearers: Collection[Viewer] | None = None,
        channel: str = "public",
    ) -> None:
        """Show the seats' messages of one joint step: to each viewer its own first, then the others' in seat order.

        `hearers` (None = everybody) and ALL see all messages; a speaker who is not a hearer sees only its own.
        """
        messages = {
            seat: Message(author=seat, text=reply.text, channel=channel, lines=reply.lines)
            for seat, reply in sorted(replies.items())
        }
        heard = self._hearers(hearers)
        for viewer in (*self.players, SPECTATOR, ALL):
            if viewer in messages:
                self.add(viewer, messages[viewer])
            if viewer in heard:
                for message in (message for seat, message in messages.items() if seat != viewer):
                    self.add(viewer, message)

    def _hearers(self, hearers: Collection[Viewer] | None) -> tuple[Viewer, ...]:
        everybody = (*self.players, SPECTATOR, ALL)
        return everybody if hearers is None else tuple(v for v in everybody if v == ALL or v in hearers)


class LoggedGame(ABC):
    """A game over a `Log`. Subclasses define who acts, the offered actions, and the effect of a legal joint step."""

    def __init__(self, scenario: Scenario, max_chars: int, max_words: int = 0) -> None:
        """Raise `BadInput` for a name that is blank or has several lines, which would write lines of the rules."""
        for name in scenario.seats:
            if not name.strip() or name.splitlines() != [name]:
                raise BadInput(f"a player cannot be called {name!r}: a name is one line of text", "seats")
        self.scenario = scenario
        self.names = scenario.seats
        self._log = Log(len(scenario.seats))
        self._max_chars, self._max_words = max_chars, max_words
        self._steps = 0

    @abstractmethod
    def to_act(self) -> frozenset[Seat]:
        """Return the seats that must move now."""

    @abstractmethod
    def _offered(self, seat: Seat) -> tuple[Action, ...]:
        """Return the actions of a seat that is to act."""

    @abstractmethod
    def _apply(self, moves: Mapping[Seat, Move]) -> None:
        """Apply one legal move of each seat that was to act, in seat order."""

    def observe(self, viewer: Viewer) -> Observation:
        """Return everything that `viewer` was shown, and the actions that it may take now."""
        messages = self._log.read(viewer)
        if viewer not in self.to_act():
            return Observation(messages=messages)
        return Observation(
            messages=messages, actions=self._offered(viewer), max_chars=self._max_chars, max_words=self._max_words
        )

    def check(self, seat: Seat, move: Move) -> None:
        """Raise `IllegalMove`, saying why, unless `seat` may make `move` now."""
        if seat not in self.to_act():
            raise IllegalMove("it is not your turn" if self.to_act() else "the game is over")
        is_tool = seat == self.scenario.tool_seat
        if move.origin == ("seat" if is_tool else "tool") or (is_tool and move.origin == "forfeit"):
            raise IllegalMove(f"a move of origin {move.origin!r} cannot come from this seat")
        if move.origin != "forfeit":
            check_move(move, self._offered(seat), self._max_chars, self._max_words)

    def step(self, moves: Mapping[Seat, Move]) -> None:
        """Apply one move of exactly the seats of `to_act`; an illegal one changes nothing."""
        expected = self.to_act()
        if set(moves) != expected:
            raise IllegalMove(f"moves by seats {sorted(moves)} where {sorted(expected)} are to act")
        for seat, move in moves.items():
            self.check(seat, move)
        self._steps += 1
        self._apply(dict(sorted(moves.items())))

    def earned(self) -> Mapping[Seat, float]:
        """Return nothing: most games pay at their end alone."""
        return {}

    def in_reach(self) -> Mapping[Seat, float]:
        """Return nothing: in most games the rules do not tell."""
        return {}

    def seat_metrics(self) -> Mapping[Seat, Mapping[str, float]]:
        """Return no metrics."""
        return {}

    def roles(self) -> tuple[str, ...]:
        """Return no roles."""
        return ()

    def acting(self, viewer: Viewer) -> frozenset[Seat]:
        """Return the seats to act, which in most games everybody may know."""
        return self.to_act()

    def show(self, viewer: Viewer) -> TableView:
        """Return the table with its zones, which says that it is the viewer's turn."""
        ask = "It is your turn." if viewer in self.to_act() else ""
        return TableView(zones=self._zones(viewer), ask=ask)

    def _zones(self, viewer: Viewer) -> tuple[Zone, ...]:
        """Return no zones."""
        return ()

    def analysis(self) -> tuple[AnalysisZone, ...]:
        """Return nothing: most games have no analysis."""
        return ()

    def with_model_names(self, text: str) -> str:
        """Return the same text: in most games people and models read the same names."""
        return text

    def task(self) -> str:
        """Return no task."""
        return ""

    def probes(self) -> Mapping[Seat, Probe]:
        """Return no probes."""
        return {}

    def _reply(self, seat: Seat, move: Move) -> Reply:
        """Return a chosen move as others read it; a move without text reads as its tag to models."""
        action = next(action for action in self._offered(seat) if action.name == move.action)
        words, deed = beside(action, move), self._deed(seat, action, move)
        lines = [Line(kind="speech", text=words, seat=seat)] if words else []
        lines += [Line(kind="deed", text=deed, seat=seat)] if deed else []
        return Reply(move.text if move.text.strip() else canonical(action, move.args), tuple(lines))

    def _deed(self, seat: Seat, action: Action, move: Move) -> str:
        """Return what a seat does by its move, read after its name; nothing for speech, and for what the game tells."""
        if action.bare and not action.args:
            return ""
        words = " ".join(str(value) for value in move.args.values())
        return f"{(action.label or action.name.replace('_', ' ')).lower()}{': ' if words else ''}{words}"
