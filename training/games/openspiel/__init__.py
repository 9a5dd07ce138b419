"""Strategic games over OpenSpiel: tic-tac-toe, Connect Four, Kuhn and Leduc poker, Hanabi, and any other by name."""

from __future__ import annotations

from functools import partial

from training.games.base import GameSpec, sample_files
from training.games.openspiel import connect_four, hanabi, kuhn_poker, leduc_poker, tic_tac_toe
from training.games.openspiel.game import OpenSpielGame
from training.games.openspiel.generic import PREFIX
from training.games.openspiel.generic import spec as generic
from training.games.openspiel.settings import HanabiSettings, OpenSpielSettings, undealt
from training.games.openspiel.view import View
from training.records import Scenario

__all__ = ["PREFIX", "SPECS", "HanabiSettings", "OpenSpielGame", "OpenSpielSettings", "generic"]


def _spec(view: type[View], title: str, summary: str, **declared: object) -> GameSpec:
    return GameSpec(
        name=view.game,
        title=title,
        summary=summary,
        make=partial(OpenSpielGame, view),
        settings=view.model,
        players=(2, 2),
        actions=("answer",),
        undealt=undealt,
        samples=sample_files("strategic"),
        **{"label": lambda scenario: title, **declared},  # type: ignore[arg-type]
    )


def _size(scenario: Scenario) -> str:
    return f"Hanabi, {HanabiSettings.model_validate(scenario.settings).size}"


SPECS = (
    _spec(
        tic_tac_toe.TicTacToe,
        "Tic-tac-toe",
        "Three in a row on a grid of 3 by 3.",
        low=-1.0,
        high=1.0,
        zero_sum=True,
        marks=tic_tac_toe.ALL_MARKS,
        hidden=False,
        opponents=("mcts:100", "mcts:1000"),
        script="training.games.openspiel.script.boards:BoardScript",
    ),
    _spec(
        connect_four.ConnectFour,
        "Connect Four",
        "Four in a line on an upright grid of 6 by 7.",
        low=-1.0,
        high=1.0,
        zero_sum=True,
        marks=connect_four.ALL_MARKS,
        hidden=False,
        analysed_by_worker=True,
        opponents=("mcts:10", "mcts:100"),
        script="training.games.openspiel.script.boards:BoardScript",
    ),
    _spec(
        kuhn_poker.KuhnPoker,
        "Kuhn poker",
        "Three cards, one bet, and the value of bluffing.",
        low=-2.0,
        high=2.0,
        zero_sum=True,
        marks=kuhn_poker.KuhnPoker.marks,
        opponents=("nash",),
        script="training.games.openspiel.script.poker:KuhnScript",
    ),
    _spec(
        leduc_poker.LeducPoker,
        "Leduc poker",
        "Six cards, two rounds of betting and a public card.",
        low=-13.0,
        high=13.0,
        zero_sum=True,
        marks=leduc_poker.LeducPoker.marks,
        analysed_by_worker=True,
        opponents=("cfr",),
        script="training.games.openspiel.script.poker:LeducScript",
    ),
    _spec(
        hanabi.Hanabi,
        "Hanabi",
        "Two who see only each other's cards build stacks together.",
        low=0.0,
        high=6.0,
        bounds=hanabi.bounds,
        pays=True,
        reach=True,
        cooperative=True,
        marks=hanabi.ALL_MARKS,
        label=_size,
        script="training.games.openspiel.script.hanabi:HanabiScript",
    ),
)
"""The registered games; any other game of OpenSpiel is available by its name with `PREFIX`."""
