"""Draws the learner's opponents for every game from a weighted pool, by seed, step and game number alone.

In a league it also depends on the results against each opponent up to that step. This module loads no models. Past
versions of the learner are named by the step after which they were saved, and saved steps are the multiples of
`save_every`, so a resumed run draws the same opponents. Raises `BadInput` for a game that no entry of the pool can
play.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

from training.errors import BadInput
from training.games import make
from training.opponent_sections import MIRROR, PAST, Opponent, saved_steps, with_roles
from training.records import LEARNER, Scenario, Seat
from training.rollout.league import WEIGHTINGS, Table, seats_title
from training.seeding import rng


def past_policy(step: int) -> str:
    """Return the name of the learner's policy after `step`."""
    return f"{PAST} {step}"


def title(policy: str) -> str:
    """Return a policy's name in metrics: the same for all past versions, a folder's own name, a remote model's name."""
    if policy.startswith("/"):
        return Path(policy).name
    first, *rest = policy.split(maxsplit=2)
    return rest[0] if "://" in first and rest else first if first == PAST else policy


def column(policy: str) -> str:
    """Return an opponent's name in a league's table: `past STEP`, or its title."""
    return policy if policy.startswith(f"{PAST} ") else title(policy)


def fits(entry: Opponent, roles: Sequence[str]) -> bool:
    """Return whether an entry can be drawn for a game with these roles."""
    return entry.source == MIRROR or entry.learner == "one" or bool({*entry.learner} & {*roles})


def check_seats(entry: Opponent, scenario: Scenario, roles: Sequence[str], where: str) -> None:
    """Raise `BadInput` if the partner of an entry would take the only seat of the learner, or the ally the opponent's.

    `where` is the entry's field.
    """
    learners = 1 if entry.learner == "one" else len(with_roles(entry.learner, roles))
    if entry.partner and learners < 2:
        why = f"{scenario.id} has one seat of the learner ({seats_title(entry.learner)}), which the partner would take"
        raise BadInput(why, f"{where}.partner")
    if entry.ally and (others := len(scenario.seats) - learners) < 2:
        why = f"{scenario.id} has {others} {'seat' if others == 1 else 'seats'} for the opponent: an ally needs two"
        raise BadInput(why, f"{where}.ally")


