"""The household as a state machine: every turn one command, which does something or nothing.

Settings that do not fit raise `BadInput`; moves that are not possible raise `IllegalMove` and change nothing. A command
that does not work is a move: it is answered with `words.NOTHING`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from training.errors import BadInput
from training.games.household import alfworld, board, words
from training.games.household.commands import offered
from training.games.household.generated import generate
from training.games.household.planner import Command, plan
from training.games.household.settings import Home, HouseholdSettings
from training.games.household.state import share
from training.games.household.world import Room, World, check
from training.games.log import LoggedGame, read_settings
from training.games.prose import count
from training.records import ALL, SPECTATOR, Action, Move, Scenario, Seat, Viewer
from training.seeding import rng
from training.views import Cells

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
        self._seen = self._room.around()
        self._open(secrets)

    def _open(self, secrets: str) -> None:
        """Show the rules, to `ALL` with what is hidden, then the room."""
        name, limit = self.names[0], self.settings.turn_limit
        rules = {addressed: words.opening(name, self._task, limit, addressed=addressed) for addressed in (True, False)}
        everything = words.opening(name, self._task, limit, addressed=False, secrets=secrets)
        self._log.tell_each({0: rules[True]}, channel="private")
        self._log.tell_each({SPECTATOR: rules[False], ALL: everything})
        self._log.tell(self._seen)

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

    def phase(self, viewer: Viewer) -> str:
        """Return how many turns are left."""
        return f"{count(self.settings.turn_limit - self._turn, 'turn')} left" if self.to_act() else ""

    def _zones(self, viewer: Viewer) -> tuple[Cells, ...]:
        """Return what was seen last, what is carried, and what can be done."""
        return board.zones(self._room, self._seen)

    def task(self) -> str:
        """Return the task as a sentence."""
        return self._task

    # --- one turn ---

    def _apply(self, moves: Mapping[Seat, Move]) -> None:
        ((seat, move),) = moves.items()
        self._turn += 1
        if move.origin == "forfeit":
            self._forfeit = True
            self._log.tell(words.failure(words.gives_up(self.names[seat])))
            return
        if move.origin == "seat":
            self._log.say({seat: self._reply(seat, move)})
        else:
            self._log.tell(words.unchosen(self.names[seat], words.order(move.action, move.args)))
        self._seen = self._room.act(move.action, move.args)
        self._nothing += self._seen == words.NOTHING
        self._reached = max(self._reached, share(self._room.task, self._room.state))
        self._won, self._actions = self._room.won, offered(self._room.choices())
        self._log.tell(" ".join(part for part in (self._seen, self._ending()) if part))

    def _ending(self) -> str:
        """Return how the game has ended, or how many turns are left where that should be known."""
        left = self.settings.turn_limit - self._turn
        if self._won:
            return words.success(self._turn)
        return words.remaining(left) if left else words.failure(words.out_of_turns(self.settings.turn_limit))


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
