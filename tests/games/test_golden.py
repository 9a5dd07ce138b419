"""What every viewer sees of fixed playthroughs is what it saw before; a change of wording is a change to be read."""

import pytest

from tests.games.golden import FOLDER, PLAYTHROUGHS, text
from training.games import REGISTRY


@pytest.mark.parametrize("name", REGISTRY)
def test_golden_playthroughs(name):
    assert PLAYTHROUGHS[name]
    expected = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    assert text(name) == expected, "if the change is meant: python -m tests.games.golden --write, and read the diff"
