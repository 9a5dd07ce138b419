"""Tables to test at: small scenarios of both games, matches of two people, people against scripted players."""

import pytest

from training.records import Scenario


def negotiation(seed: int = 0, **settings) -> Scenario:
    """Two campers and their packages, 3 × 3 units; nobody's points are alike."""
    deal = {
        "kind": "items",
        "story": "Two campers share what is left in the hut.",
        "items": [{"name": "food", "count": 3}, {"name": "water", "count": 3}, {"name": "firewood", "count": 3}],
        "sides": [
            {"values": {"food": 5, "water": 4, "firewood": 3}, "reasons": {"food": "big appetite"}, "walk_away": 5},
            {"values": {"food": 3, "water": 4, "firewood": 5}, "reasons": {"firewood": "cold nights"}, "walk_away": 5},
        ],
    }
    return Scenario(
        id="hut",
        game="negotiation",
        seats=("Ann", "Ben"),
        seed=seed,
        settings={"deal": deal, "turn_limit": 6, **settings},
    )


def dialogue(seed: int = 0, **settings) -> Scenario:
    """Two neighbours with a secret each."""
    people = [
        {"profile": {"age": 40, "occupation": "baker", "secret": "owes rent"}, "goal": "Borrow the ladder."},
        {"profile": {"age": 35, "occupation": "nurse", "secret": "moving away"}, "goal": "Keep the ladder."},
    ]
    chosen = {"scenario": "Two neighbours meet at the fence.", "relationship": 2, "participants": people}
    return Scenario(
        id="fence", game="dialogue", seats=("Cleo", "Dan"), seed=seed, settings={**chosen, "turn_limit": 6, **settings}
    )


@pytest.fixture
def ben(person):
    return person("player", "ben")


@pytest.fixture
def two_people(player, ben):
    """A running negotiation between `player` (seat 0) and `ben` (seat 1)."""
    from webapp.arena.setup import tables, waiting_room

    places = [tables.Place(user=player), tables.Place(user=ben)]
    match = tables.create(host=player, start=tables.Start(negotiation()), places=places, consent=True)
    waiting_room.answer_consent(match=match, user=ben, agreed=True)
    match.refresh_from_db()
    return match
