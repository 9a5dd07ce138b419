"""A game whose first seat has an advantage that has nothing to do with skill, for tests of swapping."""

from pydantic import BaseModel

from training.games.base import GameSpec
from training.players.base import Reply
from training.records import Action, Message, Move, Observation, Scenario

SAY = Action(name="say", text="required", bare=True)
BIAS = 5.0


class Settings(BaseModel):
    level: float = 0.0


class Biased:
    """Each seat says a number once and gets it, plus the scenario's level; the first seat gets `BIAS` on top."""

    def __init__(self, scenario):
        self.scenario = scenario
        self.numbers = []

    def to_act(self):
        return frozenset({len(self.numbers)}) if len(self.numbers) < 2 else frozenset()

    def observe(self, viewer):
        messages = (Message(author=None, text="Say a number."),)
        messages += tuple(Message(author=seat, text=str(n)) for seat, n in enumerate(self.numbers))
        return Observation(messages=messages, actions=(SAY,) if viewer in self.to_act() else (), max_chars=20)

    def check(self, seat, move):
        pass

    def default(self, seat):
        return Move(action="say", origin="default")

    def step(self, moves):
        ((_, move),) = moves.items()
        self.numbers.append(float(move.text or 0))

    def returns(self):
        level = self.scenario.settings["level"]
        if len(self.numbers) < 2:
            return {0: None, 1: None}
        return {0: self.numbers[0] + level + BIAS, 1: self.numbers[1] + level}

    def roles(self):
        return ()

    def metrics(self):
        return {"total": sum(self.returns().values())}

    def earned(self):
        return {}

    def seat_metrics(self):
        return {seat: {"points": value} for seat, value in self.returns().items()}


SPEC = GameSpec(
    name="biased",
    title="Biased",
    summary="A test.",
    make=Biased,
    settings=Settings,
    players=(2, 2),
    low=-100,
    high=100,
    actions=("say",),
)


def scenarios(count):
    return [
        Scenario(id=f"s{i}", game="biased", settings={"level": float(i)}, seats=("Ann", "Ben")) for i in range(count)
    ]


class Says:
    """A player that says what a function of (seat, seed) returns."""

    def __init__(self, number):
        self.number = number

    async def act(self, seat, seen, seed):
        return Reply(text=str(self.number(seat, seed)))

    def traces(self):
        return ()
