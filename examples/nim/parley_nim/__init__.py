"""Nim: two players take sticks from heaps, and who takes the last stick wins."""

from __future__ import annotations

from pathlib import Path

from parley_nim.game import Nim, NimSettings
from training.games.base import GameSpec
from training.records import Scenario

__all__ = ["SPEC", "Nim", "NimSettings"]


def label(scenario: Scenario) -> str:
    """Return the sizes of the heaps."""
    return " + ".join(str(size) for size in NimSettings.model_validate(scenario.settings).heaps)


SPEC = GameSpec(
    name="nim",
    title="Nim",
    summary="Take sticks from one heap at a time; who takes the last stick wins.",
    make=Nim,
    settings=NimSettings,
    players=(2, 2),
    low=-1.0,
    high=1.0,
    zero_sum=True,
    hidden=False,
    label=label,
    actions=("take",),
    script="parley_nim.script:PerfectPlayer",
    samples=(Path(__file__).with_name("nim.jsonl"),),
    opponents=("nim-greedy",),
)
