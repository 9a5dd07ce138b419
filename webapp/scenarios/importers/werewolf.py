"""Shared code of the readers of recorded Werewolf games: the engine replays the record move by move.

`follow` raises `BadInput` where Parley's rules do not allow the record. It reports every death with its day and cause,
so that a reader can compare them with the record's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from training.dataset import DatasetLine
from training.errors import BadInput
from training.games import redrawn
from training.games.werewolf import Role, Werewolf
from training.games.werewolf.actions import NOBODY, TARGET
from training.records import Action, Move, Scenario, Seat, SeatMove
from webapp.scenarios.importers.reading import played, storable

Offers = Mapping[Seat, Mapping[str, Action]]
"""The actions of each seat that is to act, by name."""
Decide = Callable[[Offers, str], Mapping[Seat, Move | None]]
"""Return the recorded moves of seats in a phase such as `Day 2: vote`; None = no legal move."""

LIMIT = 400
"""Moves after which a record counts as endless."""


def scenario(key: str, roles: Sequence[Role], names: Sequence[str], settings: dict[str, Any]) -> Scenario:
    """Return a recorded game's start: its settings state the random outcomes, and spectators see all immediately."""
    stated = {"roles": list(roles), "deal": list(roles), "wolf_talk": 0, "max_words": 0, "spectator_delay": 0}
    data = {"id": key, "game": "werewolf", "settings": {**stated, **settings}, "seats": list(names), "seed": 1}
    return Scenario.from_dict(data)


@dataclass(frozen=True, order=True)
class Death:
    """A death on a day, or in the night before it. `cause` is `killed`, `poisoned`, `exiled` or `shot`."""

    day: int
    seat: Seat
    cause: str


def follow(start: Scenario, decide: Decide, where: str) -> tuple[list[SeatMove], list[Death]]:
    """Return the moves of a record in the engine's order, and the resulting deaths.

    A seat that did nothing legal plays the default.
    """
    game, moves, deaths = Werewolf(start), list[SeatMove](), dict[Seat, Death]()
    poisoned: set[Seat] = set()
    while acting := sorted(game.to_act()):
        if len(moves) > LIMIT:
            raise BadInput("does not end", where)
        offers = {seat: {action.name: action for action in game.observe(seat).actions} for seat in acting}
        decided = decide(offers, game.village.phase)
        joint = {seat: decided.get(seat) or game.default(seat) for seat in acting}
        poisoned |= {start.seats.index(str(m.args[TARGET])) for m in joint.values() if m.action == "poison"}
        by_day = "exiled" if _offered("vote", offers) else "shot" if _offered("shoot", offers) else ""
        game.step(joint)
        moves += [SeatMove(seat=seat, move=move) for seat, move in joint.items()]
        for seat, day in game.village.died.items():
            deaths.setdefault(seat, Death(day, seat, by_day or ("poisoned" if seat in poisoned else "killed")))
    return moves, sorted(deaths.values())


def _offered(name: str, offers: Offers) -> bool:
    return any(name in offered for offered in offers.values())


def aim(offered: Mapping[str, Action], name: str, target: str | None) -> Move | None:
    """Return the move of action `name` at `target`, if both are offered."""
    action = offered.get(name)
    if action is None or not action.args or target is None or target not in action.args[0].choices:
        return None
    return Move(action=name, args={TARGET: target})


def speak(text: str) -> Move | None:
    """Return the speech as a move; None if it is empty."""
    return Move(action="speak", text=text) if text.strip() else None


def leading(moves: Iterable[Move | None]) -> list[str]:
    """Return the most frequent target of the moves, or several in a tie."""
    targets = [str(move.args[TARGET]) for move in moves if move is not None]
    counts = Counter(target for target in targets if target != NOBODY)
    return [name for name, count in counts.items() if count == max(counts.values())]


def line(start: Scenario, moves: Sequence[SeatMove], source: str, winners: set[Seat], where: str) -> DatasetLine:
    """Return conversation and start; raise `BadInput` if the winners differ from the record's.

    The random outcomes stay in the conversation. A new game from the start is dealt anew: if the same seats always had
    the same roles, nothing would be hidden.
    """
    conversation = played(start, moves, source, where)
    won = {seat for seat, value in conversation.episode.returns.items() if value}
    if won != winners:
        raise BadInput(
            f"ends with another winner: the record has seats {sorted(winners)}, Parley's rules {sorted(won)}", where
        )
    anew = redrawn(start, 0)
    settings = {name: value for name, value in anew.settings.items() if name != "spectator_delay"}
    anew = anew.model_copy(update={"settings": settings})
    return storable(DatasetLine(scenario=anew, conversations=(conversation,)), where)
