"""The shared view of Kuhn and Leduc poker: two seats with one hidden card each take turns to pay into a pot."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

import pyspiel

from training.analysis import Mark, Review, ReviewedMove, Tally, tallies
from training.games.openspiel.decisions import Decision, decisions
from training.games.openspiel.equilibria import ActionValues, Solution
from training.games.openspiel.view import View
from training.games.prose import count
from training.records import ALL, Seat, Viewer
from training.views import Brief, Card, Counters, Hand, Option, Pile, Zone

CARDS = ("Jack", "Queen", "King")
"""Names of the ranks, the lowest first."""


def written(rank: int) -> str:
    """Return a card in words: `Jack (J)`."""
    return f"{CARDS[rank]} ({CARDS[rank][0]})"


def rank(text: str) -> int:
    """Return the rank of a card in words."""
    return [written(each) for each in range(len(CARDS))].index(text)


def drawn(card: int | None) -> Card:
    """Return a card on the table; None lies face down."""
    return Card(label="face down") if card is None else Card(face=CARDS[card][0], label=CARDS[card])


class Poker(View):
    """A game of two with one card per seat. `marks` are the texts of OpenSpiel's actions, in order.

    `equilibrium` says with what the moves of an ended game are compared.
    """

    equilibrium: ClassVar[str]
    marks: ClassVar[tuple[str, ...]]
    template: ClassVar[str]

    @abstractmethod
    def card(self, state: pyspiel.State, seat: Seat) -> int:
        """Return the rank of a seat's card."""

    @abstractmethod
    def paid(self, state: pyspiel.State, seat: Seat) -> int:
        """Return the chips that a seat has paid into the pot."""

    @abstractmethod
    def folded(self, state: pyspiel.State) -> bool:
        """Return whether a player has folded."""

    def rules(self) -> str:
        return self.template.format(first=self.names[0], second=self.names[1])

    def choice(self, state: pyspiel.State, seat: Seat, action: int) -> str:
        return self.marks[action]

    def sees(self, seat: Seat, viewer: Viewer, state: pyspiel.State) -> bool:
        """Return whether `viewer` may see the card of `seat`: its own, any after a showdown, or any with full view."""
        return viewer in (seat, ALL, len(self.names)) or bool(self.showdown(state))

    def dealt(self, state: pyspiel.State, viewer: Viewer) -> str:
        """Return the deal as far as `viewer` knows it, as part of a sentence."""
        if viewer in (0, 1):
            return f"your card is {written(self.card(state, viewer))}"
        hands = [
            written(self.card(state, seat)) if self.sees(seat, viewer, state) else "a hidden card" for seat in (0, 1)
        ]
        return ", ".join(f"{name} has {card}" for name, card in zip(self.names, hands, strict=True))

    def moves(self, actions: Sequence[int]) -> str:
        """Return the moves of one round, which the first seat begins; empty if there are none."""
        return ", ".join(f"{self.names[at % 2]} {self.marks[action]}" for at, action in enumerate(actions))

    @abstractmethod
    def button(self, state: pyspiel.State, seat: Seat, action: int) -> str:
        """Return what a legal action does, as the label of its button: `Bet 1 more chip`."""

    def zones(self, state: pyspiel.State, viewer: Viewer, choices: Mapping[int, str]) -> tuple[Zone, ...]:
        """Return the other's hand, the pot, and the viewer's hand below."""
        mine = viewer if viewer in (0, 1) else 1
        options = tuple(
            Option(label=self.button(state, mine, action), choice=choice) for action, choice in choices.items()
        )
        return (
            self._hand(state, 1 - mine, viewer, ()),
            *self.common(state),
            self._pot(state),
            self._hand(state, mine, viewer, options),
        )

    def _hand(self, state: pyspiel.State, seat: Seat, viewer: Viewer, options: tuple[Option, ...]) -> Hand:
        title = "Your card" if seat == viewer else f"{self.names[seat]}'s card"
        shown = self.card(state, seat) if self.sees(seat, viewer, state) else None
        return Hand(title=title, seat=seat, cards=(drawn(shown),), options=options)

    def _pot(self, state: pyspiel.State) -> Counters:
        paid = tuple(
            Pile(name=f"paid by {name}", value=self.paid(state, seat), icon="chip", seat=seat)
            for seat, name in enumerate(self.names)
        )
        pot = count(sum(self.paid(state, seat) for seat in (0, 1)), "chip")
        return Counters(title=f"The pot: {pot}", piles=paid)

    def common(self, state: pyspiel.State) -> tuple[Hand, ...]:
        """Return the public cards."""
        return ()

    def private(self, state: pyspiel.State, seat: Seat) -> Brief:
        return Brief(title=f"You hold a {CARDS[self.card(state, seat)]}")

    def headline(self, state: pyspiel.State, result: Sequence[float], viewer: Viewer) -> str:
        winner = max((0, 1), key=lambda seat: result[seat])
        chips = count(round(result[winner]), "chip")
        if not result[winner]:
            return "The pot is shared: nobody wins or loses a chip."
        if viewer in (0, 1):
            return f"You win {chips}." if viewer == winner else f"You lose {chips}."
        return f"{self.names[winner]} wins {chips}."

    def moment(self, state: pyspiel.State) -> str:
        if self.folded(state):
            folded = min((0, 1), key=state.player_return)
            return f"{self.names[folded]} folded, and no card was shown."
        cards = [CARDS[self.card(state, seat)] for seat in (0, 1)]
        return f"The cards were shown: {self.names[0]} had a {cards[0]}, {self.names[1]} a {cards[1]}."

    def showdown(self, state: pyspiel.State) -> str:
        if not state.is_terminal() or self.folded(state):
            return ""
        return " ".join(f"{name} shows {written(self.card(state, seat))}." for seat, name in enumerate(self.names))

    def forfeit(self, state: pyspiel.State, loser: Seat) -> Sequence[float]:
        paid = float(self.paid(state, loser))
        return [-paid if seat == loser else paid for seat in (0, 1)]

    # --- afterwards ---

    @abstractmethod
    def solution(self) -> Solution:
        """Return the equilibrium, with the worth of every choice."""

    def analysis(self, state: pyspiel.State) -> tuple[Review, ...]:
        """Return every decision after the opening against the equilibrium, given what its player knew."""
        solution = self.solution()
        decisions_made = list(decisions(state, len(self.settings.opening)))
        if not decisions_made:
            return ()
        judged = [(move, solution.at(move.before, move.seat)) for move in decisions_made]
        moves = tuple(self._reviewed(move, values) for move, values in judged)
        lost = [sum(values.lost(move.action) for move, values in judged if move.seat == seat) for seat in (0, 1)]
        chips = Tally(label="expected chips lost", cells=tuple(f"{total:.2f}" for total in lost))
        return (
            Review(
                title="The decisions against an equilibrium",
                method=f"{self.equilibrium} {BY_KNOWLEDGE}",
                moves=moves,
                tallies=(chips, *tallies(moves, 2)),
            ),
        )

    def _reviewed(self, move: Decision, values: ActionValues) -> ReviewedMove:
        lost = values.lost(move.action)
        mark: Mark = next((mark for limit, mark in LIMITS if lost >= limit), "")
        facts = [
            f"with a {CARDS[self.card(move.before, move.seat)]}",
            f"the equilibrium does it in {values.probabilities[move.action]:.0%} of such cases",
            f"expects to lose {lost:.2f} chips by it" if lost >= SMALLEST else "loses nothing by it",
        ]
        if mark:
            best = max(values.expected, key=lambda action: values.expected[action])
            facts.append(f"better: {self.deed(move.before, move.seat, best)}")
        if not values.reached:
            facts.append("the equilibrium never comes to this point")
        return ReviewedMove(
            step=move.step,
            seat=move.seat,
            text=self.deed(move.before, move.seat, move.action),
            mark=mark,
            detail=tuple(facts),
        )


SMALLEST = 0.005
"""The smallest loss of chips that is shown; it exceeds the error of the policy."""
LIMITS: tuple[tuple[float, Mark], ...] = ((0.5, "blunder"), (0.2, "mistake"), (0.05, "inaccuracy"))
"""Marks by the least number of chips that a decision loses."""
BY_KNOWLEDGE = (
    "The loss of a decision is an expectation given what the player knew, if both play the equilibrium from then on. "
    "It does not depend on the opponent's card, and against a weaker opponent another choice may win more."
)
