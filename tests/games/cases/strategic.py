"""Boards and cards over OpenSpiel."""

from tests.games.cases.base import NAMES, Secret, Worlds
from training.records import ALL, SPECTATOR, Scenario


def strategic(game, **settings):
    return Scenario(id=game, game=game, settings=settings, seats=NAMES)


CASES = [
    strategic("tic_tac_toe"),
    strategic("tic_tac_toe", opening=[4, 0, 8]),
    strategic("connect_four"),
    strategic("connect_four", opening=[3, 3]),
    strategic("kuhn_poker"),
    strategic("kuhn_poker", fixed=[2, 0], opening=[0]),
    strategic("leduc_poker"),
    strategic("leduc_poker", fixed=[2, 2, 0], opening=[1, 1]),
    strategic("hanabi"),
    strategic("hanabi", size="simple", fixed=[0, 1, 2, 3, 4]),
]


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


def _hinted(*seats):
    """Whether anything was said about the hands of `seats`: a card of theirs pointed out, played or discarded."""

    def until(game):
        lines = [m for m in game.observe(ALL).messages[1:] if "<answer>" in m.text and "GAME STATE" not in m.text]
        return any((1 - at % 2 if "Reveal" in line.text else at % 2) in seats for at, line in enumerate(lines))

    return until


def _hanabi_worlds():
    """Own cards in another order, and the cards still to come. The cards of a hand are the same, so are the hints."""
    first, second, rest = [0, 1, 2], [0, 2, 3], [0, 2]
    pairs = [
        ("own hand", 0, first + second + rest, [2, 0, 1, *second, *rest], _hinted(0)),
        ("own hand", 1, first + second + rest, [*first, 3, 0, 2, *rest], _hinted(1)),
        ("both hands", SPECTATOR, first + second + rest, [2, 0, 1, 3, 0, 2, *rest], _hinted(0, 1)),
        ("the cards to come", SPECTATOR, first + second + rest, [*first, *second, 2, 0], _hinted(0, 1)),
    ]
    return [
        Worlds(name, viewer, strategic("hanabi", fixed=a), strategic("hanabi", fixed=b), until)
        for name, viewer, a, b, until in pairs
    ]


WORLDS = [
    *_poker_worlds("kuhn_poker", KUHN_DEALS),
    *_poker_worlds("leduc_poker", LEDUC_DEALS),
    *_hanabi_worlds(),
]


def _strategic_secrets():
    """What a seat reads of a deal; in Hanabi the second card of the other's hand, which nobody touches by seed 3."""
    kuhn, leduc = strategic("kuhn_poker", fixed=[2, 0]), strategic("leduc_poker", fixed=[2, 0, 1])
    hanabi = strategic("hanabi", fixed=[0, 1, 2, 0, 2, 3])
    poker = [
        (scenario, text, readers)
        for scenario in (kuhn, leduc)
        for text, readers in (
            ("your card is King (K)", {0}),
            ("your card is Jack (J)", {1}),
            ("Deal: Ada has King (K), Ben has Jack (J)", {ALL, 2}),
        )
    ]
    hands = [(hanabi, "(R2): Ada knows", {1, ALL, 2}), (hanabi, "(Y2): Ben knows", {0, ALL, 2})]
    return [Secret(scenario, text, frozenset(readers)) for scenario, text, readers in (*poker, *hands)]


SECRETS = _strategic_secrets()

PLAYTHROUGHS = [
    (
        "three in a row, with refusals, reasoning and a time-out",
        strategic("tic_tac_toe"),
        [
            (0, "<think>The middle.</think><answer><X(1,1)></answer>"),
            (1, "<answer><O(1,1)></answer>"),
            (1, "The corner, then. <answer>o(0,0)</answer>"),
            (0, "(2,1)"),
            (0, "<answer><x(2,1)></answer>"),
            (1, "!timeout"),
            (0, "<answer>< X(0,2) ></answer>"),
            (1, "<answer><O(2,0)></answer>"),
            (0, "<answer><X(1,2)></answer>"),
            (1, "<answer><O(1,0)></answer>"),
        ],
    ),
    (
        "four in a column after an opening",
        strategic("connect_four", opening=[3, 0]),
        [(seat, f"<answer><{mark}({column})></answer>") for seat, mark, column in [(0, "X", 3), (1, "O", 0)] * 2]
        + [(0, "<answer><X(3)></answer>")],
    ),
    ("giving up", strategic("connect_four"), [(0, "<answer><X(6)></answer>"), (1, "!forfeit")]),
    (
        "a showdown",
        strategic("kuhn_poker", fixed=[2, 0]),
        [
            (0, "I wait. <answer><PASS></answer>"),
            (1, "A bluff! <answer><BET></answer>"),
            (0, "<answer>BET</answer>"),
        ],
    ),
    (
        "a bet that is not answered",
        strategic("kuhn_poker", fixed=[0, 1]),
        [(0, "<answer><BET></answer>"), (1, "!default")],
    ),
    (
        "a pair in the second round",
        strategic("leduc_poker", fixed=[0, 2, 0]),
        [
            (0, "<answer><CALL></answer>"),
            (1, "<answer><RAISE></answer>"),
            (0, "<answer><CALL></answer>"),
            (0, "<answer><FOLD></answer>"),
            (0, "<answer><RAISE></answer>"),
            (1, "<answer><CALL></answer>"),
        ],
    ),
    (
        "a raise and a fold",
        strategic("leduc_poker", fixed=[0, 2]),
        [(0, "<answer><RAISE></answer>"), (1, "<answer><FOLD></answer>")],
    ),
    (
        "mini: all stacks finished",
        strategic("hanabi", fixed=[0, 1, 2, 3, 0, 2, 0, 2]),
        [
            (0, "<answer><Reveal player +1 rank 2></answer>"),
            (1, "<answer><Reveal player +1 color R></answer>"),
            (0, "<answer><Play card 0></answer>"),
            (1, "<answer><Reveal player +1 color Y></answer>"),
            (0, "<answer><Play card 1></answer>"),
            (1, "<answer><Play card 0></answer>"),
            (0, "<answer><Play card 0></answer>"),
        ],
    ),
    (
        "simple: three wrong cards",
        strategic("hanabi", size="simple", fixed=[1, 5, 0, 0, 0, 3, 2, 2, 2, 4]),
        [
            (0, "<answer><Play card 0></answer>"),
            (1, "<answer><Play card 0></answer>"),
            (0, "<answer><Play card 0></answer>"),
        ],
    ),
]
