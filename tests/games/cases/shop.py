"""Visits to the shop, in the generated catalogue; its products never change."""

from tests.games.cases.base import Secret, Worlds
from training.records import ALL, SPECTATOR, Scenario


def shop(**settings):
    return Scenario(id="shop", game="shop", settings=settings, seats=("Ada",))


def goal(**changes):
    """What P0290 is: wide-fit and reflective, sold in red and in size 11, for 156.28 dollars."""
    return {
        "instruction": "I need some wide-fit and reflective running shoes in red, size 11, for less than 170 dollars",
        "product": "P0290",
        "attributes": ["wide-fit", "reflective"],
        "options": ["red", "11"],
        "price_limit": 170,
        "best": 1,
        **changes,
    }


CASES = [
    shop(),
    shop(goal=goal(), turn_limit=2),
    shop(goal=goal(attributes=[], options=[], price_limit=None, best=None), turn_limit=30),
    shop(split="test"),
]

HIDDEN = goal(product="P0417", attributes=["a canary"], options=["a value of canaries"], price_limit=70, best=0.25)
WORLDS = [
    Worlds("what is wanted", viewer, shop(goal=goal()), shop(goal=HIDDEN), until=lambda a: not a.to_act())
    for viewer in (0, SPECTATOR)
]
SECRETS = [
    *(
        Secret(shop(goal=HIDDEN), text, frozenset({1, ALL}))
        for text in ("made from P0417", "attribute a canary", "value of canaries", "at most $70.00", "best purchase")
    ),
    Secret(shop(goal=HIDDEN), "You are Ada.", frozenset({0})),
]

PLAYTHROUGHS = [
    (
        "refusals, every page, and a purchase that misses one option",
        shop(goal=goal(), turn_limit=12),
        [
            (0, "<click>buy now</click>"),
            (0, "<think>What was it?</think>I begin. <search>reflective, wide-fit running shoes</search>"),
            (0, "<search>cheaper ones</search>"),
            *[(0, "<click>next page</click>"), (0, "<click>previous page</click>"), (0, "<click>P0290</click>")],
            (0, "<click>blue</click>"),
            *[(0, "Let me see. <click>features</click>"), (0, "<click>buy now</click>")],
            *[(0, "<click>previous page</click>"), (0, "<click>description</click>")],
            *[(0, "<click>previous page</click>"), (0, "<click>RED</click>"), (0, "<click>6</click>")],
            (0, "<click>Buy Now</click>"),
        ],
    ),
    (
        "silence, a search without results, and the last turn",
        shop(goal=goal(), turn_limit=4),
        [(0, "!timeout"), (0, "!default"), (0, "<search>zzyzx</search>"), (0, "<click>back to search</click>")],
    ),
    ("giving up", shop(goal=goal()), [(0, "<search>shoes</search>"), (0, "!forfeit")]),
]
