"""English that the sentences of several games need."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from training.records import Seat

NAMES = ("Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gus", "Hana", "Ivo", "Jule", "Kim", "Lou")
"""Display names for the most seats that a game of ours has."""


def listed(words: Iterable[str], last: str = "and") -> str:
    """Return at least one word as a list in a sentence: `Ada, Ben and Cleo`, or with another word before the last."""
    *most, end = words
    return f"{', '.join(most)} {last} {end}" if most else end


def count(number: int, noun: str) -> str:
    """Return `1 chip` or `2 chips`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def ballots(names: Sequence[str], votes: Mapping[Seat, Seat | None], nobody: tuple[str, str]) -> str:
    """Return votes by target, most votes first, such as `Ada and Cleo vote for Ben. Dan skips`.

    `nobody` is what one and what several voters for nobody do.
    """
    voters: dict[Seat | None, list[str]] = {}
    for seat, target in sorted(votes.items()):
        voters.setdefault(target, []).append(names[seat])
    order = sorted(voters, key=lambda target: (target is None, -len(voters[target])))
    sentences = []
    for target in order:
        alone = len(voters[target]) == 1
        verb = nobody[not alone] if target is None else f"{'votes' if alone else 'vote'} for {names[target]}"
        sentences.append(f"{listed(voters[target])} {verb}.")
    return " ".join(sentences)
