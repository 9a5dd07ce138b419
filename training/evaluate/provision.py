"""The information-provision game: which players of a group should search before they answer.

Each of n players searches (S) or guesses (G). If anybody searches, one of the searchers, drawn at random, answers for
the group; otherwise a player drawn at random guesses. Everybody receives the accuracy of the answer, and each searcher
pays the cost of its search. Source: "Don't lie to your friends: Learning what you know from collaborative self-play"
(Eisenstein et al., 2025), section 4 and appendix D. `docs/provision.md` has the proofs.

All numbers are exact fractions, because an equilibrium can hang on a tie. Raises `BadInput` for numbers that cannot be
those of a game.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from itertools import combinations
from typing import TypeAlias

from training.errors import BadInput

Number: TypeAlias = int | float | str | Decimal | Fraction
Profile: TypeAlias = tuple[str, ...]
"""One letter per player, S or G."""
FEWEST_PLAYERS, MOST_PLAYERS = 2, 12
LARGEST_EXPONENT = 100
"""Of a number in scientific notation: the fraction of one far outside would take up all memory."""


def exact(value: Number, where: str, high: int | None = None) -> Fraction:
    """Return a number as a fraction, a float as the decimal with which it prints; `high` is the largest allowed.

    Raises `BadInput` at `where` for text that is no number, and for numbers below 0 or above `high`.
    """
    if isinstance(value, (int, Fraction)):
        number = Fraction(value)
    else:
        text = str(value).strip()
        try:
            decimal = Decimal(text)
        except InvalidOperation:
            decimal = Decimal("nan")
        if not decimal.is_finite():
            raise BadInput(f"{text[:40]!r} is not a number", where)
        if max(-int(decimal.as_tuple().exponent), decimal.adjusted()) > LARGEST_EXPONENT:
            raise BadInput(f"{text[:40]!r} has too many digits", where)
        number = Fraction(decimal)
    if number < 0 or (high is not None and number > high):
        limits = "is negative" if high is None else f"is not between 0 and {high}"
        raise BadInput(f"{str(value).strip()[:40]} {limits}", where)
    return number


@dataclass(frozen=True, slots=True)
class Rival:
    """A player beside the best searcher, and the two reasons why it cannot be the only one who searches.

    `trails`: it is so much less accurate that the best searcher would search as well (p* − p_j > 2c). `guesses`: its
    search is worth less than its cost (p_j − c < ḡ). Where neither holds, there is an equilibrium in which it searches.
    """

    player: int
    trails: bool
    guesses: bool


@dataclass(frozen=True, slots=True)
class ProvisionGame:
    """One game: each player's accuracy when it searches, the mean accuracy ḡ of guesses, the cost c of a search."""

    accuracies: tuple[Fraction, ...]
    guess: Fraction
    cost: Fraction

    @classmethod
    def read(cls, accuracies: Iterable[Number], guess: Number | Sequence[Number], cost: Number) -> ProvisionGame:
        """Return the game; `guess` is one accuracy, or one per player, of which the mean counts.

        Raises `BadInput` at `accuracies`, `guess` or `cost`.
        """
        searching = tuple(exact(value, "accuracies", 1) for value in accuracies)
        if not FEWEST_PLAYERS <= len(searching) <= MOST_PLAYERS:
            raise BadInput(f"give {FEWEST_PLAYERS} to {MOST_PLAYERS} players, not {len(searching)}", "accuracies")
        listed = [guess] if isinstance(guess, str) or not isinstance(guess, Sequence) else guess
        guesses = [exact(value, "guess", 1) for value in listed]
        if len(guesses) not in {1, len(searching)}:
            raise BadInput(f"give one number, or one for each of {len(searching)} players, not {len(guesses)}", "guess")
        return cls(searching, sum(guesses, Fraction(0)) / len(guesses), exact(cost, "cost"))

    @property
    def best(self) -> int:
        """The most accurate searcher, the first of several."""
        return self.accuracies.index(max(self.accuracies))

    def payoffs(self, profile: Sequence[str]) -> tuple[Fraction, ...]:
        """Return each player's payoff: the group's expected accuracy, less the cost for those who search."""
        searching = [accuracy for accuracy, move in zip(self.accuracies, profile, strict=True) if move == "S"]
        shared = sum(searching, Fraction(0)) / len(searching) if searching else self.guess
        return tuple(shared - self.cost if move == "S" else shared for move in profile)

    def gains(self, profile: Sequence[str]) -> tuple[Fraction, ...]:
        """Return what each player would gain by changing its move alone; no gain is positive in an equilibrium."""
        payoffs = self.payoffs(profile)
        changed = [
            (*profile[:player], "G" if move == "S" else "S", *profile[player + 1 :])
            for player, move in enumerate(profile)
        ]
        return tuple(self.payoffs(other)[player] - payoffs[player] for player, other in enumerate(changed))

    def equilibria(self) -> list[Profile]:
        """Return all pure Nash equilibria, weak ones included, in the order SS, SG, GS, GG of the payoff table.

        - Nobody searches: if p* − c ≤ ḡ for the highest accuracy p*.
        - Player i alone searches: if p_i − c ≥ ḡ and p* − p_i ≤ 2c.
        - Several search: if c = 0 and all of them have the highest accuracy.
        """
        highest = max(self.accuracies)
        searchers: list[tuple[int, ...]] = [
            (player,)
            for player, accuracy in enumerate(self.accuracies)
            if accuracy - self.cost >= self.guess and highest - accuracy <= 2 * self.cost
        ]
        if highest - self.cost <= self.guess:
            searchers.append(())
        if self.cost == 0:
            tied = self._tied()
            searchers += [group for size in range(2, len(tied) + 1) for group in combinations(tied, size)]
        return sorted((self._profile(group) for group in searchers), reverse=True)

    def guessing_is_unique(self) -> bool:
        """Whether the only equilibrium is that nobody searches."""
        return max(self.accuracies) - self.cost < self.guess and not (self.cost == 0 and len(self._tied()) > 1)

    def best_searcher_is_unique(self) -> bool:
        """Whether the only equilibrium is that the best searcher searches alone."""
        worth_it = max(self.accuracies) - self.cost > self.guess
        return worth_it and all(rival.trails or rival.guesses for rival in self.rivals())

    def rivals(self) -> list[Rival]:
        """Return every player beside the best searcher."""
        highest = max(self.accuracies)
        return [
            Rival(player, trails=highest - accuracy > 2 * self.cost, guesses=accuracy - self.cost < self.guess)
            for player, accuracy in enumerate(self.accuracies)
            if player != self.best
        ]

    def verdict(self) -> str:
        """Return a sentence: whether the equilibrium is unique, and why not."""
        if self.guessing_is_unique():
            return "Unique: nobody searches, because no search is worth its cost."
        if self.best_searcher_is_unique():
            return f"Unique: player {self.best + 1}, the best searcher, searches alone."
        reasons = []
        if max(self.accuracies) - self.cost == self.guess:
            reasons.append("the best search is worth exactly its cost")
        others = [str(rival.player + 1) for rival in self.rivals() if not (rival.trails or rival.guesses)]
        if others:
            reasons.append(f"{'players' if len(others) > 1 else 'player'} {', '.join(others)} could search instead")
        if self.cost == 0 and len(self._tied()) > 1:
            reasons.append("several search equally well at no cost")
        return f"Not unique: {'; '.join(reasons)}."

    def _tied(self) -> list[int]:
        """The players with the highest accuracy."""
        highest = max(self.accuracies)
        return [player for player, accuracy in enumerate(self.accuracies) if accuracy == highest]

    def _profile(self, searchers: Iterable[int]) -> Profile:
        searching = set(searchers)
        return tuple("S" if player in searching else "G" for player in range(len(self.accuracies)))


def equilibria(accuracies: Iterable[Number], guess: Number | Sequence[Number], cost: Number) -> list[Profile]:
    """Return all pure Nash equilibria of a game (`ProvisionGame.read`, `ProvisionGame.equilibria`)."""
    return ProvisionGame.read(accuracies, guess, cost).equilibria()
