"""The household as a state machine: every turn one command, which does something or nothing.

Settings that do not fit raise `BadInput`; moves that are not possible raise `IllegalMove` and change nothing. A command
that does not work is a move: it is answered with `words.NOTHING`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from training.errors import BadInput
from training.games.household import alfworld, board, table, words
from training.games.household.commands import BY_NAME, offered
from training.games.household.generated import generate
from training.games.household.planner import Command, plan
from training.games.household.settings import Home, HouseholdSettings
from training.games.household.state import share
from training.games.household.world import Room, World, check
from training.games.log import LoggedGame, read_settings
from training.games.prose import count
from training.records import ALL, SPECTATOR, Action, Move, Scenario, Seat, Viewer
from training.seeding import rng
from training.views import Brief, Line, TableView, news

MOST_CHARS = 200
"""Characters of the names in a command that are no names of the room."""


class Household(LoggedGame):
    """One seat, one task."""

    def __init__(self, scenario: Scenario) -> None:
        self.settings = read_settings(HouseholdSettings, scenario)
        super().__init__(scenario, MOST_CHARS)
        self._room, self._task, secrets, self._shortest = _room(self.settings, scenario.seed)
        self._turn = 0
        self._nothing = 0
        self._reached = share(self._room.task, self._room.state)
        self._won = self._room.won
        self._actions = offered(self._room.choices())
        self._forfeit = False
        self._secrets = secrets
        self._latest: table.Deed | None = None
        self._outcome = self._moment = ""
        self._open()

    def _open(self) -> None:
        """Show the rules, to `ALL` with what is hidden, then the room."""
        name, limit = self.names[0], self.settings.turn_limit
        rules = {addressed: words.opening(name, self._task, limit, addressed=addressed) for addressed in (True, False)}
        everything = words.opening(name, self._task, limit, addressed=False, secrets=self._secrets)
        self._log.brief({0: rules[True]}, channel="private")
        self._log.brief({SPECTATOR: rules[False], ALL: everything})
        self._log.tell(self._room.around(), lines=())

    # --- the protocol ---

    def to_act(self) -> frozenset[Seat]:
        over = self._forfeit or self._won or self._turn == self.settings.turn_limit
        return frozenset() if over else frozenset({0})

    def _offered(self, seat: Seat) -> tuple[Action, ...]:
        return self._actions

    def default(self, seat: Seat) -> Move:
        """Return a look around, which changes nothing."""
        return Move(action="look", origin="default")

    def returns(self) -> Mapping[Seat, float | None]:
        return {0: None} if self.to_act() else {0: self._result()}

    def _result(self) -> float:
        return float(self._won and not self._forfeit)

    def in_reach(self) -> Mapping[Seat, float]:
        """Return the largest share of the task's subgoals that was reached so far.

        It never falls, so that what was lost and regained counts once.
        """
        return {0: self._reached if self.to_act() else self._result()}

    def metrics(self) -> Mapping[str, float]:
        """Return numbers of an ended game; `shortest` only where a shortest plan is known."""
        if self.to_act():
            return {}
        return {
            "success": self._result(),
            "subgoals": self._reached,
            "turns": float(self._turn),
            "nothing": float(self._nothing),
            **({"shortest": float(self._shortest)} if self._shortest else {}),
            "forfeit": float(self._forfeit),
        }

    def _phase(self) -> str:
        """Return how many turns are left."""
        return f"{count(self.settings.turn_limit - self._turn, 'turn')} left" if self.to_act() else ""

    def show(self, viewer: Viewer) -> TableView:
        """Return the room; `ALL` also sees what is hidden."""
        acts, over = viewer in self.to_act(), not self.to_act()
        name = table.YOU if viewer == 0 else self.names[0]
        hidden = Brief(title="Behind the task", text=tuple(self._secrets.splitlines()))
        return TableView(
            zones=board.zones(self._room, self._happened(name), presses=acts),
            phase=self._phase(),
            mood="over" if over else "",
            ask=table.ask(self._room.state.at) if acts else "",
            story=f"{self._task[:1].upper()}{self._task[1:]}",
            rules=table.rules(self.settings.turn_limit),
            brief=hidden if viewer in (ALL, self.scenario.tool_seat) else None,
            headline=table.headline(self._turn, won=self._won) if over else "",
            moment=f"{name} {self._moment}" if over else "",
        )

    def task(self) -> str:
        """Return the task as a sentence."""
        return self._task

    # --- one turn ---

    def _apply(self, moves: Mapping[Seat, Move]) -> None:
        ((seat, move),) = moves.items()
        self._turn += 1
        if move.origin == "forfeit":
            self._forfeit, self._moment = True, f"gave up in step {self._turn}."
            why = words.gives_up(self.names[seat])
            self._log.tell(words.failure(why), lines=news(f"{why} The task is not done."))
            return
        if move.origin == "seat":
            self._log.say({seat: self._reply(seat, move)})
        else:
            deed = Line(kind="deed", text=self._deed(seat, BY_NAME[move.action], move), seat=seat)
            lines = (*news(f"{self.names[seat]} does not answer."), deed)
            self._log.tell(words.unchosen(self.names[seat], words.order(move.action, move.args)), lines=lines)
        self._latest = table.deed(self._actions, move.action, move.args, self._room.state.lit)
        seen = self._room.act(move.action, move.args)
        self._nothing += seen == words.NOTHING
        self._reached = max(self._reached, share(self._room.task, self._room.state))
        self._won, self._actions = self._room.won, offered(self._room.choices())
        self._outcome = table.outcome(self._room, move.action, move.args, seen)
        if not self.to_act():
            limit = self.settings.turn_limit
            self._moment = table.moment(move.action, move.args, self._turn) if self._won else table.used_up(limit)
        lines = tuple(line for text in (self._outcome, self._ending_in_words()) if text for line in news(text))
        self._log.tell(" ".join(part for part in (seen, self._ending()) if part), lines=lines)

    def _deed(self, seat: Seat, action: Action, move: Move) -> str:
        return table.deed(self._actions, action.name, move.args, self._room.state.lit).by()

    def _happened(self, name: str) -> str:
        """Return the latest command and what came of it, with the name of who gave it; nothing before the first."""
        return f"{self._latest.by(name)}. {self._outcome}".strip() if self._latest else ""

    def _ending(self) -> str:
        """Return how the game has ended, or how many turns are left where that should be known."""
        left = self.settings.turn_limit - self._turn
        if self._won:
            return words.success(self._turn)
        return words.remaining(left) if left else words.failure(words.out_of_turns(self.settings.turn_limit))

    def _ending_in_words(self) -> str:
        """Return how the game has ended, for people."""
        if self._won:
            return f"The task is done in {count(self._turn, 'turn')}."
        limit = self.settings.turn_limit
        return f"{words.out_of_turns(limit)} The task is not done." if self._turn == limit else ""


def _room(settings: HouseholdSettings, seed: int) -> tuple[Room, str, str, int]:
    """Return the room, the task as a sentence, what is hidden in words, and the length of a shortest plan or 0."""
    if settings.alfworld:
        if settings.home is not None:
            raise BadInput("cannot be combined with settings.alfworld: leave out one of them", "settings.home")
        room = alfworld.start(settings.alfworld, settings.sha256, seed)
        return room, room.sentence, words.of_alfworld(room.name), 0
    home, steps = _home(settings, seed)
    sentence = words.task(home.task, rng(seed, "household", "words").randrange(2))
    return World(home), sentence, words.secrets(home, [words.order(*step) for step in steps]), len(steps)


def _home(settings: HouseholdSettings, seed: int) -> tuple[Home, Sequence[Command]]:
    if settings.home is None:
        return generate(settings, seed)
    check(settings.home)
    return settings.home, plan(settings.home, settings.turn_limit)
