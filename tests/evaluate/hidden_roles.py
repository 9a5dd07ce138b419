"""A game of six hidden roles without talk, for tests of sides: every seat says a number, the wolves' sum decides."""

from pydantic import BaseModel

from training.games.base import GameSpec
from training.records import Action, Message, Move, Observation, Scenario

SAY = Action(name="say", text="required", bare=True)
ROLES = ("villager", "werewolf", "seer", "villager", "werewolf", "villager")


class Settings(BaseModel):
    pass


class Hidden:
    """All seats say a number at once. The wolves win if the mean of theirs is above the mean of the others'."""

    def __init__(self, scenario):
        self.scenario = scenario
        self.numbers = {}

    def to_act(self):
        return frozenset() if self.numbers else frozenset(range(6))

    def observe(self, viewer):
        message = Message(author=None, text="Say a number.")
        return Observation(messages=(message,), actions=(SAY,) if viewer in self.to_act() else (), max_chars=20)

    def check(self, seat, move):
        pass

    def default(self, seat):
        return Move(action="say", text="0", origin="default")

    def step(self, moves):
        self.numbers = {seat: float(move.text) for seat, move in moves.items()}

    def _won(self, seat):
        wolves = [n for seat, n in self.numbers.items() if ROLES[seat] == "werewolf"]
        others = [n for seat, n in self.numbers.items() if ROLES[seat] != "werewolf"]
        return float((ROLES[seat] == "werewolf") == (sum(wolves) / 2 > sum(others) / 4))

    def returns(self):
        return {seat: self._won(seat) if self.numbers else None for seat in range(6)}

    def metrics(self):
        return {"wolves_win": self._won(1)}

    def earned(self):
        return {}

    def seat_metrics(self):
        return {seat: {"won": self._won(seat)} for seat in range(6)}

    def roles(self):
        return ROLES

    def probes(self):
        return {}


SPEC = GameSpec(
    name="hidden", title="Hidden", summary="A test.", make=Hidden, settings=Settings, players=(6, 6), low=0, high=1,
    symmetric=False, actions=("say",),
)  # fmt: skip


def scenarios(count):
    return [Scenario(id=f"h{i}", game="hidden", seats=tuple("ABCDEF")) for i in range(count)]
