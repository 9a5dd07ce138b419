"""Hanabi for two in words: players see each other's cards, but not their own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

import pyspiel

from training.games.openspiel.settings import HanabiSettings, OpenSpielSettings
from training.games.openspiel.view import View, line_zone, params
from training.records import ALL, Seat, Viewer
from training.views import Cell, Cells

RANKS = 2
COPIES = (3, 1)
"""Number of cards of each rank in a colour."""
COLOURS = {"R": "red", "Y": "yellow", "G": "green"}


@dataclass(frozen=True, slots=True)
class Size:
    """One size of the game."""

    colours: int
    hand: int
    information: int
    life: int = 3

    @property
    def letters(self) -> str:
        """The colours' letters in OpenSpiel's order."""
        return "".join(COLOURS)[: self.colours]

    @property
    def cards(self) -> int:
        """Cards in the deck."""
        return self.colours * sum(COPIES)


SIZES = {"mini": Size(colours=2, hand=3, information=3), "simple": Size(colours=3, hand=5, information=8)}


def bounds(settings: Mapping[str, Any]) -> tuple[float, float]:
    """Return the lowest and the highest result: one point for every card of a finished stack."""
    return 0.0, float(SIZES[HanabiSettings.model_validate(settings).size].colours * RANKS)


ALL_MARKS = (
    *(f"{verb} card {place}" for verb in ("Play", "Discard") for place in range(5)),
    *(f"Reveal player +1 color {letter}" for letter in COLOURS),
    *(f"Reveal player +1 rank {rank + 1}" for rank in range(RANKS)),
)
RULES = """\
Hanabi is played by two who win or lose together: {first} and {second}.
1. The deck has {cards} cards of {count} colours, {colours}, in ranks 1 and 2. Each colour has three cards of rank 1 \
and one of rank 2. A card is written with its colour and rank: R2 is the red card of rank 2.
2. Each player holds {hand} cards, sees the other's, and never sees its own. Cards in a hand are counted from 0.
3. The players share {information} information tokens and {life} life tokens.
4. Each colour has a stack, which grows from rank 1 to rank 2. R0 is the empty red stack.
5. {first} begins; they take turns. In a turn a player may
   - <Play card i>: if the card is the next of its stack, it is put there and both get 1 point; otherwise a life token \
is lost and the card is discarded. A finished stack brings back an information token;
   - <Discard card i>: only while an information token is missing, which it brings back;
   - <Reveal player +1 color C> or <Reveal player +1 rank r>: spends an information token to point out all cards of \
that colour or rank in the other's hand; there must be one.
6. Who has played or discarded draws a new card, while there are any.
7. The game ends when all stacks are finished ({most} points), when each player has had one more turn after the last \
card was drawn, or when the last life token is lost: then all points are lost."""


@dataclass(frozen=True, slots=True)
class Table:
    """A viewer's knowledge of the table. A hand has (card or XX, possible colours and ranks) for each place."""

    life: int
    information: int
    stacks: str
    hands: tuple[tuple[tuple[str, str], ...], ...]
    pile: int
    discards: str


def read_table(text: str) -> Table:
    """Return the table that OpenSpiel describes; in an observation the observer's own hand comes first."""
    head, _, rest = text.partition("Hands:\n")
    hands, _, tail = rest.partition("Deck size: ")
    pile, _, discards = tail.partition("\nDiscards:")
    life, information, stacks = (line.split(": ", 1)[1].strip() for line in head.strip().splitlines())
    return Table(
        life=int(life),
        information=int(information),
        stacks=stacks,
        hands=tuple(_hand(hand) for hand in hands.split("-----\n")),
        pile=int(pile),
        discards=discards.strip(),
    )


def _hand(text: str) -> tuple[tuple[str, str], ...]:
    lines = (line.partition(" || ") for line in text.splitlines() if " || " in line)
    return tuple((card, possibilities.partition("|")[2]) for card, _, possibilities in lines)


