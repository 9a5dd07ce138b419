"""Ships with an imposter aboard."""

from tests.games.cases.base import Secret, Worlds
from training.records import ALL, SPECTATOR, Scenario

CREW = ("Ada", "Ben", "Cleo", "Dan", "Eva")
CORRIDOR = [[0, 0], [0, 0], [1, 0], [2, 0]]


def among_us(seats=CREW, imposter=None, rooms=None, **settings):
    """A small ship of 2 by 1 rooms; with `imposter` the roles and the tasks' rooms are stated, else drawn."""
    settings = {"width": 2, "height": 1, "rounds": 15, "cooldown": 3, "tasks": 3, **settings}
    if imposter is not None:
        rooms = rooms or [[[0, 0], [0, 0], [1, 0]] for _ in seats]
        settings["deal"] = {"imposter": imposter, "tasks": rooms}
    return Scenario(id="ship", game="among_us", settings=settings, seats=tuple(seats))


CASES = [
    among_us(),
    among_us(CREW[:3], width=1, height=2, cooldown=1, wait=4, rounds=20, probes=False, limit_winner="crew"),
    among_us(CREW[:4], 2, [CORRIDOR] * 4, tasks=4, width=3, cooldown=1, task_time=1, skip=False, rounds=9),
    among_us(discussion=0, words=5, max_chars=40, rounds=16, cooldown=2, task_reward=1),
]


def _among_us_worlds():
    """The imposter is another (nobody can kill in time), or the others' tasks are elsewhere (until it matters)."""
    mine, other = ([[0, 0]] * west + [[1, 0]] * (10 - west) for west in (5, 4))
    often = [mine] * 5
    calm = {"tasks": 10, "cooldown": 100, "rounds": 15}
    worlds = [
        Worlds(
            f"the imposter is {a} or {b}",
            viewer,
            among_us(CREW, a, often, **calm),
            among_us(CREW, b, often, **calm),
            until=lambda game: not game.to_act(),
        )
        for viewer, a, b in ((0, 1, 2), (1, 4, 0), (3, 2, 1), (SPECTATOR, 0, 3))
    ]
    for viewer in (0, 1, SPECTATOR):
        dealt = [mine if seat == viewer else other for seat in range(5)]
        a, b = (among_us(CREW, 1, rooms, tasks=10, cooldown=2, rounds=40) for rooms in (often, dealt))
        worlds.append(Worlds("where the others work", viewer, a, b, until=_somebody_has_done_four_tasks))
    return worlds


def _somebody_has_done_four_tasks(game):
    lines = " ".join(message.text for message in game.observe(ALL).messages)
    return any(lines.count(f"{name} is done with a task") == 4 for name in CREW)


WORLDS = _among_us_worlds()


def _among_us_secrets():
    """Roles, and tasks in corners too far away to be reached."""
    corners = [[7, 7], [7, 6], [6, 7], [6, 6], [7, 5]]
    scenario = among_us(CREW, 1, [[corner] for corner in corners], width=8, height=8, tasks=1, rounds=12)
    everything = frozenset({ALL, len(CREW)})
    tasks = []
    for seat in (2, 3, 4):  # the rules name the first seat's room, as the last of the map; an imposter has no tasks
        room = "({},{})".format(*corners[seat])  # on everybody's map, so that only the words around it are secret
        tasks.append(Secret(scenario, f": {room}", frozenset({seat})))
        tasks.append(Secret(scenario, f"{CREW[seat]} {room}", everything))
    return [*tasks, Secret(scenario, "You are Ben, the imposter", frozenset({1}))]


SECRETS = _among_us_secrets()

PLAYTHROUGHS = [
    (
        "a kill that one sees, a wrong vote, and all work done",
        among_us(CREW, 1, [[[1, 0]]] * 5, tasks=1, rounds=40),
        [
            (0, "<wait/>"),
            (1, "<think>After Cleo.</think>I will be alone with her. <go>east</go>"),
            (2, "<go>east</go>"),
            (3, "<task/>"),
            (3, "!default"),
            (4, "<go>east</go>"),
            (0, "<wait/>"),
            (3, "<wait/>"),
            (1, "<kill>Cleo</kill>"),
            (2, "<task/>"),
            (4, "<wait/>"),
            (1, "<kill>Eva</kill>"),
            (1, "<go>west</go>"),
            (4, "<report>Cleo</report>"),
            (4, "I saw Ben kill her."),
            (1, "Not true! It was Eva."),
            (0, "Hm."),
            (3, "!timeout"),
            (4, "Vote for Ben."),
            (1, "Eva."),
            (0, "It is one of you two."),
            (3, "I cannot tell." + " I was here, and have seen nothing." * 3),
            (3, "I cannot tell."),
            (0, "<vote>Eva</vote>"),
            (1, "She knows. <vote>Eva</vote>"),
            (3, "<vote>skip</vote>"),
            (4, "<vote>Ben</vote>"),
            (0, "<go>east</go>"),
            (1, "<task/>"),
            (3, "<go>east</go>"),
            (0, "<task/>"),
            (1, "<wait/>"),
            (3, "<task/>"),
        ],
    ),
    (
        "somebody gives up and is killed, and nobody may skip",
        among_us(CREW[:4], 0, cooldown=1, discussion=1, skip=False),
        [
            (0, "<task/>"),
            (1, "<task/>"),
            (2, "<task/>"),
            (3, "!forfeit"),
            (0, "<kill>Dan</kill>"),
            (1, "<wait/>"),
            (2, "<task/>"),
            (0, "<go>east</go>"),
            (1, "<report>Dan</report>"),
            (2, "It was Ada."),
            (0, "No!"),
            (1, "!default"),
            (0, "!timeout"),
            (1, "<vote>skip</vote>"),
            (1, "<vote>Ada</vote>"),
            (2, "<vote>Ada</vote>"),
        ],
    ),
]
