"""Playing games without a model: legal moves by chance, and all that anybody can see."""

import asyncio

from training.games import make
from training.players import make as player
from training.records import ALL, SPECTATOR, Move, SeatMove
from training.seeding import derive, rng
from training.text.parsing import parse

LOOP = asyncio.Runner()
"""One loop for all replies: a new one for each costs more than what is played in it."""


def viewers(scenario):
    return (*range(len(scenario.seats)), scenario.tool_seat, SPECTATOR, ALL)


def everything(game):
    """All that can be read of a game."""
    seen = {viewer: game.observe(viewer) for viewer in viewers(game.scenario)}
    shown = {v: (game.acting(v), game.show(v)) for v in seen}
    return (
        seen,
        shown,
        game.to_act(),
        dict(game.probes()),
        dict(game.returns()),
        dict(game.metrics()),
        game.seat_metrics(),
        game.roles(),
    )


def reply(scenario, seat, seen, seed, name="random"):
    """One answer of a fresh player, as text."""
    return LOOP.run(player(name, scenario, seat).act(seat, seen, seed)).text


def random_move(game, seat, seed):
    """A legal move by chance; now and then nobody answers."""
    chance = rng(seed, "absent")
    if chance.random() < 0.1:
        return game.default(seat).model_copy(update={"origin": chance.choice(["default", "timeout"])})
    move, _ = parse(reply(game.scenario, seat, game.observe(seat), seed), game.observe(seat))
    return move.model_copy(update={"origin": "tool"}) if seat == game.scenario.tool_seat else move


def scripted_move(game, seat, seed):
    """What the game's script does."""
    return parse(reply(game.scenario, seat, game.observe(seat), seed, "scripted"), game.observe(seat))[0]


def steps(game, seed):
    """Play on by chance; yield every joint step before it is applied."""
    number = 0
    while acting := game.to_act():
        moves = {seat: random_move(game, seat, derive(seed, seat, number)) for seat in sorted(acting)}
        yield moves
        game.step(moves)
        number += 1


def played(scenario, seed):
    """A game played to its end by chance, with its flat list of moves."""
    game, flat = make(scenario.with_seed(seed)), []
    for moves in steps(game, seed):
        flat += [SeatMove(seat=seat, move=move) for seat, move in moves.items()]
    return game, flat


def some_args(action):
    """Legal arguments of an action."""
    return {a.name: {"integer": a.low, "text": "x"}.get(a.kind, a.choices[0] if a.choices else "") for a in action.args}


def forfeits(game, seat):
    """Moves of origin `forfeit` that say more: every action that is offered, and arguments that no action has."""
    offered = [Move(action=a.name, args=some_args(a), text="x", origin="forfeit") for a in game.observe(seat).actions]
    strange = {"target": "nobody who plays", "player": "", "choice": 7, "unheard of": 1}
    return [*offered, Move(action="forfeit", args=strange, origin="forfeit")]


def illegal_moves(game, seat):
    """Moves that no game may accept from `seat` now."""
    bad = [
        Move(action="no such action", text="x"),
        Move(action="talk", text="", args={"more": 1}),
        Move(action="accept", args={"more": 1}),
        Move(action="", text="x"),
    ]
    seen = game.observe(seat)
    for action in seen.actions:
        args = some_args(action)
        text = " ".join("x" * (seen.max_words + 1)) if seen.max_words else "x" * (seen.max_chars + 1)
        origin = "tool" if seat == game.scenario.tool_seat else "seat"
        bad.append(Move(action=action.name, args={**args, "unheard of": 1}, text="x", origin=origin))
        bad.append(Move(action=action.name, args=args, text=text, origin=origin))
        bad.append(Move(action=action.name, args=args, text="x", origin="seat" if origin == "tool" else "tool"))
        for arg in action.args:
            wrong = {"integer": arg.high + 1, "choice": "  " if arg.open else "no such choice", "text": "  "}[arg.kind]
            bad.append(Move(action=action.name, args={**args, arg.name: wrong}, text="x", origin=origin))
            bad.append(Move(action=action.name, args={n: v for n, v in args.items() if n != arg.name}, origin=origin))
    return bad
