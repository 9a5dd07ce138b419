"""Villages with werewolves."""

from tests.games.cases.base import Secret, Worlds
from training.games.actions import tag
from training.games.werewolf import NINE, SIX
from training.games.werewolf.actions import aimed
from training.games.werewolf.words import a_role
from training.records import ALL, SPECTATOR, Scenario

TOWN = ("Ada", "Ben", "Cleo", "Dan", "Eve", "Finn", "Gus", "Hal", "Ida", "Jon", "Kim", "Leo")


def werewolf(roles=SIX, **settings):
    return Scenario(
        id=f"village of {len(roles)}", game="werewolf", settings={"roles": roles, **settings}, seats=TOWN[: len(roles)]
    )


def spoke(*days):
    """Who speaks on each day, in order."""
    return [{"event": "speakers", "day": day, "seats": list(seats)} for day, seats in enumerate(days, 1)]


def dealt(*roles, **settings):
    """A village whose roles are stated by seat."""
    return werewolf(roles, deal=roles, **settings)


WATCHED = ("werewolf", "werewolf", "guard", "doctor", "seer", "hunter", "villager", "villager")
ARMED = ("hunter", "hunter", "witch", "seer", "werewolf", "werewolf", "villager", "guard", "seer", "witch")

CASES = [
    werewolf(),
    werewolf(NINE, reveal=False, tie="runoff", last_words="all", wolf_win="side", dead_see="all", rounds=2),
    werewolf(order="simultaneous", tie="random", wolf_tie="random", last_words="nobody", wolf_talk=0, probes=True),
    werewolf(order="bid", spectator_delay=0, wolf_talk=2, first_night_kill=False, self_save=False, max_words=9),
    werewolf(WATCHED, max_words=0, max_chars=40, spectator_delay=3, wolf_tie="nobody", day_limit=3, reveal=False),
    dealt(*ARMED, dead_see="all", reveal=False, last_words="all", day_limit=4),
    dealt("villager", "werewolf", "villager", fixed=spoke([2, 2, 0], [1]), day_limit=1, tie="runoff"),
]


def _across(first, second, viewer, *, other_words=False):
    """What seats do in the world where `first` and `second` have swapped roles: at night each what the other did, to
    the other one. What the viewer does or sees done is the same: its own moves, and the pack's for a wolf.
    """
    swap = {first: second, second: first}
    names = {TOWN[a]: TOWN[b] for a, b in swap.items()}

    def turned(move):
        args = {name: names.get(value, value) for name, value in move.args.items()}
        text = tag(aimed(move.action, (args["target"],)), args) if move.text and args else move.text
        if other_words and move.action == "whisper" and move.text:
            text = "something else"
        return move.model_copy(update={"args": args, "text": text})

    def across(a, b, moves):
        if not a.show(ALL).phase.startswith("Night"):
            return moves
        seen = set(range(len(a.names))) if viewer != SPECTATOR and a.roles()[viewer] == "werewolf" else {viewer}
        return {swap.get(s, s): turned(m) if s in swap or s not in seen else m for s, m in moves.items()}

    return across


def _inspected(first, second, viewer):
    """Whether the rules have shown `viewer` what `first` or `second` is: by a death, or by what it did to them or was
    told of them in private.
    """
    names = {TOWN[first], TOWN[second]}

    def until(a):
        died = {place.seat for place in a.show(ALL).zones[0].places if place.out}
        lines = [line.text for line in a.observe(viewer).messages[1:] if line.channel == "private"]
        private = any(name in text for text in lines if text.startswith(("You ", "The werewolves")) for name in names)
        ghost = viewer in died and a.settings.dead_see == "all"
        return bool(died & {first, second}) or private or ghost or not a.to_act()

    return until


def _werewolf_worlds():
    six = ("villager", "seer", "werewolf", "werewolf", "witch", "villager")
    watched = ("guard", "villager", "werewolf", "hunter", "seer", "doctor", "werewolf", "villager", "villager")
    settings = [
        {},
        {"order": "simultaneous", "wolf_talk": 2, "tie": "random", "wolf_tie": "random", "reveal": False},
        {"order": "bid", "dead_see": "all", "last_words": "all", "spectator_delay": 0, "first_night_kill": False},
        {"tie": "runoff", "wolf_tie": "nobody", "rounds": 2, "wolf_win": "side", "last_words": "nobody"},
    ]
    pairs = [
        (six, 0, (1, 2)),  # a villager, and who of two is the seer and who the wolf
        (six, 0, (3, 4)),
        (six, 1, (4, 5)),  # the seer, and who is the witch
        (six, 1, (3, 4)),
        (six, 2, (4, 5)),  # a wolf, and who is the witch
        (six, 4, (1, 2)),
        (watched, 0, (2, 3)),
        (watched, 1, (6, 7)),
        (watched, 3, (5, 6)),
        (watched, 5, (1, 2)),
        (six, SPECTATOR, (1, 2)),
        (six, SPECTATOR, (4, 5)),
        (watched, SPECTATOR, (2, 3)),
    ]
    worlds = []
    for at, (roles, viewer, (first, second)) in enumerate(pairs):
        for more in (settings[0], settings[1 + at % 3]):
            other = list(roles)
            other[first], other[second] = other[second], other[first]
            worlds.append(
                Worlds(
                    f"{roles[first]} and {roles[second]} swapped, {more}",
                    viewer,
                    dealt(*roles, **more),
                    dealt(*other, **more),
                    until=_inspected(first, second, viewer),
                    across=_across(first, second, viewer, other_words=more is not settings[0]),
                )
            )
    return worlds


