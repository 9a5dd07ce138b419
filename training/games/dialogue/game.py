"""The dialogue as a state machine: speak, non-verbal communication, action, none, leave; a tool seat may report a goal.

Settings that do not fit raise `BadInput`; moves that are not possible raise `IllegalMove` and change nothing. Returns
are None until a judge outside the game has spoken; only who gave up the game has lost already.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

from training.games.actions import clean
from training.games.dialogue import table, words
from training.games.dialogue.order import Order
from training.games.dialogue.settings import DialogueSettings, Kind
from training.games.log import LoggedGame, read_settings
from training.records import ALL, SPECTATOR, Action, Argument, Move, Scenario, Seat, Viewer
from training.views import Line, TableView

LOW, HIGH = -30 / 7, 40 / 7
"""Bounds of the mean of the seven social dimensions: three of 0..10, two of -10..0, two of -5..5."""

NOBODY = "nobody"
GOAL = Action(
    name="goal",
    args=(Argument(name="reached", kind="choice", choices=(NOBODY, "0", "1", "both")),),
    text="none",
    label="Report who has reached its goal",
)
_WHAT = (Argument(name="what", kind="text"),)
_ACTIONS = {
    "speak": Action(name="speak", text="required", bare=True, label="Speak"),
    "nonverbal": Action(name="nonverbal", args=_WHAT, label="Non-verbal communication (gesture, look, tone)"),
    "action": Action(name="action", args=_WHAT, label="Physical action"),
    "none": Action(name="none", text="none", label="Do nothing this turn"),
    "leave": Action(name="leave", label="Leave and end the conversation"),
}
End = Literal["leave", "goal", "silence", "limit", "forfeit"]
SILENT_TURNS = 2


_OVER: Mapping[End, str] = {
    "leave": "The conversation is over.",
    "goal": "The conversation is over: a goal has been reached.",
    "silence": "The conversation is over: both stayed silent.",
    "limit": "The conversation is over: all turns are used up.",
    "forfeit": "The conversation is over.",
}


def _line(seat: Seat, kind: Kind, text: str) -> Line:
    """Return a turn before the game as people read it."""
    if kind == "speak":
        return Line(kind="speech", seat=seat, text=text)
    return Line(kind="deed", seat=seat, text=table.deed(kind, text))


class Dialogue(LoggedGame):
    """Two participants, and a tool seat if goals are checked."""

    def __init__(self, scenario: Scenario) -> None:
        settings = read_settings(DialogueSettings, scenario)
        super().__init__(scenario, settings.max_chars)
        self.settings = settings
        self._actions = tuple(_ACTIONS[kind] for kind in settings.kinds)
        self._order = Order(settings, scenario.seed)
        self._silent = [0, 0]
        self._checked = 0
        self._reached = NOBODY
        self._end: End | None = None
        self._losers: frozenset[Seat] = frozenset()
        self._leavers: frozenset[Seat] = frozenset()
        self._gestures = ["", ""]
        self._last: frozenset[Seat] = frozenset()
        self._next = self._order.first()
        self._open()

    def _open(self) -> None:
        """Show each viewer the rules with its private facts, the earlier rounds, and who begins."""
        texts = {v: words.opening(self.settings, self.names, self._actions, v) for v in (0, 1, SPECTATOR, ALL)}
        self._log.brief({seat: texts[seat] for seat in (0, 1)}, channel="private")
        self._log.brief({viewer: texts[viewer] for viewer in (SPECTATOR, ALL)})
        if self.settings.given:
            earlier = tuple(_line(turn.seat, turn.kind, clean(turn.text)) for turn in self.settings.given)
            self._log.tell(words.earlier_turns(self.names, self.settings.given), lines=earlier)
        verb = "continue" if self.settings.given else "begin"
        both = len(self._next) > 1
        self._log.tell(f"Both {verb}." if both else f"{self.names[min(self._next)]} {verb}s.")

    # --- the protocol ---

    def to_act(self) -> frozenset[Seat]:
        return frozenset() if self._end else self._next

    def _offered(self, seat: Seat) -> tuple[Action, ...]:
        return (GOAL,) if seat == self.scenario.tool_seat else self._actions

    def default(self, seat: Seat) -> Move:
        if seat == self.scenario.tool_seat:
            return Move(action=GOAL.name, args={"reached": NOBODY}, origin="default")
        return Move(action="none" if "none" in self.settings.kinds else "speak", origin="default")

    def returns(self) -> Mapping[Seat, float | None]:
        return {seat: LOW if seat in self._losers else None for seat in (0, 1)}

    def metrics(self) -> Mapping[str, float]:
        if not self._end:
            return {}
        ends = {f"end_{end}": float(self._end == end) for end in get_args(End)}
        return {"turns": float(sum(self._order.turns)), **ends}

    def seat_metrics(self) -> Mapping[Seat, Mapping[str, float]]:
        if not self._end:
            return {}
        by_seat = {seat: {"turns": float(turns)} for seat, turns in enumerate(self._order.turns)}
        if self.settings.goal_check:
            for seat, metrics in by_seat.items():
                metrics["goal"] = float(self._reached in (str(seat), "both"))
        return by_seat

    # --- for people ---

    def show(self, viewer: Viewer) -> TableView:
        """Return the scene with its two participants."""
        turns = sum(self._order.turns)
        return TableView(
            zones=(table.scene(self.settings, self.names, self._gestures, viewer),),
            phase="" if self._end else table.phase(self.settings, turns),
            mood="over" if self._end else "",
            ask=table.ask(self.settings) if viewer in (0, 1) and viewer in self.to_act() else "",
            story=table.story(self.settings, viewer),
            rules=table.rules(self.settings),
            brief=table.brief(self.settings, self.names, viewer) if viewer in (0, 1) else None,
            headline=table.headline(self._end, self.names, self._enders(viewer), viewer) if self._end else "",
            moment=table.moment(self._end, self.names, self._enders(SPECTATOR), turns) if self._end else "",
        )

    def _enders(self, viewer: Viewer) -> frozenset[Seat]:
        """Return who left, gave up, or reached its goal, as far as a viewer may know."""
        if self._end == "goal":
            sees_all = viewer in (ALL, self.scenario.tool_seat)
            return frozenset(seat for seat in (0, 1) if sees_all and self._reached in (str(seat), "both"))
        return self._losers if self._end == "forfeit" else self._leavers

    def _deed(self, seat: Seat, action: Action, move: Move) -> str:
        return table.deed(move.action, clean(str(move.args.get("what", ""))))

    # --- one turn ---

    def _apply(self, moves: Mapping[Seat, Move]) -> None:
        if self.scenario.tool_seat in moves:
            self._report(str(moves[self.scenario.tool_seat].args["reached"]))
            return
        self._log.say({seat: self._reply(seat, move) for seat, move in moves.items() if move.origin == "seat"})
        for seat, move in moves.items():
            self._tell(seat, move)
            self._order.turns[seat] += 1
            gestures = move.origin == "seat" and move.action == "nonverbal"
            self._gestures[seat] = clean(str(move.args["what"])) if gestures else ""
            silent = move.action == "none" or move.origin != "seat"
            self._silent[seat] = self._silent[seat] + 1 if silent else 0
        self._last = frozenset(moves)
        self._losers = frozenset(seat for seat, move in moves.items() if move.origin == "forfeit")
        self._leavers = frozenset(seat for seat, move in moves.items() if move.action == "leave")
        if self._losers:
            self._finish("forfeit")
        elif self._leavers:
            self._finish("leave")
        elif self._goal_due():
            self._next = frozenset({self.scenario.tool_seat})
        else:
            self._pass_on()

    def _tell(self, seat: Seat, move: Move) -> None:
        """Show what a move other than speech does, and who gives up or does not answer."""
        name = self.names[seat]
        if move.origin == "forfeit":
            self._log.tell(f"{name} gives up the game.")
        elif move.origin != "seat":
            self._log.tell(f"{name} does not answer.")
        elif move.action != "speak":
            text = f"{name} {words.deed(move.action, clean(str(move.args.get('what', ''))))}"
            self._log.tell(text, lines=())  # people read it as what the seat did

    def _goal_due(self) -> bool:
        """Return whether the tool seat acts now, and record it."""
        turns = sum(self._order.turns)
        if not self.settings.goal_check or turns - self._checked < self.settings.goal_check_every:
            return False
        self._checked = turns
        return True

    def _report(self, reached: str) -> None:
        """Apply the tool seat's report; only viewers who may see everything learn whose goal was reached."""
        if reached == NOBODY:
            self._pass_on()
            return
        self._reached = reached
        who = self.names if reached == "both" else (self.names[int(reached)],)
        self._log.tell_each({ALL: f"Goal reached by: {', '.join(who)}."}, lines={})  # people read it in the headline
        self._finish("goal")

    def _pass_on(self) -> None:
        """End the game by silence or limit, or determine who is next."""
        if min(self._silent) >= SILENT_TURNS:
            self._finish("silence")
            return
        self._next = self._order.after(self._last)
        if not self._next:
            self._finish("limit")
        elif self._next == self._last and len(self._next) == 1:
            self._log.tell(f"{self.names[min(self._next)]} has the next turn as well.")

    def _finish(self, end: End) -> None:
        self._end = end
        self._log.tell(_OVER[end])
