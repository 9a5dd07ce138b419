"""Hanabi for two in words: players see each other's cards, but not their own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, Literal

import pyspiel

from training.analysis import Mark, Review, ReviewedMove, Tally
from training.games.openspiel import hanabi_knowledge
from training.games.openspiel.decisions import Decision, decisions
from training.games.openspiel.hanabi_knowledge import Position
from training.games.openspiel.settings import HanabiSettings, OpenSpielSettings
from training.games.openspiel.view import View, params
from training.games.prose import listed
from training.records import ALL, Seat, Viewer
from training.views import Card, Counters, Hand, Option, Pile, Stack, Stacks, Suit, Zone

RANKS = 2
COPIES = (3, 1)
"""Number of cards of each rank in a colour."""
COLOURS: dict[str, Suit] = {"R": "red", "Y": "yellow", "G": "green"}


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

    # --- for people ---

    def guide(self) -> tuple[str, ...]:
        size = self.size
        return (
            f"You play together: {size.colours} fireworks grow from 1 to 2, and each card in its place is a point.",
            "Each colour has three cards of rank 1 and one of rank 2. You see the other's cards, and not your own.",
            "In your turn you play a card, discard one, or give a hint: all the other's cards of one colour or rank.",
            f"A hint costs one of {size.information} tokens. A discard or a finished firework brings one back.",
            "A card that fits its firework stays there. A card that does not fit is discarded and costs a life.",
            f"The game ends with the last firework, or when {size.life} lives are lost: then all points are lost, too.",
            "Once the last card is drawn, each of you has one more turn.",
        )

    def zones(self, state: pyspiel.State, viewer: Viewer, choices: Mapping[int, str]) -> tuple[Zone, ...]:
        table = self.table(state, viewer)
        mine = viewer if viewer in (0, 1) else 1
        size = self.size
        heights = {stack[0]: int(stack[1]) for stack in table.stacks.split()}
        discards = tuple(_face_up(card) for card in table.discards.split())
        return (
            self._shown_hand(table, 1 - mine, viewer, choices.values()),
            Stacks(
                title="Fireworks",
                stacks=tuple(
                    Stack(suit=COLOURS[letter], height=heights[letter], most=RANKS) for letter in size.letters
                ),
            ),
            Counters(
                title="On the table",
                piles=(
                    Pile(name="hint tokens", value=table.information, most=size.information, icon="hint"),
                    Pile(name="lives", value=table.life, most=size.life, icon="life"),
                    Pile(name="card to draw" if table.pile == 1 else "cards to draw", value=table.pile, icon="card"),
                ),
            ),
            Hand(title="Discarded", cards=discards, small=True),
            self._shown_hand(table, mine, viewer, choices.values()),
        )

    def _shown_hand(self, table: Table, seat: Seat, viewer: Viewer, choices: Collection[str]) -> Hand:
        """Return a hand; one's own has buttons at its cards, the other's has the hints.

        What is not legal now keeps its place as an option without a choice.
        """
        if seat == viewer:
            cards = tuple(
                self._card(*card, _options((f"Play card {place}", f"Discard card {place}"), choices))
                for place, card in enumerate(table.hands[seat])
            )
            return Hand(title="Your hand", seat=seat, cards=cards)
        values = (*(f"color {letter}" for letter in self.size.letters), *(f"rank {rank + 1}" for rank in range(RANKS)))
        hints = _options([f"Reveal player +1 {value}" for value in values], choices) if viewer == 1 - seat else ()
        cards = tuple(self._card(*card, ()) for card in table.hands[seat])
        return Hand(title=f"{self.names[seat]}'s hand", seat=seat, cards=cards, options=hints)

    def _card(self, card: str, possibilities: str, options: tuple[Option, ...]) -> Card:
        known = self._known(possibilities)
        if card == "XX":
            suit: Suit | Literal[""] = next((suit for suit in COLOURS.values() if suit in known), "")
            label = f"face down{'; ' if known else ''}{', '.join(known)}"
            return Card(suit=suit, label=label, known=known, options=options)
        holder_knows = f"; its holder knows: {', '.join(known)}" if known else ""
        shown = _face_up(card)
        return shown.model_copy(update={"label": shown.label + holder_knows, "known": known, "options": options})

    def _known(self, possibilities: str) -> tuple[str, ...]:
        """Return in short words what the holder of a card knows of it, by what it may still be."""
        letters, ranks = possibilities.rstrip("0123456789"), possibilities.lstrip("".join(COLOURS))
        excluded = [letter for letter in self.size.letters if letter not in letters]
        colour = [COLOURS[letters]] if len(letters) == 1 else [f"not {COLOURS[letter]}" for letter in excluded]
        return (*colour, *([ranks] if len(ranks) == 1 else []))

    def phase(self, state: pyspiel.State) -> str:
        return "" if self.table(state, ALL).pile else "Last turns"

    def ask(self, state: pyspiel.State, seat: Seat) -> str:
        hints = self.table(state, seat).information
        if not hints:
            return "Play a card or discard one: no hint is left."
        return (
            "Play a card, or give a hint."
            if hints == self.size.information
            else "Play a card, discard one, or give a hint."
        )

    def deed(self, state: pyspiel.State, seat: Seat, action: int) -> str:
        verb, *rest = self.choice(state, seat, action).split()
        other = self.names[1 - seat]
        if verb == "Reveal":
            value = rest[-1]
            return f"tells {other} which cards are {COLOURS.get(value, f'of rank {value}')}"
        table = self.table(state, ALL)
        card = table.hands[seat][int(rest[-1])][0]
        if verb == "Discard":
            return f"discards the {_in_words(card)}"
        fits = f"{card[0]}{int(card[1]) - 1}" in table.stacks.split()
        return f"plays the {_in_words(card)}, which {'fits' if fits else 'does not fit: a life is lost'}"

    def headline(self, state: pyspiel.State, result: Sequence[float], viewer: Viewer) -> str:
        who = "You score" if viewer in (0, 1) else f"{self.names[0]} and {self.names[1]} score"
        return f"{who} {result[0]:g} of {self.size.colours * RANKS} points together."

    def moment(self, state: pyspiel.State) -> str:
        table = self.table(state, ALL)
        if not table.life:
            return "The last life was lost, and with it all points."
        if all(stack[1] == str(RANKS) for stack in table.stacks.split()):
            return "All fireworks are finished."
        return "Everybody has had the last turn after the last card was drawn."

    def forfeit(self, state: pyspiel.State, loser: Seat) -> Sequence[float]:
        return [0.0, 0.0]

    # --- afterwards ---

    def position(self, state: pyspiel.State) -> Position:
        """Return the facts of a position."""
        table = self.table(state, ALL)
        return Position(
            deck={(letter, rank): COPIES[rank - 1] for letter in self.size.letters for rank in range(1, RANKS + 1)},
            heights={stack[0]: int(stack[1]) for stack in table.stacks.split()},
            discards=[_card(text) for text in table.discards.split()],
            hands=[[(_card(card), _allowed(possibilities)) for card, possibilities in hand] for hand in table.hands],
        )

    def analysis(self, state: pyspiel.State) -> tuple[Review, ...]:
        """Return the moves after the opening, each with what its player could be certain of."""
        judged = [(move, self._facts(move)) for move in decisions(state, len(self.settings.opening))]
        if not judged:
            return ()
        moves = tuple(
            ReviewedMove(
                step=move.step,
                seat=move.seat,
                text=self.deed(move.before, move.seat, move.action),
                mark=max((MARKS[fact] for fact in facts), key=SEVERITY.index, default=""),
                detail=tuple(facts.values()),
            )
            for move, facts in judged
        )
        rows = tuple(
            Tally(
                label=label,
                cells=tuple(str(sum(fact in facts for move, facts in judged if move.seat == seat)) for seat in (0, 1)),
            )
            for fact, label in FACTS.items()
        )
        return (Review(title="What was certain", method=METHOD, moves=moves, tallies=rows),)

    def _facts(self, move: Decision) -> dict[str, str]:
        """Return what was certain about a move, by the names of `MARKS`, in words."""
        verb, *_, last = self.choice(move.before, move.seat, move.action).split()
        position = self.position(move.before)
        fitting = position.certain_plays(move.seat)
        facts = {}
        if verb == "Reveal":
            other = 1 - move.seat
            if position.possible(other) == self.position(move.before.child(move.action)).possible(other):
                facts["empty hint"] = f"told {self.names[other]} nothing new"
        elif verb == "Discard" and position.known_to_be_needed(move.seat, int(last)):
            facts["needed discard"] = "was certain to discard the last copy of a card that a firework needs"
        elif verb == "Play" and position.sure_to_fail(move.seat, int(last)):
            facts["failing play"] = "was certain to fail"
        elif verb == "Play" and int(last) in fitting:
            facts["certain play"] = "was certain to fit"
        if fitting and (verb != "Play" or int(last) not in fitting):
            places = listed([PLACES[at] for at in fitting])
            missed = "missed play" if verb != "Reveal" else "postponed play"
            facts[missed] = f"the {places} card{' was' if len(fitting) == 1 else 's were'} certain to fit"
        return facts


PLACES = ("first", "second", "third", "fourth", "fifth")
SEVERITY: tuple[Mark, ...] = ("", "inaccuracy", "mistake", "blunder")
MARKS: dict[str, Mark] = {
    "certain play": "",
    "postponed play": "",
    "missed play": "inaccuracy",
    "empty hint": "inaccuracy",
    "needed discard": "mistake",
    "failing play": "blunder",
}
"""What can be certain about a move, with its mark. A hint while a card was certain to fit has none: it may be best."""
FACTS = {
    "certain play": "plays that were certain to fit",
    "failing play": "plays that were certain to fail",
    "needed discard": "discards of cards known to be needed",
    "missed play": "discards and other plays while a card was certain to fit",
    "postponed play": "hints while a card was certain to fit",
    "empty hint": "hints that told nothing new",
}
METHOD = (
    "No solver knows the best moves of Hanabi. The marks concern what the player could be certain of from the hints "
    "and the visible cards. They ignore conventions that the players may have agreed on."
)


def _card(text: str) -> hanabi_knowledge.Card:
    """Return `R2` as a colour and a rank."""
    return text[0], int(text[1])


def _allowed(possibilities: str) -> frozenset[hanabi_knowledge.Card]:
    """Return the cards of `RY12`: what hints allow a card to be."""
    letters, ranks = possibilities.rstrip("0123456789"), possibilities.lstrip("".join(COLOURS))
    return frozenset((letter, int(rank)) for letter in letters for rank in ranks)


@lru_cache(maxsize=1024)
def possible(possibilities: str) -> str:
    """Return `RY12` in words: the colours and ranks that a card may still have."""
    letters, ranks = possibilities.rstrip("0123456789"), possibilities.lstrip("".join(COLOURS))
    return f"colour {' or '.join(letters)}, rank {' or '.join(ranks)}"


def _face_up(card: str) -> Card:
    """Return a card that lies face up, such as `R2`."""
    return Card(face=card[1], suit=COLOURS[card[0]], label=_in_words(card))


def _options(buttons: Sequence[str], choices: Collection[str]) -> tuple[Option, ...]:
    """Return a button for each choice, without one that is not legal."""
    return tuple(Option(label=_label(choice), choice=choice if choice in choices else "") for choice in buttons)


def _label(choice: str) -> str:
    """Return what is written on the button of a choice."""
    verb, *_, value = choice.split()
    return f"Point out {COLOURS.get(value, f'{value}s')}" if verb == "Reveal" else verb


def _in_words(card: str) -> str:
    return f"{COLOURS[card[0]]} {card[1]}"
