"""Boards and cards over OpenSpiel."""

from tests.games.cases.base import NAMES, Secret, Worlds
from training.records import ALL, SPECTATOR, Scenario


def strategic(game, **settings):
    return Scenario(id=game, game=game, settings=settings, seats=NAMES)


CASES = {
    "tic_tac_toe": [strategic("tic_tac_toe"), strategic("tic_tac_toe", opening=[4, 0, 8])],
    "connect_four": [strategic("connect_four"), strategic("connect_four", opening=[3, 3])],
    "kuhn_poker": [strategic("kuhn_poker"), strategic("kuhn_poker", fixed=[2, 0], opening=[0])],
    "leduc_poker": [strategic("leduc_poker"), strategic("leduc_poker", fixed=[2, 2, 0], opening=[1, 1])],
    "hanabi": [
        strategic("hanabi"),
        strategic("hanabi", size="simple", fixed=[0, 1, 2, 3, 4]),
    ],
}


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
    "kuhn_poker": _poker_worlds("kuhn_poker", KUHN_DEALS),
    "leduc_poker": _poker_worlds("leduc_poker", LEDUC_DEALS),
    "hanabi": _hanabi_worlds(),
}


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


SECRETS = _strategic_secrets()
