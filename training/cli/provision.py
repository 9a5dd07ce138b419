"""`python -m training provision`: the pure Nash equilibria of the information-provision game."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Sequence
from typing import Any

from training.errors import BadInput
from training.evaluate.provision import ProvisionGame


def main(arguments: Namespace) -> dict[str, Any]:
    """Return the equilibria, and as text with payoffs unless it is JSON; raise `BadInput` at the option."""
    try:
        game = ProvisionGame.read(arguments.accuracies.split(","), arguments.guess.split(","), arguments.cost)
    except BadInput as error:
        raise BadInput(error.why, f"--{error.where}") from error
    equilibria = game.equilibria()
    result = {"equilibria": [list(profile) for profile in equilibria]}
    return result if arguments.json else result | {"text": _table(game, equilibria)}


def show(result: dict[str, Any]) -> str:
    """Return the table."""
    return str(result["text"])


def _table(game: ProvisionGame, equilibria: Sequence[Sequence[str]]) -> str:
    """Return the game's numbers, then every equilibrium with each player's move and payoff."""
    numbers = range(1, len(game.accuracies) + 1)
    lines = [
        _line("", (f"player {number}" for number in numbers)),
        _line("accuracy", (f"{float(accuracy):.4g}" for accuracy in game.accuracies)),
        f"mean guess accuracy {float(game.guess):.4g}, cost of a search {float(game.cost):.4g}",
        "",
        f"pure equilibria ({len(equilibria)}), each player's move and payoff:",
    ]
    for profile in equilibria:
        paid = game.payoffs(profile)
        lines.append(_line("", (f"{move} {float(payoff):.4f}" for move, payoff in zip(profile, paid, strict=True))))
    return "\n".join((*lines, "", game.verdict()))


def _line(head: str, cells: Iterable[str]) -> str:
    return (f"{head:8}" + "".join(f"{cell:>11}" for cell in cells)).rstrip()
