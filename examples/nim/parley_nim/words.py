"""Every sentence that Nim says to models and to people, and its choices as text."""

from __future__ import annotations

from collections.abc import Sequence

from training.games.actions import how_to
from training.games.prose import count as counted
from training.games.prose import listed
from training.records import Action, Seat, Viewer
from training.views import Cell

LETTERS = "ABCDEF"
RULES = (
    "In your turn you take one or more sticks from a single heap.",
    "Press a stick to take it and all sticks to its right.",
    "Who takes the last stick of all wins.",
)
ASK = "Choose how many sticks to take from one heap."


def choice(count: int, heap: int) -> str:
    """Return a choice as a player writes it: `2 from A`."""
    return f"{count} from {LETTERS[heap]}"


def read_choice(text: str) -> tuple[int, int]:
    """Return (sticks, heap) of a choice; the inverse of `choice`."""
    count, _, letter = text.partition(" from ")
    return int(count), LETTERS.index(letter)


def opening(heaps: Sequence[int], names: Sequence[str], take: Action, seat: Seat | None = None) -> str:
    """Return the rules, with who the reader is; None = a reader who does not play.

    What a single reader may know is a separate paragraph: a table shows it apart from the rules.
    """
    sizes = listed(f"heap {LETTERS[heap]} with {counted(size, 'stick')}" for heap, size in enumerate(heaps))
    rules = (
        f"This is Nim. There is {sizes}. In turn each player takes one or more sticks from a single heap. Who takes "
        "the last stick of all wins."
    )
    who = "" if seat is None else f"You are {names[seat]}; you play against {names[1 - seat]}."
    return "\n\n".join(part for part in (rules, who, f"How to act:\n{how_to((take,))}") if part)


def state(heaps: Sequence[int], to_move: str) -> str:
    """Return what is left, and whose turn it is."""
    left = ", ".join(f"{LETTERS[heap]} {size}" for heap, size in enumerate(heaps))
    return f"Sticks left: {left}. {to_move} is to move."


def unchosen(name: str, taken: str) -> str:
    """Return what is played for a player who does not answer."""
    return f"{name} does not answer, so this is played: {taken}."


def given_up(loser: str, winner: str) -> str:
    """Return the end of a game that somebody gives up."""
    return f"{loser} gives up the game, and {winner} wins."


def over(winner: str) -> str:
    """Return the end of a game that was played out."""
    return f"{winner} takes the last stick and wins."


# --- for people ---


def row(heap: int, size: int, acts: bool) -> tuple[Cell, ...]:
    """Return a heap: its letter, and a stick for each that is left, with a choice if the viewer is to move."""
    sticks = (
        Cell(
            text="|",
            label=f"take {counted(count, 'stick')} from heap {LETTERS[heap]}" if acts else "a stick",
            choice=choice(count, heap) if acts else "",
        )
        for count in range(size, 0, -1)
    )
    return (Cell(text=LETTERS[heap], label=f"heap {LETTERS[heap]}: {counted(size, 'stick')}"), *sticks)


def deed(taken: str) -> str:
    """Return what a player does, to be read after its name."""
    count, heap = read_choice(taken)
    return f"takes {counted(count, 'stick')} from heap {LETTERS[heap]}"


def headline(names: Sequence[str], winner: Seat, viewer: Viewer) -> str:
    """Return how the game ended for a viewer."""
    if viewer == winner:
        return "You win."
    return f"You lose. {names[winner]} wins." if viewer == 1 - winner else f"{names[winner]} wins."


def moment(name: str, taken: str = "") -> str:
    """Return what ended the game: the move of a player, or that it gave up."""
    return f"{name} {deed(taken)}, and no stick is left." if taken else f"{name} gave up."
