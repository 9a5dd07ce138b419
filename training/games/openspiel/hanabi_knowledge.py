"""Hanabi: what a player could be certain of at a turn, from the hints and the visible cards.

No solver knows Hanabi's best moves. Every statement is true whatever the hidden cards are: a card can be any that its
hints allow and of which its holder does not see every copy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from training.records import Seat

Card = tuple[str, int]
"""A colour's letter and a rank."""
Hands = Sequence[Sequence[tuple[Card, frozenset[Card]]]]
"""By seat and place: a card, and which cards its hints allow."""


@dataclass(frozen=True, slots=True)
class Position:
    """The facts of a position: copies of each card in the deck, heights of the fireworks, discards and hands."""

    deck: Mapping[Card, int]
    heights: Mapping[str, int]
    discards: Sequence[Card]
    hands: Hands

    def fits(self, card: Card) -> bool:
        """Return whether a card is the next of its firework."""
        return self.heights[card[0]] == card[1] - 1

    def needed(self, card: Card) -> bool:
        """Return whether a firework still needs this card, and this is the last copy of it."""
        colour, rank = card
        gone = Counter(self.discards)
        lower = [(colour, each) for each in range(self.heights[colour] + 1, rank)]
        reachable = all(gone[each] < self.deck[each] for each in lower)
        return self.heights[colour] < rank and reachable and self.deck[card] - gone[card] == 1

    def possible(self, seat: Seat) -> tuple[frozenset[Card], ...]:
        """Return what each card of a seat can be to its holder."""
        seen = Counter(self.discards)
        seen.update((colour, rank) for colour, height in self.heights.items() for rank in range(1, height + 1))
        seen.update(card for at, hand in enumerate(self.hands) for card, _ in hand if at != seat)
        return tuple(
            frozenset(card for card in allowed if seen[card] < self.deck[card]) for _, allowed in self.hands[seat]
        )

    def certain_plays(self, seat: Seat) -> tuple[int, ...]:
        """Return the places of a seat's cards that fit whatever they are."""
        return tuple(at for at, cards in enumerate(self.possible(seat)) if all(map(self.fits, cards)))

    def sure_to_fail(self, seat: Seat, place: int) -> bool:
        """Return whether a card of a seat fits no firework, whatever it is."""
        return not any(map(self.fits, self.possible(seat)[place]))

    def known_to_be_needed(self, seat: Seat, place: int) -> bool:
        """Return whether a card of a seat is the last copy that a firework needs, whatever it is."""
        return all(map(self.needed, self.possible(seat)[place]))
