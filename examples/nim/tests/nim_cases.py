"""Cases of Nim for Parley's contract tests: PARLEY_CASES=nim_cases."""

from training.records import Scenario


def nim(**settings):
    """A scenario with some settings."""
    return Scenario(id="nim", game="nim", settings=settings, seats=("Ada", "Ben"))


CASES = [nim(), nim(heaps=[1], first_seat=1), nim(heaps=[1, 2, 3, 4, 5, 6])]
PLAYTHROUGHS = [
    (
        "a refusal, and the last stick",
        nim(heaps=[2, 1], first_seat=0),
        [(0, "<take>2 from B</take>"), (0, "<take>1 from A</take>"), (1, "!timeout"), (0, "<take>1 from B</take>")],
    ),
]
