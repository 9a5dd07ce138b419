"""Dialogues of people who know each other more or less."""

from tests.games.cases.base import NAMES, Secret, Worlds
from training.records import ALL, SPECTATOR, Scenario


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


OPENING_TURNS = [{"seat": 0, "text": "Good morning."}, {"seat": 1, "kind": "nonverbal", "text": "waves"}]

CASES = [
    dialogue(),
    dialogue(order="simultaneous", relationship=5, turns_per_seat=5),
    dialogue(order="simultaneous", goal_check=True, turn_limit=7),
    dialogue(order="random", relationship=2, given=OPENING_TURNS, turn_limit=9),
    dialogue(order="random", fixed_order=[1, 1, 0], goal_check=True, goal_check_every=2, turns_per_seat=3),
    dialogue(kinds=["speak"], first_seat=None, given=OPENING_TURNS[:1], max_chars=30),
]

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


WORLDS = _dialogue_worlds()


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
            knower, both = everything | {n}, everything | {0, 1}
            secrets += [
                Secret(scenario, f"goal{n}", knower),
                Secret(scenario, f"extra{n}", knower),
                Secret(scenario, f"secret{n}", knower),
                Secret(scenario, f"traits{n}", everything),
                Secret(scenario, f"public{n}", both if relationship >= 2 else knower),
                Secret(scenario, f"values{n}", both if relationship >= 3 else knower),
            ]
    return secrets


SECRETS = _dialogue_secrets()

PLAYTHROUGHS = [
    (
        "friends take turns",
        dialogue(relationship=3),
        [
            (0, "Hi Ben, may I have the car?"),
            (1, "<nonverbal>scratches his head</nonverbal>"),
            (0, "<none/>"),
            (1, "Well. <action>hides the key</action>"),
            (0, "!timeout"),
            (1, "I must go. <leave/>"),
        ],
    ),
    (
        "strangers at the same time, with a goal check",
        dialogue(order="simultaneous", goal_check=True, relationship=0),
        [
            (0, "Is this your car?"),
            (1, "Nice weather."),
            (2, "<goal>nobody</goal>"),
            (0, "Please."),
            (1, "Take it."),
            (2, "<goal>0</goal>"),
        ],
    ),
    (
        "acquaintances by chance, after two opening turns, to the limit",
        dialogue(order="random", fixed_order=[0, 0, 1], given=OPENING_TURNS, relationship=2, turn_limit=3),
        [(0, "So."), (0, "Well?"), (1, "Hm.")],
    ),
    (
        "family, both silent",
        dialogue(relationship=5),
        [(0, "<none/>"), (1, "<none/>"), (0, "<none/>"), (1, "!default")],
    ),
]
