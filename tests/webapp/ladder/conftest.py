"""A model, and a small league of a person, a model and a script."""

import pytest


@pytest.fixture
def good(db):
    from tests.webapp.ladder.make import model

    return model("good")


@pytest.fixture
def league(researcher, player, good):
    """Twelve matches: a person and a model against a script, and against each other, from both seats."""
    from tests.webapp.ladder.make import played

    for first, second, value in (
        (player, "scripted", 1.0),
        ("scripted", player, 0.4),
        (good, "scripted", 1.0),
        ("scripted", good, 0.4),
        (player, good, 0.5),
        (good, player, 0.5),
    ):
        for _ in range(2):
            played(first, second, returns=(value, 1 - value), host=researcher, moves=[(0, "seat", []), (1, "seat", [])])