class Hanabi(View):
    """Two players, two ranks."""

    game = "hanabi"
    model: ClassVar[type[OpenSpielSettings]] = HanabiSettings
    keeps = True  # who only discards and reveals loses no life, and so no point

    @property
    def size(self) -> Size:
        """The numbers of this game."""
        assert isinstance(self.settings, HanabiSettings)
        return SIZES[self.settings.size]

    def parameters(self) -> tuple[tuple[str, int | bool], ...]:
        size = self.size
        return params(
            players=2,
            colors=size.colours,
            ranks=RANKS,
            hand_size=size.hand,
            max_information_tokens=size.information,
            max_life_tokens=size.life,
        )

    def deck(self) -> Counter[int]:
        return Counter({c * RANKS + r: COPIES[r] for c in range(self.size.colours) for r in range(RANKS)})

    def rules(self) -> str:
        size = self.size
        return RULES.format(
            first=self.names[0],
            second=self.names[1],
            cards=size.cards,
            count=size.colours,
            colours=", ".join(f"{COLOURS[letter]} ({letter})" for letter in size.letters),
            hand=size.hand,
            information=size.information,
            life=size.life,
            most=size.colours * RANKS,
        )

    def brief(self, seat: Seat) -> str:
        return f"You are {self.names[seat]}; player +1 is {self.names[1 - seat]}."

    def choice(self, state: pyspiel.State, seat: Seat, action: int) -> str:
        verb, rest = state.action_to_string(seat, action).strip("()").split(" ", 1)
        return f"{verb} {rest}" if verb == "Reveal" else f"{verb} card {rest}"

    def table(self, state: pyspiel.State, viewer: Viewer) -> Table:
        """Return the table as far as `viewer` may know it, with `hands` in seat order."""
        if viewer in (ALL, len(self.names)):
            return read_table(str(state))
        if viewer in (0, 1):
            look = read_table(state.observation_string(viewer))
            return look if viewer == 0 else replace(look, hands=look.hands[::-1])
        looks = [read_table(state.observation_string(seat)) for seat in (0, 1)]
        return replace(looks[0], hands=(looks[0].hands[0], looks[1].hands[0]))

    def state(self, state: pyspiel.State, viewer: Viewer) -> str:
        table = self.table(state, viewer)
        lines = [
            f"1. Life tokens: {table.life}. Information tokens: {table.information}.",
            f"2. Stacks: {table.stacks}.",
            f"3. Cards in the draw pile: {table.pile}.",
            f"4. Discard pile: {table.discards or 'empty'}.",
        ]
        order = (1 - viewer, viewer) if viewer in (0, 1) else (0, 1)
        for at, seat in enumerate(order, 5):
            lines.append(f"{at}. {self._hand(seat, viewer)}:")
            for place, (card, possibilities) in enumerate(table.hands[seat]):
                face = "" if card == "XX" else f" ({card})"
                knows = "" if seat == viewer else f"{self.names[seat]} knows: "
                lines.append(f"   - Card {place}{face}: {knows}{possible(possibilities)}")
        return "\n".join(lines)

    def _hand(self, seat: Seat, viewer: Viewer) -> str:
        return "Your hand" if seat == viewer else f"{self.names[seat]}'s hand"

    def board(self, state: pyspiel.State, viewer: Viewer, choices: Mapping[int, str]) -> tuple[Cells, ...]:
        table = self.table(state, viewer)
        tokens = [
            Cell(text=str(table.information), label="information tokens"),
            Cell(text=str(table.life), label="life tokens"),
            Cell(text=str(table.pile), label="cards in the draw pile"),
        ]
        hands = [line_zone(self._hand(seat, viewer), [_cell(*card) for card in table.hands[seat]]) for seat in (0, 1)]
        stacks = [Cell(text=stack, label=_in_words(stack)) for stack in table.stacks.split()]
        discards = [Cell(text=card, label=_in_words(card)) for card in table.discards.split()]
        return (
            line_zone("Stacks", stacks),
            *hands,
            line_zone("Tokens and pile", tokens),
            *([line_zone("Discarded", discards)] if discards else []),
        )

    def forfeit(self, state: pyspiel.State, loser: Seat) -> Sequence[float]:
        return [0.0, 0.0]


@lru_cache(maxsize=1024)
def possible(possibilities: str) -> str:
    """Return `RY12` in words: the colours and ranks that a card may still have."""
    letters, ranks = possibilities.rstrip("0123456789"), possibilities.lstrip("".join(COLOURS))
    return f"colour {' or '.join(letters)}, rank {' or '.join(ranks)}"


def _cell(card: str, possibilities: str) -> Cell:
    if card == "XX":
        return Cell(text="?", label=f"hidden; {possible(possibilities)}")
    return Cell(text=card, label=f"{_in_words(card)}; its holder knows: {possible(possibilities)}")


def _in_words(card: str) -> str:
    return f"{COLOURS[card[0]]} {card[1]}"
