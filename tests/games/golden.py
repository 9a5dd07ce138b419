"""Golden playthroughs: fixed replies, and all that every viewer saw; `python -m tests.games.golden --write` renews.

A line of a playthrough is (seat, reply); a reply may be refused, which is written down, and the seat goes on with the
next line. The replies `!default`, `!timeout` and `!forfeit` are moves that nobody chose.
"""

import sys
from pathlib import Path

from tests.games.play import viewers
from tests.games.worlds import PLAYTHROUGHS
from training.errors import IllegalMove
from training.games import advance, make
from training.games.base import FORFEIT
from training.records import ALL, SPECTATOR, SeatMove
from training.text.parsing import parse

FOLDER = Path(__file__).parents[1] / "golden"


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
    action, _ = parse(reply, game.observe(seat))
    action = action.model_copy(update={"origin": "tool"}) if seat == game.scenario.tool_seat else action
    game.check(seat, action)
    return action


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
    assert not game.to_act(), f"{title!r} ends before its game does: {sorted(game.to_act())} are to act"
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
