"""A small game with all that a table must be able to show: a hidden phase, a board, roles, a channel, bounded words.

At night one seat alone, whom the others do not know, names somebody; by day everybody presses a lamp at once, or says
up to three words. The seed says who the watcher is.
"""

import pytest

from training.games import REGISTRY
from training.games.base import GameSpec
from training.games.log import LoggedGame, Settings
from training.records import ALL, Action, Argument, Move, Probe, Scenario
from training.views import Brief, Cell, Cells

LAMPS = (("A", "B"), ("C", "D"))


class VigilSettings(Settings):
    """Nothing can be set."""


class Vigil(LoggedGame):
    """Two steps: the watcher's night, everybody's day."""

    def __init__(self, scenario):
        super().__init__(scenario, max_chars=100, max_words=3)
        self.watcher = scenario.seed % len(scenario.seats)
        self.night, self.over = True, False
        self.lit = ""
        self._log.tell("A vigil.", lines=())
        self._log.tell("You are the watcher.", {self.watcher}, channel="watchers")

    def to_act(self):
        if self.over:
            return frozenset()
        return frozenset({self.watcher}) if self.night else frozenset(range(len(self.names)))

    def acting(self, viewer):
        return self.to_act() if not self.night or viewer in {self.watcher, ALL} else frozenset()

    def _offered(self, seat):
        if self.night:
            others = tuple(name for number, name in enumerate(self.names) if number != seat)
            return (Action(name="name", args=(Argument(name="who", kind="choice", choices=others),), text="private"),)
        lamps = tuple(lamp for row in LAMPS for lamp in row)
        press = Action(name="answer", args=(Argument(name="lamp", kind="choice", choices=lamps, marked=True),))
        return (press, Action(name="talk", text="required", bare=True))

    def _apply(self, moves):
        if self.night:
            self.night = False
            self._log.tell(f"{moves[self.watcher].args['who']} is named.", {self.watcher}, channel="watchers")
            self._log.tell("Morning comes.")
            return
        self.over = True
        self.lit = str(moves[0].args.get("lamp", ""))
        self._log.say({seat: self._reply(seat, move) for seat, move in moves.items() if move.origin == "seat"})

    def default(self, seat):
        action = self._offered(seat)[0]
        return Move(action=action.name, args={action.args[0].name: action.args[0].choices[0]}, origin="default")

    def returns(self):
        return dict.fromkeys(range(len(self.names)), 0.0 if self.over else None)

    def metrics(self):
        return {}

    def earned(self):
        return {}

    def seat_metrics(self):
        return {}

    def roles(self):
        return tuple("watcher" if seat == self.watcher else "sleeper" for seat in range(len(self.names)))

    def probes(self):
        if self.night or self.over:
            return {}
        others = {seat: [name for name in self.names if name != asked] for seat, asked in enumerate(self.names)}
        watcher = self.names[self.watcher]
        return {
            seat: Probe(question="Who watched?", choices=names, truth=[name for name in names if name == watcher])
            for seat, names in others.items()
        }

    def show(self, viewer):
        view = super().show(viewer)
        ended = {"headline": "The vigil is over.", "moment": "Morning came."} if self.over else {}
        watches = Brief(title="You are the watcher.") if viewer == self.watcher else None
        phase = "" if self.over else "Night" if self.night else "Day"
        return view.model_copy(update={"story": "A vigil.", "phase": phase, "brief": watches, **ended})

    def _zones(self, viewer):
        if self.night:
            return ()
        free = viewer in self.to_act()
        cell = {lamp: "lit" if lamp == self.lit else lamp for row in LAMPS for lamp in row}
        rows = tuple(
            tuple(Cell(text=cell[lamp], label=f"lamp {lamp}", choice=lamp if free else "") for lamp in row)
            for row in LAMPS
        )
        return (Cells(title="Lamps", rows=rows), Cells(title="Names", rows=(tuple(Cell(text=n) for n in self.names),)))


SPEC = GameSpec(
    name="vigil",
    title="Vigil",
    summary="A test of the table.",
    make=Vigil,
    settings=VigilSettings,
    players=(2, 12),
    low=-1,
    high=1,
    deadline_s=60,
    actions=("name", "answer"),
    marks=("A", "B", "C", "D"),
    script="training.players.random:make",
    opponents=("mcts:100", "nash"),
)
NAMES = ("Ada", "Bo", "Cy", "Di", "Eve", "Flo", "Gus", "Hal", "Ida", "Jo", "Kim", "Lou")


def vigil(seats=3, seed=0):
    return Scenario(id="vigil", game="vigil", seats=NAMES[:seats], seed=seed)


@pytest.fixture
def registered(monkeypatch):
    """The game in the registry, for one test."""
    monkeypatch.setitem(REGISTRY, "vigil", SPEC)
