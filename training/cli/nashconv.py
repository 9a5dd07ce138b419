"""`python -m training nashconv`: the distance of a Kuhn or Leduc poker policy from an equilibrium."""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import Any

from training.evaluate import nashconv


def main(arguments: Namespace) -> dict[str, Any]:
    """Return NashConv, exploitability and value of a policy; raise `BadInput` if policy and game do not match."""
    return nashconv.run(
        arguments.game,
        arguments.policy,
        engine=arguments.engine,
        device=arguments.device,
        dtype=arguments.dtype,
        on_progress=_print_progress if sys.stderr.isatty() else lambda done, of: None,
        constrained=arguments.constrained,
    )


def _print_progress(done: int, of: int) -> None:
    """Print the progress on one line of the terminal."""
    print(f"\r{done} of {of} information states", end="\n" if done == of else "", file=sys.stderr, flush=True)


def show(result: dict[str, Any]) -> str:
    """Return the numbers, one per line."""
    return (
        f"{result['policy']} in {result['game']}, {result['states']} information states\n"
        f"NashConv: {result['nash_conv']:.6f}\n"
        f"exploitability: {result['exploitability']:.6f} chips per game, mean over both seats\n"
        f"value of the first seat against itself: {result['value']:.6f}"
    )
