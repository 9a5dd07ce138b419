"""Negotiations over items and over a price."""

from tests.games.cases.base import NAMES, Secret, Worlds
from training.records import ALL, SPECTATOR, Scenario


def items(sides=None, **settings):
    deal = {
        "kind": "items",
        "story": "Two campers meet at a trail head.",
        "items": [{"name": "food", "count": 3}, {"name": "tent pegs", "count": 2}, {"name": "oil", "count": 1}],
        "sides": sides
        or [
            {"values": {"food": 5, "tent pegs": 4, "oil": 3}, "walk_away": 5, "reasons": {"food": "I am hungry."}},
            {"values": {"food": 2, "tent pegs": 1, "oil": 9}, "walk_away": 0},
        ],
    }
    return Scenario(id="items", game="negotiation", settings={"deal": deal, **settings}, seats=NAMES)


def price(sides=None, **settings):
    deal = {
        "kind": "price",
        "title": "Red canoe",
        "description": "Dry.\nHardly used.",
        "listing_price": 300,
        "sides": sides or [{"target": 180, "reason": "My savings end there."}, {"target": 280}],
    }
    return Scenario(id="price", game="negotiation", settings={"deal": deal, **settings}, seats=NAMES)


CASES = [
    items(),
    items(first_seat=None, turn_limit=5, prosocial=0.3, max_chars=40),
    price(),
    price(first_seat=1, turn_limit=2, prosocial=1),
]


def _item_side(values, **more):
    return {"values": dict(zip(("food", "tent pegs", "oil"), values, strict=True)), **more}


def _negotiation_worlds():
    known = _item_side((5, 4, 3), walk_away=5, reasons={"oil": "known"})
    hidden = [
        _item_side((2, 1, 9), reasons={"food": "one reason"}),
        _item_side((7, 0, 1), walk_away=8, reasons={"oil": "another"}),
    ]
    worlds = []
    for viewer in (0, 1):
        a, b = ([known, other] if viewer == 0 else [other, known] for other in hidden)
        worlds += [
            Worlds(f"items of the other, {settings}", viewer, items(a, **settings), items(b, **settings))
            for settings in ({}, {"prosocial": 0.5, "turn_limit": 6})
        ]
    seller = [{"target": 260, "reason": "one"}, {"target": 300, "reason": "another"}]
    buyer = [{"target": 100, "reason": "one"}, {"target": 200, "reason": "another"}]
    worlds += [
        Worlds("the seller's target", 0, price([buyer[0], seller[0]]), price([buyer[0], seller[1]])),
        Worlds("the buyer's target", 1, price([buyer[0], seller[0]]), price([buyer[1], seller[0]])),
        Worlds("both targets", SPECTATOR, price([buyer[0], seller[0]]), price([buyer[1], seller[1]])),
        Worlds("all points", SPECTATOR, items([known, hidden[0]]), items([hidden[1], hidden[0]])),
    ]
    return worlds


WORLDS = _negotiation_worlds()


def _negotiation_secrets():
    sides = [_item_side((5, 4, 3), reasons={"oil": f"canary{n}"}) for n in (0, 1)]
    scenario = items(sides)
    bargain = price([{"target": 100, "reason": "canary0"}, {"target": 200, "reason": "canary1"}])
    return [Secret(s, f"canary{n}", frozenset({n, ALL, 2})) for s in (scenario, bargain) for n in (0, 1)]


SECRETS = _negotiation_secrets()

DEAL = "<propose>food 2, tent pegs 2, oil 0</propose>"
PLAYTHROUGHS = [
    (
        "items: talk, refusals, a rejected and an accepted proposal",
        items(),
        [
            (0, "<think>I want food.</think>Hello, what do you need?"),
            (1, "<accept/>"),
            (1, "Oil, above all."),
            (0, "<propose>food 3, tent pegs 2</propose>"),
            (0, "<propose>food 3, tent pegs 2, oil 1</propose>"),
            (1, "That is all of it! <reject/>"),
            (1, "Try again."),
            (0, f"Better? {DEAL}"),
            (1, "I will <accept/>"),
        ],
    ),
    (
        "items: silence and the turn limit, with a prosocial weight",
        items(turn_limit=4, prosocial=0.25, first_seat=1),
        [(1, "!timeout"), (0, DEAL), (1, "!default"), (1, "Too late?")],
    ),
    ("items: giving up", items(), [(0, "Hello"), (1, "!forfeit")]),
    (
        "price: offers and a deal",
        price(),
        [(0, "<propose>$190</propose>"), (1, "<reject/>"), (1, "<propose>240</propose>"), (0, "Fine. <accept/>")],
    ),
    ("price: walking away", price(first_seat=1), [(1, "300, no less."), (0, "Then no. <walk away/>")]),
]
