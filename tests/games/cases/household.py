"""Rooms of the household: drawn from a seed, and stated."""

from tests.games.cases.base import Secret, Worlds
from training.records import ALL, SPECTATOR, Scenario


def household(**settings):
    return Scenario(id="household", game="household", settings=settings, seats=("Ada",))


def home(family="heat", wanted="apple", target="diningtable", **contents):
    """A kitchen in which apple 7 is in drawer 2; contents replace what is in a receptacle, by its name with `_`."""
    receptacles = {
        "countertop 1": ["knife 1", "mug 2"],
        "diningtable 1": [],
        "drawer 1": ["spoon 1"],
        "drawer 2": ["apple 7"],
        "fridge 1": ["egg 1"],
        "microwave 1": [],
        "sinkbasin 1": ["mug 1"],
    }
    receptacles |= {name.replace("_", " "): things for name, things in contents.items()}
    return {"receptacles": receptacles, "task": {"family": family, "object": wanted, "receptacle": target}}


STUDY = {
    "receptacles": {
        "bed 1": ["book 1"],
        "desk 1": ["desklamp 1", "pen 2"],
        "drawer 1": ["pen 1", "watch 3"],
        "shelf 1": ["vase 1"],
    },
    "task": {"family": "look_under_light", "object": "watch", "receptacle": "desklamp"},
}

CASES = [
    household(),
    household(family="two_objects", room="bathroom", receptacles=15, distractors=5, turn_limit=20),
    household(family="cool", split="test", distractors=60, receptacles=34),
    household(home=home(), turn_limit=15),
    household(home=STUDY),
]

MOVED = home(drawer_2=[], fridge_1=["egg 1", "apple 7"])


def brought_to_light(game):
    """Whether one of the receptacles whose contents differ was opened."""
    texts = [message.text for message in game.observe(ALL).messages]
    return any(text.startswith(("You open the drawer 2.", "You open the fridge 1.")) for text in texts)


WORLDS = [
    Worlds("what is behind closed doors", viewer, household(home=home()), household(home=MOVED), until=brought_to_light)
    for viewer in (0, SPECTATOR)
]
SECRETS = [
    *(
        Secret(household(home=home()), text, frozenset({1, ALL}))
        for text in ("At first there is", "drawer 2: apple 7", "A shortest plan: go to drawer 2")
    ),
    Secret(household(home=home()), "You are Ada.", frozenset({0})),
]

PLAYTHROUGHS = [
    (
        "refusals, commands that do nothing, and every command once",
        household(home=home()),
        [
            *[(0, "dance"), (0, "take apple 7"), (0, "look"), (0, "Open fridge 1."), (0, "go to the moon")],
            *[(0, "<think>Where?</think> go to drawer 2"), (0, "take apple 7 from drawer 2"), (0, "open drawer 2")],
            (0, "The apple is here. <take>apple 7 from drawer 2</take>"),
            *[(0, "take apple 7 from drawer 2"), (0, "close drawer 2"), (0, "put apple 7 in drawer 2")],
            *[(0, "inventory"), (0, "examine apple 7"), (0, "heat apple 7 with microwave 1")],
            *[(0, "go to sinkbasin 1"), (0, "clean apple 7 using sinkbasin 1"), (0, "examine apple 7")],
            *[(0, "go to fridge 1"), (0, "cool apple 7 with fridge 1"), (0, "look at fridge 1")],
            *[(0, "go to microwave 1"), (0, "heat apple 7 with microwave 1"), (0, "examine apple 7"), (0, "look")],
            *[(0, "go to diningtable 1"), (0, "toggle desklamp 1"), (0, "MOVE APPLE 7 TO DININGTABLE 1")],
        ],
    ),
    (
        "under a lamp",
        household(home=STUDY),
        [
            *[(0, "go to desk 1"), (0, "use desklamp 1"), (0, "toggle desklamp 1"), (0, "take desklamp 1 from desk 1")],
            *[(0, "go to drawer 1"), (0, "open drawer 1"), (0, "pick up watch 3 from drawer 1"), (0, "go to desk 1")],
            (0, "toggle desklamp 1"),
        ],
    ),
    ("silence until the last turn", household(home=home(), turn_limit=15), [(0, "!timeout"), *[(0, "!default")] * 14]),
    ("giving up", household(home=STUDY), [(0, "go to shelf 1"), (0, "!forfeit")]),
]
