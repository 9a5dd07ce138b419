"""What the contract tests need to know of each game: varied scenarios, worlds that a seat must not tell apart, and
secrets with those who may read them. A new game adds its entries here, or `test_games.py` fails.
"""

from collections.abc import Callable
from dataclasses import dataclass

from training.games import Game
from training.records import ALL, SPECTATOR, Move, Scenario

NAMES = ("Ada", "Ben")


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


def person(mark, **fields):
    """A profile whose every field carries `mark`."""
    texts = ("occupation", "public_info", "personality_and_values", "secret", "big_five", "decision_making_style")
    return {"age": 40, "gender": "Woman", **{name: f"{name} {mark}" for name in texts}, **fields}


def dialogue(people=None, **settings):
    people = people or [
        {
            "goal": "Borrow the car (<extra_info>The train is late. <strategy_hint>Be kind.</strategy_hint>)",
            "profile": person("of Ada"),
        },
        {"goal": "Keep the car", "profile": person("of Ben")},
    ]
    settings = {"scenario": "Two people stand in a garage.", "participants": people, **settings}
    return Scenario(id="talk", game="dialogue", settings=settings, seats=NAMES)


def strategic(game, **settings):
    return Scenario(id=game, game=game, settings=settings, seats=NAMES)


GIVEN = [{"seat": 0, "text": "Good morning."}, {"seat": 1, "kind": "nonverbal", "text": "waves"}]

CASES = {
    "negotiation": [
        items(),
        items(first_seat=None, turn_limit=5, prosocial=0.3, max_chars=40),
        price(),
        price(first_seat=1, turn_limit=2, prosocial=1),
    ],
    "dialogue": [
        dialogue(),
        dialogue(order="simultaneous", relationship=5, turns_per_seat=5),
        dialogue(order="simultaneous", goal_check=True, turn_limit=7),
        dialogue(order="random", relationship=2, given=GIVEN, turn_limit=9),
        dialogue(order="random", fixed_order=[1, 1, 0], goal_check=True, goal_check_every=2, turns_per_seat=3),
        dialogue(kinds=["speak"], first_seat=None, given=GIVEN[:1], max_chars=30),
    ],
    "tic_tac_toe": [strategic("tic_tac_toe"), strategic("tic_tac_toe", opening=[4, 0, 8])],
    "connect_four": [strategic("connect_four"), strategic("connect_four", opening=[3, 3])],
    "kuhn_poker": [strategic("kuhn_poker"), strategic("kuhn_poker", fixed=[2, 0], opening=[0])],
    "leduc_poker": [strategic("leduc_poker"), strategic("leduc_poker", fixed=[2, 2, 0], opening=[1, 1])],
    "hanabi": [
        strategic("hanabi"),
        strategic("hanabi", size="simple", fixed=[0, 1, 2, 3, 4]),
    ],
}


@dataclass(frozen=True)
class Worlds:
    """Two scenarios that differ only in what `viewer` may not know.

    `until(a)`: whether the rules have brought it to light by now. `across(a, b, moves)`: the joint step of b that looks
    to the viewer like `moves` of a; the same one, unless hidden roles move by themselves.
    """

    name: str
    viewer: int
    a: Scenario
    b: Scenario
    until: Callable[[Game], bool] = lambda a: False
    across: Callable[[Game, Game, dict[int, Move]], dict[int, Move]] = lambda a, b, moves: moves


@dataclass(frozen=True)
class Secret:
    """A canary in a scenario, and the viewers whose output may contain it."""

    scenario: Scenario
    text: str
    readers: frozenset[int]


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


HIDDEN_AT = {
    0: ("age", "gender", "pronouns", "occupation", "public_info", "personality_and_values"),
    1: ("age", "gender", "pronouns", "occupation", "public_info", "personality_and_values"),
    2: ("personality_and_values",),
    3: (),
    4: (),
    5: (),
}
NEVER_SHOWN = ("secret", "big_five", "decision_making_style", "mbti", "first_name", "last_name")


def _dialogue_worlds():
    worlds = []
    for relationship, fields in HIDDEN_AT.items():
        for order in ("alternating", "simultaneous", "random"):
            for viewer in (0, 1):
                hidden = dict.fromkeys((*fields, *NEVER_SHOWN), "changed")
                if "age" in hidden:
                    hidden["age"] = 99
                mine = {"goal": "Mine", "profile": person("mine")}
                other_a = {"goal": "One (<extra_info>x</extra_info>)", "profile": person("theirs")}
                other_b = {"goal": "A longer other goal", "profile": person("theirs", **hidden)}
                pairs = [[mine, other] if viewer == 0 else [other, mine] for other in (other_a, other_b)]
                a, b = (dialogue(p, relationship=relationship, order=order, goal_check=True) for p in pairs)
                worlds.append(Worlds(f"the other at {relationship}, {order}", viewer, a, b))
    people = [[{"goal": f"Goal {n}{m}", "profile": person(f"{n}{m}")} for m in "ab"] for n in (1, 2)]
    scenes = ["Here.<p viewer='agent_0'>One</p>", "Here.<p viewer='agent_0'>Other</p>"]
    worlds.append(Worlds("all private parts", SPECTATOR, dialogue(people[0]), dialogue(people[1])))
    a, b = (dialogue(scenario=scene) for scene in scenes)
    worlds += [Worlds("a marked part of the scene", viewer, a, b) for viewer in (1, SPECTATOR)]
    return worlds