WORLDS = _werewolf_worlds()


def _werewolf_secrets():
    roles = ("seer", "witch", "werewolf", "guard", "werewolf", "doctor", "villager", "villager", "hunter")
    scenario, everything = dealt(*roles), frozenset({ALL, len(roles)})
    addressed = {role: frozenset(s for s, its in enumerate(roles) if its == role) for role in dict.fromkeys(roles)}
    secrets = [Secret(scenario, f"You are {a_role(role)}.", seats) for role, seats in addressed.items()]
    secrets += [
        Secret(scenario, "The other werewolves: Cleo.", frozenset({4})),
        Secret(scenario, '"channel":"wolves"', everything | addressed["werewolf"]),
        Secret(scenario, "The pack votes", everything | addressed["werewolf"]),
        Secret(scenario, "<inspect>", addressed["seer"] | everything),
        Secret(scenario, "You look at", addressed["seer"]),
        Secret(scenario, "Ada looks at", everything),
        Secret(scenario, "The werewolves attack", addressed["witch"]),
        Secret(scenario, "watches over", everything),
    ]
    return secrets


SECRETS = _werewolf_secrets()

PLAYTHROUGHS = [
    (
        "six: a saved victim, a wolf voted out, a wolf poisoned",
        dealt("werewolf", "werewolf", "seer", "witch", "villager", "villager", fixed=spoke(range(6))),
        [
            *[(0, "Let us attack Eve."), (1, "Eve it is.")],
            *[(0, "<kill>Ben</kill>"), (0, "<kill>Eve</kill>"), (1, "She is quiet. <kill>eve</kill>")],
            (2, "<inspect>Ada</inspect>"),
            (3, "<save/>"),
            *[(0, "<vote>Ben</vote>"), (0, "Good morning."), (1, "Good that nobody died.")],
            *[(2, "I am the seer. I looked at Ada: Ada is a werewolf."), (3, "Then I vote for Ada.")],
            *[(4, "Me too."), (5, "!timeout")],
            *[(0, "<vote>Cleo</vote>"), (1, "<vote>Ada</vote>"), (2, "<vote>Ada</vote>")],
            *[(3, "<vote>Ada</vote>"), (4, "<vote>nobody</vote>"), (5, "!default")],
            (0, "You will regret it."),
            *[(1, "<kill>Cleo</kill>"), (2, "<inspect>Eve</inspect>"), (3, "<poison>Ben</poison>")],
        ],
    ),
    (
        "five, roles hidden: a hunter's shot, last words of all, a run-off, and the dead see all",
        dealt(
            *("werewolf", "guard", "hunter", "villager", "villager"),
            order="simultaneous",
            reveal=False,
            tie="runoff",
            last_words="all",
            dead_see="all",
            spectator_delay=0,
        ),
        [
            *[(0, "<kill>Cleo</kill>"), (1, "<guard>Dan</guard>"), (2, "<shoot>Dan</shoot>"), (2, "Good luck.")],
            *[(0, "Who was it?"), (1, "Not me."), (4, "Nor me.")],
            *[(0, "<vote>Eve</vote>"), (1, "<vote>Ada</vote>"), (4, "<vote>Ben</vote>")],
            *[(0, "I am a villager."), (1, "I am the guard."), (4, "I believe Ben.")],
            *[(0, "<vote>Eve</vote>"), (1, "<vote>Ada</vote>"), (4, "<vote>Ada</vote>")],
        ],
    ),
    (
        "three: bids, a peaceful first night, a seat that gives up",
        dealt("villager", "werewolf", "villager", order="bid", first_night_kill=False, day_limit=1),
        [
            *[(0, "<bid>3</bid>"), (1, "<bid>1</bid>"), (2, "!timeout"), (0, "It must be one of you.")],
            *[(0, "<bid>0</bid>"), (1, "<bid>0</bid>"), (2, "<bid>9</bid>"), (2, "<bid>0</bid>")],
            *[(0, "!forfeit"), (1, "<vote>Ada</vote>"), (2, "<vote>nobody</vote>")],
            (0, "I should have voted."),
        ],
    ),
]