class Pool:
    """The pool of a run. Each training step draws `loaded` of the newest `saved` saved steps.

    With `pfsp` the entries other than `mirror` share their part of the games by the results in `table`. With a `lag`
    saved steps and results are those up to the weights that play the step, which are `lag` steps older.
    """

    def __init__(
        self,
        entries: Sequence[Opponent],
        seed: int,
        *,
        save_every: int,
        saved: int,
        loaded: int,
        pfsp: str = "none",
        lag: int = 0,
    ) -> None:
        self.entries, self.seed = tuple(entries), seed
        self.table = Table()
        self._every, self._saved, self._loaded = save_every, saved, loaded
        self._weighting = WEIGHTINGS.get(pfsp)
        self._lag = lag

    @property
    def sources(self) -> tuple[str, ...]:
        """The opponents, partners and allies with weights of their own: not the learner nor one of its past selves."""
        named = (source for entry in self.entries for source in entry.sources.values())
        return tuple(dict.fromkeys(source for source in named if source not in (MIRROR, PAST)))

    @property
    def uses_past(self) -> bool:
        """Whether past versions of the learner take part."""
        return any(PAST in entry.sources.values() for entry in self.entries)

    def saved(self, step: int) -> tuple[int, ...]:
        """Return the saved steps that training step `step` (from 1) may draw from; 0 is the starting model."""
        if not self.uses_past:
            return ()
        return saved_steps(self._before(step), self._every, self._saved)

    def _before(self, step: int) -> int:
        """Return the training step before which a step's past selves were saved, and its results known."""
        return max(1, step - self._lag)

    def past(self, step: int) -> tuple[int, ...]:
        """Return the saved steps that training step `step` plays against."""
        return tuple(sorted(set(self._past_draws(step))))

    def _past_draws(self, step: int) -> tuple[int, ...]:
        """Return the saved steps among which the games of a training step choose with equal chances.

        By results they are drawn with replacement, so that each game meets a saved step exactly as often as its weight
        says, however few are loaded.
        """
        saved, chance = self.saved(step), rng(self.seed, PAST, step)
        if self._weighting is None:
            return tuple(sorted(chance.sample(saved, min(self._loaded, len(saved)))))
        rows = [dict(self.weights(entry, step)) for entry in self.entries if entry.source == PAST]
        weights = [sum(row[past_policy(each)] for row in rows) for each in saved]
        return tuple(chance.choices(saved, _some(weights), k=self._loaded)) if saved else ()

    def weights(self, entry: Opponent, step: int) -> list[tuple[str, float]]:
        """Return the opponents of an entry in training step `step` with the weights by which they are drawn.

        Without results each has the entry's weight; a past self has it once for every saved step.
        """
        learner, weighting = seats_title(entry.learner), self._weighting or (lambda p: 1.0)
        before = self._before(step)
        if entry.source == PAST:
            scores = [
                (past_policy(saved), self.table.score(past_policy(saved), learner, before=before, above=saved))
                for saved in self.saved(step)
            ]
        else:
            scores = [(entry.source, self.table.score(column(entry.source), learner, before=before))]
        return [(policy, entry.weight * weighting(score)) for policy, score in scores]

    def shares(self, entries: Sequence[Opponent], step: int) -> list[float]:
        """Return how often each of these entries is drawn in training step `step`, relative to the others.

        `mirror` keeps its configured part of the games; the other entries share theirs by PFSP. Where every opponent is
        beaten for certain, so that all weights are 0, they share it equally.
        """
        if self._weighting is None:
            return [entry.weight for entry in entries]
        rows = [[] if entry.source == MIRROR else self.weights(entry, step) for entry in entries]
        sums = [sum(weight for _, weight in row) for row in rows]
        if not any(sums):
            sums = [entry.weight * len(row) for entry, row in zip(entries, rows, strict=True)]
        part = sum(entry.weight for entry in entries if entry.source != MIRROR) / (sum(sums) or 1.0)
        return [e.weight if e.source == MIRROR else part * total for e, total in zip(entries, sums, strict=True)]

    def seats(self, scenario: Scenario, step: int, number: int) -> tuple[str, ...]:
        """Return the policy of every seat in game `number` of a training step, by name."""
        everywhere = (LEARNER,) * len(scenario.seats)
        if not self.entries:
            return everywhere
        chance = rng(self.seed, "opponent", step, number)
        roles = make(scenario).roles()
        fitting = [e for e in self.entries if fits(e, roles)]
        if not fitting:
            has = f"it has {', '.join(sorted(set(roles)))}" if roles else "it has none"
            raise BadInput(f"no entry fits {scenario.id}: nobody there has the learner's roles; {has}", "opponents")
        [entry] = chance.choices(fitting, self.shares(fitting, step))
        if entry.source == MIRROR:
            return everywhere
        policy = self._drawn(entry.source, step, chance)
        if entry.learner == "one":
            learner_seats: set[Seat] = {chance.randrange(len(everywhere))}
        else:
            learner_seats = with_roles(entry.learner, roles)
        seated = [LEARNER if seat in learner_seats else policy for seat in range(len(everywhere))]
        check_seats(entry, scenario, roles, "opponents")
        if entry.partner:
            seated[chance.choice(sorted(learner_seats))] = self._drawn(entry.partner, step, chance)
        if entry.ally:
            others = [seat for seat in range(len(everywhere)) if seat not in learner_seats]
            seated[chance.choice(others)] = self._drawn(entry.ally, step, chance)
        return tuple(seated)

    def _drawn(self, source: str, step: int, chance: Random) -> str:
        """Return the policy of a source in one game of a training step."""
        return past_policy(chance.choice(self._past_draws(step))) if source == PAST else source


def _some(weights: Sequence[float]) -> Sequence[float]:
    """Return the weights, all 1 where all of them are 0."""
    return weights if any(weights) else [1.0] * len(weights)
