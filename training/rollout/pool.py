"""Draws the learner's opponents for every game from a weighted pool, by seed, step and game number alone.

This module loads no models. Past versions of the learner are named by the step after which they were saved, and saved
steps are the multiples of `save_every`, so a resumed run draws the same opponents. Raises `BadInput` for a game that no
entry of the pool can play.
"""

from __future__ import annotations

from collections.abc import Sequence

from training.errors import BadInput
from training.games import make
from training.records import LEARNER, Scenario, Seat
from training.run_sections import MIRROR, PAST, Opponent, saved_steps
from training.seeding import rng


def past_policy(step: int) -> str:
    """Return the name of the learner's policy after `step`."""
    return f"{PAST} {step}"


def title(policy: str) -> str:
    """Return a policy's name in metrics: the same for all past versions; only the model's name for a remote model."""
    first, *rest = policy.split(maxsplit=2)
    return rest[0] if "://" in first and rest else first if first == PAST else policy


class Pool:
    """The pool of a run. Each training step draws `loaded` of the newest `saved` saved steps."""

    def __init__(self, entries: Sequence[Opponent], seed: int, *, save_every: int, saved: int, loaded: int) -> None:
        self.entries, self.seed = tuple(entries), seed
        self._every, self._saved, self._loaded = save_every, saved, loaded

    @property
    def sources(self) -> tuple[str, ...]:
        """The opponents that are not versions of the learner."""
        return tuple(dict.fromkeys(e.source for e in self.entries if e.source not in (MIRROR, PAST)))

    @property
    def uses_past(self) -> bool:
        """Whether past versions of the learner take part."""
        return any(entry.source == PAST for entry in self.entries)

    def saved(self, step: int) -> tuple[int, ...]:
        """Return the saved steps that training step `step` (from 1) may draw from; 0 is the starting model."""
        if not self.uses_past:
            return ()
        return saved_steps(step, self._every, self._saved)

    def past(self, step: int) -> tuple[int, ...]:
        """Return the saved steps that training step `step` plays against."""
        saved = self.saved(step)
        return tuple(sorted(rng(self.seed, PAST, step).sample(saved, min(self._loaded, len(saved)))))

    def seats(self, scenario: Scenario, step: int, number: int) -> tuple[str, ...]:
        """Return the policy of every seat in game `number` of a training step, by name."""
        everywhere = (LEARNER,) * len(scenario.seats)
        if not self.entries:
            return everywhere
        chance = rng(self.seed, "opponent", step, number)
        roles = make(scenario).roles()
        fitting = [e for e in self.entries if e.source == MIRROR or e.learner == "one" or {*e.learner} & {*roles}]
        if not fitting:
            has = f"it has {', '.join(sorted(set(roles)))}" if roles else "it has none"
            raise BadInput(f"no entry fits {scenario.id}: nobody there has the learner's roles; {has}", "opponents")
        [entry] = chance.choices(fitting, [entry.weight for entry in fitting])
        if entry.source == MIRROR:
            return everywhere
        policy = past_policy(chance.choice(self.past(step))) if entry.source == PAST else entry.source
        if entry.learner == "one":
            learner_seats: set[Seat] = {chance.randrange(len(everywhere))}
        else:
            learner_seats = {seat for seat, role in enumerate(roles) if role in entry.learner}
        return tuple(LEARNER if seat in learner_seats else policy for seat in range(len(everywhere)))
