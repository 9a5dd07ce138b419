"""When a run should end early: failing turns, entropy that keeps rising, a policy far from its start, reward hacking.

Source: OMAR, §4.3; the ceiling on the divergence and what counts as severe hacking are ours. Each rule must hold for
`patience` steps in a row.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from statistics import fmean
from typing import Any

from training.run_sections import StopSection

NAMES = ("failing", "entropy", "kl", "reward", "parse_rate", "reply_tokens")


class Watchdog:
    """Reads each step's metrics; keeps the first entropy, the first `patience` steps with a reward and the last few."""

    def __init__(self, rules: StopSection) -> None:
        self.rules = rules
        self.began: float | None = None
        self.first: list[dict[str, float]] = []
        self.recent: list[dict[str, float]] = []

    def see(self, metrics: Mapping[str, float]) -> str:
        """Take in one step; return why the run should end, or an empty text.

        Reads `failing` and `parse_rate` (shares of turns), `entropy` and `kl` (nats a token), `reward` and
        `reply_tokens` (means); a missing one is no alarm.
        """
        step = {name: metrics[name] for name in NAMES if name in metrics}
        self.recent = [*self.recent, step][-self.rules.patience - 1 :]
        if len(self.first) < self.rules.patience and "reward" in step:
            self.first.append(step)
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
        if self._hacking():
            return (
                f"reward hacking: {rules.patience} steps in a row earned more than the first {rules.patience}, but by "
                "turns of which many more fail, or by replies that are far longer"
            )
        return ""

    def _above(self, name: str, bound: float) -> bool:
        last = self.recent[-self.rules.patience :]
        return len(last) == self.rules.patience and all(step.get(name, -1.0) > bound for step in last)

    def _rising(self) -> bool:
        values = [step["entropy"] for step in self.recent if "entropy" in step]
        if self.began is None or len(values) <= self.rules.patience:
            return False
        return all(a < b for a, b in pairwise(values)) and values[-1] > self.began * (1 + self.rules.entropy_rise)

    def _hacking(self) -> bool:
        last, rules = self.recent[-self.rules.patience :], self.rules
        if not len(last) == len(self.first) == rules.patience:
            return False
        began = {name: fmean([step.get(name, math.nan) for step in self.first]) for name in NAMES}

        def hacks(step: Mapping[str, float]) -> bool:
            now = {name: step.get(name, math.nan) for name in NAMES}  # a comparison with NaN is false: no alarm
            worse = now["failing"] > began["failing"] + rules.hacking_failing
            worse |= now["parse_rate"] < began["parse_rate"] - rules.hacking_failing
            longer = now["reply_tokens"] > began["reply_tokens"] * rules.hacking_length
            return now["reward"] > began["reward"] and (worse or longer)

        return all(hacks(step) for step in last)

    def state_dict(self) -> dict[str, Any]:
        """Return what must survive a restart."""
        return {"began": self.began, "first": self.first, "recent": self.recent}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take up the state of `state_dict`."""
        self.began = state["began"]
        self.first, self.recent = ([dict(step) for step in state.get(name, ())] for name in ("first", "recent"))
