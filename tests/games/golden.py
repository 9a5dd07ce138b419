"""Golden playthroughs: fixed replies, and all that every viewer saw; `python -m tests.games.golden --write` renews.

A line of a playthrough is (seat, reply); a reply may be refused, which is written down, and the seat goes on with the
next line. The replies `!default`, `!timeout` and `!forfeit` are moves that nobody chose.
"""

import sys
from pathlib import Path

from tests.games.cases.among_us import CREW, among_us
from tests.games.cases.dialogue import GIVEN, dialogue
from tests.games.cases.negotiation import items, price
from tests.games.cases.strategic import strategic
from tests.games.cases.werewolf import dealt, spoke
from tests.games.play import viewers
from training.errors import IllegalMove
from training.games import advance, make
from training.games.base import FORFEIT
from training.records import ALL, SPECTATOR, SeatMove
from training.text.parsing import parse

FOLDER = Path(__file__).parents[1] / "golden"

DEAL = "<propose>food 2, tent pegs 2, oil 0</propose>"
PLAYTHROUGHS = {
    "negotiation": [
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
    ],
    "among_us": [
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
    ],
    "dialogue": [
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
            "acquaintances by chance, after two given turns, to the limit",
            dialogue(order="random", fixed_order=[0, 0, 1], given=GIVEN, relationship=2, turn_limit=3),
            [(0, "So."), (0, "Well?"), (1, "Hm.")],
        ),
        (
            "family, both silent",
            dialogue(relationship=5),
            [(0, "<none/>"), (1, "<none/>"), (0, "<none/>"), (1, "!default")],
        ),
    ],
    "tic_tac_toe": [
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
    ],
    "connect_four": [
        (
            "four in a column after an opening",
            strategic("connect_four", opening=[3, 0]),
            [(seat, f"<answer><{mark}({column})></answer>") for seat, mark, column in [(0, "X", 3), (1, "O", 0)] * 2]
            + [(0, "<answer><X(3)></answer>")],
        ),
        ("giving up", strategic("connect_four"), [(0, "<answer><X(6)></answer>"), (1, "!forfeit")]),
    ],
    "kuhn_poker": [
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
    ],
    "leduc_poker": [
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
    ],
    "hanabi": [
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
    ],
    "werewolf": [
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
    ],
}


def name(viewer, scenario):
    """The viewer in words."""
    if viewer == scenario.tool_seat:
        return "the tool seat"
    return {SPECTATOR: "spectators", ALL: "all"}.get(viewer) or scenario.seats[viewer]


def move(game, seat, reply):
    """The move of one line; raises `IllegalMove` for a refused one."""
    if reply == "!forfeit":
        return FORFEIT
    if reply.startswith("!"):
        return game.default(seat).model_copy(update={"origin": reply[1:]})
    found, _ = parse(reply, game.observe(seat))
    found = found.model_copy(update={"origin": "tool"}) if seat == game.scenario.tool_seat else found
    game.check(seat, found)
    return found


def playthrough(title, scenario, lines):
    """One game as text."""
    out = [f"# {title}", ""]
    game, pending = make(scenario), {}
    for seat, reply in lines:
        out.append(f"to act {sorted(game.to_act())}; {name(seat, scenario)} replies: {reply}")
        try:
            pending = advance(game, pending, SeatMove(seat=seat, move=move(game, seat, reply)))
        except IllegalMove as error:
            out.append("  refused: " + str(error).replace("\n", "\n    "))
    assert not game.to_act(), title
    out += ["", f"returns {dict(game.returns())}", f"metrics {dict(game.metrics())}"]
    out += [f"metrics of {name(seat, scenario)} {dict(metrics)}" for seat, metrics in game.seat_metrics().items()]
    for viewer in viewers(scenario):
        out += ["", f"## what {name(viewer, scenario)} saw"]
        for message in game.observe(viewer).messages:
            author = "game" if message.author is None else name(message.author, scenario)
            out.append(f"[{author}, {message.channel}] {message.text}")
    return "\n".join(out)


def text(game):
    """The golden text of one game."""
    return "\n\n".join(playthrough(*entry) for entry in PLAYTHROUGHS[game]) + "\n"


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("usage: python -m tests.games.golden --write")
    for game in PLAYTHROUGHS:
        (FOLDER / f"{game}.txt").write_text(text(game), encoding="utf-8")
        sys.stdout.write(f"{game}\n")
