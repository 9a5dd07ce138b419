"""A player of Among Us with random short messages, and random moves except for kills and reports (`DEEDS`).

With probability `telling` a witness of a kill names the killer, as a language model that was not trained on the game
may do, since it copies from what it reads. Others seldom claim to have seen a kill, so such a claim is evidence.
Nothing else in its messages carries information. It votes for a name that it read as a killer's, in its own observation
or in a claim, and where it read none at random.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from training.games.among_us.script.memory import remember
from training.players.base import Reply
from training.players.scripted import do, offered
from training.seeding import rng
from training.text.choices import replies

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from training.records import Observation, Scenario, Seat, Trace

CLAIM = "I saw {a} kill {b}."
FORMULAS = ("It is {a}.", "I trust {a}.", "I was with {a}.", "I saw nothing.")
TELLING = 0.4
"""How often `witness_talk` tells of a kill that it saw."""
INVENTING = 0.02
"""How often a message claims a kill between two other players that are drawn at random."""
_KILLER = re.compile(r"\b(\w+) kills? ")
DEEDS = 0.5
"""How often it kills or reports a body before it draws among all moves: else few games would have a meeting."""


def killers(texts: Iterable[str], choices: Collection[str]) -> list[str]:
    """Return the choices that stand before "kills" or "kill", as often as they do."""
    return [name for text in texts for name in _KILLER.findall(text) if name in choices]


class RandomTalk:
    """One seat; the same observation and seed give the same reply.

    `telling` is the probability that a witness of a kill tells of it.
    """

    def __init__(self, scenario: Scenario, seat: Seat, telling: float = 0.0) -> None:
        self._names, self._telling = scenario.seats, telling
        self._others = [name for at, name in enumerate(scenario.seats) if at != seat]

    async def act(self, seat: Seat, observation: Observation, seed: int) -> Reply:
        """Return a vote, a move drawn from all legal ones, or a formula with names drawn from all other players."""
        chance = rng(seed, "random talk")
        if vote := offered(observation, "vote"):
            choices = vote.args[0].choices
            read = killers((message.text for message in observation.messages[1:]), choices)
            return Reply(do(observation, "vote", player=chance.choice(read or choices)))
        if not offered(observation, "talk"):
            deeds = [action for action in observation.actions if action.name in ("kill", "report")]
            some = deeds if deeds and chance.random() < DEEDS else observation.actions
            return Reply(chance.choice(list(replies(some))))
        seen = remember(observation, seat, self._names).killers
        if seen and chance.random() < self._telling:
            killer, victim = next(iter(seen.items()))
            return Reply(CLAIM.format(a=killer, b=victim))
        first, second = chance.sample(self._others, 2)
        formula = CLAIM if chance.random() < INVENTING else chance.choice(FORMULAS)
        return Reply(formula.format(a=first, b=second))

    def traces(self) -> tuple[Trace, ...]:
        """Return nothing: this player samples no tokens."""
        return ()
