"""A script that divides items: it states its needs honestly, learns the other's preferences, and concedes over time.

It estimates the other's points from the other's proposals and messages. Among the splits that are good enough for
itself, it proposes the one that is best for the other (integrative bargaining).
"""

from __future__ import annotations

import re
from itertools import product
from random import Random

from training.errors import IllegalMove
from training.games.actions import TAG, read_args
from training.games.negotiation import Items, NegotiationSettings
from training.games.negotiation.terms import terms
from training.players.scripted import Script, do, offered, pick
from training.records import Action, Observation, Scenario, Seat
from training.seeding import rng

_CLAUSE = re.compile(r"[.,;!?]|\bbut\b|\band\b")
_DISLIKE = re.compile(r"\b(n't|not|don'?t|least|without|spare|leave you|you can have|all yours)\b|n't\b")
_LIKE = re.compile(r"\b(need|want|most|important|prefer|love|really|must|value|matters?|would like)\b")
FIRM, SOFT = (0.70, 0.85), 0.50
"""Demanded share of the own maximum at the beginning (drawn from a range), and at the end of the talk."""
PATIENCE = (5, 11)
"""Number of turns of both seats until the lowest share, drawn from a range; fewer if the turn limit is low."""

OPENINGS = (
    "Hi {other}! What I need most: {best}, then {next}. What I need least: {least}. And you?",
    "Hello {other}. The most important for me: {best}. The least important: {least}. What do you need most?",
    "Hi! To be open with you, I would like {best} above all, and I can spare {least}. How about you?",
)
PROPOSALS = (
    "How about this?",
    "I think this could work for both of us.",
    "You would get most of what you care about.",
    "Would this be fair to you?",
)
ACCEPTS = ("That works for me, thank you!", "Fair enough, let us do that.", "Good, we have a deal.")
REJECTS = ("Thanks, but that is a little too low for me.", "That does not quite work for me.", "Not yet, I am afraid.")


class ItemScript(Script):
    """Plays one side of an item negotiation."""

    def __init__(self, scenario: Scenario, seat: Seat) -> None:
        super().__init__(scenario, seat)
        settings = NegotiationSettings.model_validate(scenario.settings)
        assert isinstance(settings.deal, Items)
        side = settings.deal.sides[seat]
        self._counts = {item.name: item.count for item in settings.deal.items}
        self._values = dict(side.values)
        self._walk_away = side.walk_away
        self._limit = settings.turn_limit
        temper = rng(scenario.seed, "scripted", "items", seat)
        self._firm = temper.uniform(*FIRM)
        self._patience = max(1, min(temper.randint(*PATIENCE), self._limit - 2))
        self._propose: Action = terms(settings.deal).propose()
        self._maximum = sum(count * self._values[name] for name, count in self._counts.items())
        self._splits = [
            dict(zip(self._counts, split, strict=True))
            for split in product(*(range(n + 1) for n in self._counts.values()))
        ]

    def answer(self, observation: Observation, chance: Random) -> str:
        used = sum(message.author is not None for message in observation.messages)
        aspiration = self._aspiration(used)
        if offered(observation, "accept"):
            return self._respond(observation, aspiration, used, chance)
        spoken = any(message.author == self.seat for message in observation.messages)
        if not spoken and used < 2 and self._limit - used > 3:
            return do(observation, "talk", self._opening(chance))
        split = self._best(aspiration, self._guess(observation))
        return do(observation, "propose", pick(chance, PROPOSALS), **split)

    def _respond(self, observation: Observation, aspiration: float, used: int, chance: Random) -> str:
        """Accept a proposal that is good enough, or at the last chance any that beats the walk-away value."""
        theirs = self._last_offer(observation)
        mine = 0.0 if theirs is None else float(self._maximum - self._worth(theirs))
        next_best = self._worth(self._best(aspiration, self._guess(observation)))
        last_chance = self._limit - used <= 2
        if mine >= min(aspiration, next_best) or (last_chance and mine > self._walk_away):
            return do(observation, "accept", pick(chance, ACCEPTS))
        return do(observation, "reject", pick(chance, REJECTS))

    def _aspiration(self, used: int) -> float:
        """Return the demanded points after `used` turns; they decrease, but never below the walk-away value."""
        progress = min(1.0, used / self._patience)
        return max(self._walk_away, (self._firm + (SOFT - self._firm) * progress) * self._maximum)

    def _worth(self, split: dict[str, int]) -> int:
        return sum(n * self._values[name] for name, n in split.items())

    def _best(self, aspiration: float, guess: dict[str, float]) -> dict[str, int]:
        """Return the split (the kept units) of at least `aspiration` points with the best estimate for the other."""
        good = [split for split in self._splits if self._worth(split) >= aspiration] or [dict(self._counts)]
        return max(
            good,
            key=lambda split: (
                sum((self._counts[name] - n) * guess[name] for name, n in split.items()),
                self._worth(split),
                tuple(split.values()),
            ),
        )

    # --- the other's preferences ---

    def _guess(self, observation: Observation) -> dict[str, float]:
        """Return the estimated points of the other per unit, from its messages and proposals."""
        score = dict.fromkeys(self._counts, 1.0)
        for message in observation.messages:
            if message.author != 1 - self.seat:
                continue
            for name, weight in self._heard(TAG.sub(" ", message.text)).items():
                score[name] = max(0.1, score[name] + weight)
            offer = self._read_offer(message.text)
            for name, units in (offer or {}).items():
                score[name] = max(0.1, score[name] + 0.5 * (2 * units / self._counts[name] - 1))
        return score

    def _heard(self, text: str) -> dict[str, float]:
        """Return a weight per item from the clauses of a message: positive if wanted, negative if not needed."""
        wishes: dict[str, float] = {}
        for clause in _CLAUSE.split(text.lower()):
            weight = -0.5 if _DISLIKE.search(clause) else 1.0 if _LIKE.search(clause) else 0.0
            for name in self._counts:
                if weight and name.lower() in clause:
                    wishes[name] = wishes.get(name, 0.0) + weight
        return wishes

    def _read_offer(self, text: str) -> dict[str, int] | None:
        """Return the units that a message's proposal keeps for its author, None without a proposal."""
        opened = re.search(r"<propose>(.*?)</propose>", text)
        if not opened:
            return None
        try:
            args = read_args(self._propose, opened.group(1))
        except IllegalMove:
            return None
        return {name: int(value) for name, value in args.items()}

    def _last_offer(self, observation: Observation) -> dict[str, int] | None:
        for message in reversed(observation.messages):
            if message.author == 1 - self.seat and (offer := self._read_offer(message.text)):
                return offer
        return None

    def _opening(self, chance: Random) -> str:
        ranked = sorted(self._values, key=lambda name: -self._values[name])
        return pick(chance, OPENINGS).format(
            other=self.names[1 - self.seat],
            best=ranked[0],
            next=ranked[min(1, len(ranked) - 1)],
            least=ranked[-1],
        )