def _shown(game):
    return not game.to_act() and bool(game.view.showdown(game.state))


def _poker_worlds(game, pairs):
    """`pairs`: (what differs, viewer, a deal, another deal); the public card is the same in both."""
    return [
        Worlds(name, viewer, strategic(game, fixed=a), strategic(game, fixed=b), _shown) for name, viewer, a, b in pairs
    ]


KUHN_DEALS = [
    ("the second card", 0, [2, 0], [2, 1]),
    ("the first card", 1, [0, 1], [2, 1]),
    ("both cards", SPECTATOR, [0, 1], [1, 2]),
]
LEDUC_DEALS = [
    ("the second card", 0, [2, 0, 1], [2, 2, 1]),
    ("a pair of the other", 0, [0, 1, 2], [0, 2, 2]),
    ("the first card", 1, [0, 1, 2], [1, 1, 2]),
    ("both cards", SPECTATOR, [0, 1, 2], [2, 0, 2]),
]


def _told(*seats):
    """Whether anything was said about the hands of `seats`: a card of theirs pointed out, played or discarded."""

    def until(game):
        lines = [m for m in game.observe(ALL).messages[1:] if "<answer>" in m.text and "GAME STATE" not in m.text]
        return any((1 - at % 2 if "Reveal" in line.text else at % 2) in seats for at, line in enumerate(lines))

    return until


def _hanabi_worlds():
    """Own cards in another order, and the cards still to come. The cards of a hand are the same, so are the hints."""
    first, second, rest = [0, 1, 2], [0, 2, 3], [0, 2]
    pairs = [
        ("own hand", 0, first + second + rest, [2, 0, 1, *second, *rest], _told(0)),
        ("own hand", 1, first + second + rest, [*first, 3, 0, 2, *rest], _told(1)),
        ("both hands", SPECTATOR, first + second + rest, [2, 0, 1, 3, 0, 2, *rest], _told(0, 1)),
        ("the cards to come", SPECTATOR, first + second + rest, [*first, *second, 2, 0], _told(0, 1)),
    ]
    return [
        Worlds(name, viewer, strategic("hanabi", fixed=a), strategic("hanabi", fixed=b), until)
        for name, viewer, a, b, until in pairs
    ]


WORLDS = {
    "negotiation": _negotiation_worlds(),
    "dialogue": _dialogue_worlds(),
    "kuhn_poker": _poker_worlds("kuhn_poker", KUHN_DEALS),
    "leduc_poker": _poker_worlds("leduc_poker", LEDUC_DEALS),
    "hanabi": _hanabi_worlds(),
}


def _negotiation_secrets():
    sides = [_item_side((5, 4, 3), reasons={"oil": f"canary{n}"}) for n in (0, 1)]
    scenario = items(sides)
    bargain = price([{"target": 100, "reason": "canary0"}, {"target": 200, "reason": "canary1"}])
    return [Secret(s, f"canary{n}", frozenset({n, ALL, 2})) for s in (scenario, bargain) for n in (0, 1)]


def _dialogue_secrets():
    secrets = []
    for relationship in range(6):
        people = [
            {
                "goal": f"goal{n} <extra_info>extra{n}</extra_info>",
                "profile": {
                    "public_info": f"public{n}",
                    "personality_and_values": f"values{n}",
                    "secret": f"secret{n}",
                    "big_five": f"traits{n}",
                },
            }
            for n in (0, 1)
        ]
        scenario = dialogue(people, relationship=relationship, goal_check=True)
        everything = frozenset({ALL, 2})
        for n in (0, 1):
            own, both = everything | {n}, everything | {0, 1}
            secrets += [
                Secret(scenario, f"goal{n}", own),
                Secret(scenario, f"extra{n}", own),
                Secret(scenario, f"secret{n}", own),
                Secret(scenario, f"traits{n}", everything),
                Secret(scenario, f"public{n}", both if relationship >= 2 else own),
                Secret(scenario, f"values{n}", both if relationship >= 3 else own),
            ]
    return secrets


def _strategic_secrets():
    """What a seat is told of a deal; in Hanabi the second card of the other's hand, which nobody touches by seed 3."""
    kuhn, leduc = strategic("kuhn_poker", fixed=[2, 0]), strategic("leduc_poker", fixed=[2, 0, 1])
    found = {
        scenario.game: [
            Secret(scenario, "your card is King (K)", frozenset({0})),
            Secret(scenario, "your card is Jack (J)", frozenset({1})),
            Secret(scenario, "Deal: Ada has King (K), Ben has Jack (J)", frozenset({ALL, 2})),
        ]
        for scenario in (kuhn, leduc)
    }
    hanabi = strategic("hanabi", fixed=[0, 1, 2, 0, 2, 3])
    return found | {
        "hanabi": [
            Secret(hanabi, "(R2): Ada knows", frozenset({1, ALL, 2})),
            Secret(hanabi, "(Y2): Ben knows", frozenset({0, ALL, 2})),
        ]
    }


SECRETS = {"negotiation": _negotiation_secrets(), "dialogue": _dialogue_secrets(), **_strategic_secrets()}
