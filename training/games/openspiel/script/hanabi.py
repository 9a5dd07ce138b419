"""A script for Hanabi: plays certain cards, gives hints for playable cards, discards the least known card."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from training.games.actions import write
from training.players.scripted import Script
from training.players.strategic import newest_turn
from training.records import Observation

_CARD = re.compile(r"- Card (\d)(?: \((\w\d)\))?: .*?colour ([\w ]+), rank ([\w ]+)")


@dataclass(frozen=True, slots=True)
class Card:
    """One place in a hand: the card's face if it is visible, and the colours and ranks that its holder considers."""

    place: int
    face: str
    colours: tuple[str, ...]
    ranks: tuple[str, ...]

    def sure(self, stacks: Sequence[str]) -> bool:
        """Return whether every possible face is the next card of its stack."""
        return all(_fits(colour + rank, stacks) for colour in self.colours for rank in self.ranks)

    def spent(self, stacks: Sequence[str]) -> bool:
        """Return whether every possible face is on its stack already."""
        tops = {stack[0]: stack[1] for stack in stacks}
        return all(rank <= tops[colour] for colour in self.colours for rank in self.ranks)

    def after_hint(self, hint: str) -> Card:
        """Return the card as its holder knows it after a hint (a colour or a rank)."""
        if hint in self.face:
            colours = (hint,) if hint.isalpha() else self.colours
            return Card(self.place, self.face, colours, (hint,) if hint.isdigit() else self.ranks)
        colours = tuple(colour for colour in self.colours if colour != hint)
        return Card(self.place, self.face, colours, tuple(rank for rank in self.ranks if rank != hint))


def _fits(card: str, stacks: Sequence[str]) -> bool:
    return f"{card[0]}{int(card[1]) - 1}" in stacks


class HanabiScript(Script):
    """Assumes that the other plays cards that it knows to be playable."""

    def answer(self, observation: Observation, chance: Random) -> str:
        theirs, hand, stacks = read_turn(newest_turn(observation))
        choices = observation.actions[0].args[0].choices
        choice, why = self._decide(theirs, hand, stacks, choices, chance)
        return write(observation.actions[0], {"choice": choice}, why)

    def _decide(
        self, theirs: list[Card], hand: list[Card], stacks: list[str], choices: Sequence[str], chance: Random
    ) -> tuple[str, str]:
        """Return the choice and why."""
        if card := next((card for card in hand if card.sure(stacks)), None):
            return f"Play card {card.place}", f"Whatever my card {card.place} is, it is the next of its stack."
        hints = {choice.rsplit(" ", 1)[1]: choice for choice in choices if choice.startswith("Reveal")}
        gain = {hint: _gain(theirs, hint, stacks) for hint in hints}
        best = max(gain.values(), default=0.0)
        if best > 0:
            hint = chance.choice([hint for hint in hints if gain[hint] == best])
            return hints[hint], "The other holds a card that fits, and this hint tells most about it."
        discards = [card for card in hand if f"Discard card {card.place}" in choices]
        if discards:
            card = min(discards, key=lambda card: (not card.spent(stacks), -len(card.colours) * len(card.ranks)))
            why = "of no more use" if card.spent(stacks) else "the one that I know least of"
            return f"Discard card {card.place}", f"Nothing to play and no hint that helps; card {card.place} is {why}."
        if hints:
            return chance.choice(list(hints.values())), "I cannot discard now, so I give a hint that does no harm."
        raise AssertionError("a player can give a hint or discard: tokens are either there or missing")


def _gain(theirs: list[Card], hint: str, stacks: list[str]) -> float:
    """Return the number of cards that become certain plays for the other, plus a little for other useful information.

    Two copies of one card count once.
    """
    fitting = {card.face: card for card in theirs if _fits(card.face, stacks)}
    gain = 0.0
    for card in fitting.values():
        after = card.after_hint(hint)
        ruled_out = len(card.colours) * len(card.ranks) - len(after.colours) * len(after.ranks)
        gain += (after.sure(stacks) and not card.sure(stacks)) + 0.1 * ruled_out * (hint in card.face)
    return gain


def read_turn(turn: str) -> tuple[list[Card], list[Card], list[str]]:
    """Return the other's hand, the own hand, and the stacks, from the text of a turn."""
    stacks = re.search(r"Stacks: ([\w ]+)\.", turn)
    cards = [
        (Card(int(place), card or "", tuple(colours.split(" or ")), tuple(ranks.split(" or "))))
        for place, card, colours, ranks in _CARD.findall(turn)
    ]
    assert stacks is not None
    return [card for card in cards if card.face], [card for card in cards if not card.face], stacks.group(1).split()
