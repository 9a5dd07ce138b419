"""When a run should end early: too many failing turns, entropy that keeps rising, a policy too far from its start.

Source: OMAR, §4.3; the ceiling on the divergence is ours. Each rule must hold for `patience` steps in a row.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from training.run_sections import StopSection


class Watchdog:
    """Reads each step's metrics; keeps the first entropy and the last few steps."""

    def __init__(self, rules: StopSection) -> None:
        self.rules = rules
        self.began: float | None = None
        self.recent: list[dict[str, float]] = []

    def see(self, metrics: Mapping[str, float]) -> str:
        """Take in one step; return why the run should end, or an empty text.

        Reads `failing` (share of turns), `entropy` (nats a token) and `kl` (nats a token); a missing one is no alarm.
        """
        names = ("failing", "entropy", "kl")
        self.recent = [*self.recent, {n: metrics[n] for n in names if n in metrics}][-self.rules.patience - 1 :]
        if self.began is None and "entropy" in metrics:
            self.began = metrics["entropy"]
        rules = self.rules
        if self._above("failing", rules.failing):
            return f"{rules.patience} steps in a row more than {rules.failing:.0%} of all turns failed the filter"
        if self._above("kl", rules.kl_ceiling):
            return (
                f"{rules.patience} steps in a row the policy was further than {rules.kl_ceiling:g} nats from its start"
            )
        if self._rising():
            return f"the entropy rose {rules.patience} steps in a row, by more than {rules.entropy_rise:.0%} in all"
        return ""

    def _above(self, name: str, bound: float) -> bool:
        last = self.recent[-self.rules.patience :]
        return len(last) == self.rules.patience and all(step.get(name, -1.0) > bound for step in last)

    def _rising(self) -> bool:
        values = [step["entropy"] for step in self.recent if "entropy" in step]
        if self.began is None or len(values) <= self.rules.patience:
            return False
        return all(a < b for a, b in pairwise(values)) and values[-1] > self.began * (1 + self.rules.entropy_rise)

    def state_dict(self) -> dict[str, Any]:
        """Return what must survive a restart."""
        return {"began": self.began, "recent": self.recent}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take up the state of `state_dict`."""
        self.began, self.recent = state["began"], [dict(step) for step in state["recent"]]
