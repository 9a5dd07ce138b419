"""The value of deals: one class per kind of deal, with the same methods.

A deal is the mapping of the arguments of `propose`. Points of items are the side's values; points of a price are its
utility between 0 and 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from itertools import product
from typing import Protocol

from training.games.negotiation.settings import Items, Price
from training.records import Action, Argument, ArgValue, Seat

Deal = Mapping[str, ArgValue]


class Terms(Protocol):
    """The terms of one kind of deal. `by` is the proposing seat."""

    def propose(self) -> Action:
        """Return the action that puts a deal on the table."""

    def points(self, seat: Seat, by: Seat, deal: Deal) -> float:
        """Return the points that the deal gives `seat`."""

    def maximum(self, seat: Seat) -> float:
        """Return the most that `seat` can get."""

    def walk_away(self, seat: Seat) -> float:
        """Return the points of `seat` without a deal."""

    def outcomes(self) -> tuple[tuple[float, float], ...]:
        """Return the distinct points of both seats over all possible deals."""

    def shares(self, by: Seat, deal: Deal) -> tuple[str, str]:
        """Return in words what each seat gets."""


class ItemTerms:
    """A split of a pool: the proposer states the units that it keeps, and the other seat gets the rest."""

    def __init__(self, deal: Items) -> None:
        self._names = tuple(item.name for item in deal.items)
        self._counts = tuple(item.count for item in deal.items)
        self._values = tuple(tuple(side.values[name] for name in self._names) for side in deal.sides)
        self._walk_away = tuple(side.walk_away for side in deal.sides)
        self._propose = Action(
            name="propose",
            args=tuple(Argument(name=item.name, kind="integer", low=0, high=item.count) for item in deal.items),
            label="Propose a split, naming what you keep",
        )

    def propose(self) -> Action:
        return self._propose

    def units(self, seat: Seat, by: Seat, deal: Deal) -> tuple[int, ...]:
        """Return the units of each item that `seat` gets."""
        proposer_units = tuple(int(deal[name]) for name in self._names)
        return proposer_units if seat == by else tuple(n - k for n, k in zip(self._counts, proposer_units, strict=True))

    def points(self, seat: Seat, by: Seat, deal: Deal) -> float:
        units = self.units(seat, by, deal)
        return float(sum(n * v for n, v in zip(units, self._values[seat], strict=True)))

    def maximum(self, seat: Seat) -> float:
        return float(sum(n * v for n, v in zip(self._counts, self._values[seat], strict=True)))

    def walk_away(self, seat: Seat) -> float:
        return self._walk_away[seat]

    def outcomes(self) -> tuple[tuple[float, float], ...]:
        return _splits(self._counts, self._values[0], self._values[1])

    def shares(self, by: Seat, deal: Deal) -> tuple[str, str]:
        first, second = (
            ", ".join(f"{name} {n}" for name, n in zip(self._names, self.units(seat, by, deal), strict=True))
            for seat in (0, 1)
        )
        return first, second


@lru_cache(maxsize=256)
def _splits(counts: tuple[int, ...], a: tuple[int, ...], b: tuple[int, ...]) -> tuple[tuple[float, float], ...]:
    """Return the distinct (points of a, points of b) over every split of `counts`, by exact enumeration."""
    outcomes = set()
    for split in product(*(range(count + 1) for count in counts)):
        mine = sum(k * v for k, v in zip(split, a, strict=True))
        theirs = sum((n - k) * v for n, k, v in zip(counts, split, b, strict=True))
        outcomes.add((float(mine), float(theirs)))
    return tuple(sorted(outcomes))


class PriceTerms:
    """A price: utility 1 at the own target and 0 at the other's, linear in between, constant beyond; no deal is 0."""

    def __init__(self, deal: Price) -> None:
        self._targets = tuple(side.target for side in deal.sides)
        price = Argument(name="price", kind="integer", low=0, high=deal.ceiling)
        self._propose = Action(name="propose", args=(price,), label="Propose a price")

    def propose(self) -> Action:
        return self._propose

    def points(self, seat: Seat, by: Seat, deal: Deal) -> float:
        target, other = self._targets[seat], self._targets[1 - seat]
        return min(1.0, max(0.0, (int(deal["price"]) - other) / (target - other)))

    def maximum(self, seat: Seat) -> float:
        return 1.0

    def walk_away(self, seat: Seat) -> float:
        return 0.0

    def outcomes(self) -> tuple[tuple[float, float], ...]:
        # Between the targets, utilities add up to 1; beyond them, they are constant.
        low, high = self._targets
        steps = range(low, high + 1) if high - low <= 1000 else (low, (low + high) // 2, high)
        return tuple((self.points(0, 0, {"price": p}), self.points(1, 0, {"price": p})) for p in steps)

    def shares(self, by: Seat, deal: Deal) -> tuple[str, str]:
        return f"to buy for {deal['price']}", f"to sell for {deal['price']}"


def terms(deal: Items | Price) -> Terms:
    """Return the arithmetic of this kind of deal."""
    return ItemTerms(deal) if isinstance(deal, Items) else PriceTerms(deal)
