"""When a run should end early: failing turns, entropy that rises or collapses, reward hacking, falling legality, drift,
clipping, silence, waiting, and a gap between the reward in training and what is gained on held-out scenarios.

Source: OMAR, §4.3, which names failing turns, rising entropy and reward hacking; Sarkar et al. (2025), §6, for silence
and waiting. The other rules and all thresholds are ours (`stop.*`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from statistics import fmean
from typing import Any

from training.run_sections import StopSection

NAMES = (
    "failing",
    "entropy",
    "kl",
    "reward",
    "parse_rate",
    "reply_tokens",
    "advantage_mean",
    "advantage_std",
    "lr",
    "clipfrac",
)
"""The metrics that the rules read."""
SILENT, WAITS = "silent", "waits"
"""Metrics of games that the rules read by role: the learner's seats have these, the game's own are everybody's."""
ROUNDING = 1e-3
"""A mean advantage below this is no drift: where all rewards are equal, nothing but rounding is left."""


class Watchdog:
    """Reads each step's metrics; keeps the first entropy, the first `patience` steps with a reward and recent steps."""

    def __init__(self, rules: StopSection) -> None:
        self.rules = rules
        self.began: float | None = None
        self.first: list[dict[str, float]] = []
        self.recent: list[dict[str, float]] = []
        self.best_parse_rate: float | None = None
        self.evaluated = 0  # the step of the last head-to-head without a gap
        self.gap = False

    def see(self, metrics: Mapping[str, float]) -> str:
        """Add one step; return why the run should end, or an empty text.

        Reads `failing` and `parse_rate` (shares of turns), `entropy` and `kl` (nats per token), `reward`,
        `reply_tokens` and `advantage_mean` (means), `advantage_std`, `lr` and `clipfrac` (a share), `silent` (a share
        of messages) and `waits` (of decisions), each of the learner's role with most of them; a missing number raises
        no alarm.
        """
        self.gap = False
        step = {name: metrics[name] for name in NAMES if name in metrics}
        for name in (SILENT, WAITS):
            by_role = [value for key, value in metrics.items() if key.startswith(f"{name}/")]
            if by_role or name in metrics:
                step[name] = max(by_role or [metrics[name]])
        self.recent = [*self.recent, step][-self.rules.average - 2 * max(self.rules.patience, self.rules.average) :]
        if len(self.first) < self.rules.patience and "reward" in step:
            self.first.append(step)
        if self.began is None and "entropy" in metrics:
            self.began = metrics["entropy"]
        return self._persistent() or self._averaged()

    def see_evaluation(self, step: int, numbers: Mapping[str, float], worth: float = 1.0) -> str:
        """Add a head-to-head of the model after `step` against its start; return why the run should end, or "".

        Of its numbers the upper bound of the difference in returns is read, by role the largest one; `worth` is the
        reward of one unit of return, where the same seats play in both. Then a hack of the reward, or what holds in the
        training scenarios alone, raises the reward and not this.
        """
        gains = [
            value * worth
            for name, value in numbers.items()
            if name.startswith("difference.return") and name.endswith("_high")
        ]
        rewards = [each["reward"] for each in self.recent[-self.rules.average :] if "reward" in each]
        if not gains or not rewards or len(self.first) < self.rules.patience:
            return ""
        risen = fmean(rewards) - fmean(each["reward"] for each in self.first)
        self.gap = risen - max(gains) > self.rules.held_out_gap
        if not self.gap:
            self.evaluated = step
            return ""
        return (
            f"held-out gap: in training the reward has risen by {risen:.3g}, in the head-to-head after step {step} the "
            f"model gained at most {max(gains):.3g} over its start"
        )

    def last_good_step(self, step: int) -> int:
        """Return the last step before the trouble that is reported at `step`.

        That is the one before the last `patience` steps, and for a held-out gap the last head-to-head without one.
        """
        return self.evaluated if self.gap else max(0, step - self.rules.patience)

    def _persistent(self) -> str:
        """Return which rule has held for `patience` steps in a row."""
        rules = self.rules
        if self._above("failing", rules.failing):
            return f"{rules.patience} steps in a row more than {rules.failing:.0%} of all turns failed the filter"
        if self._above("kl", rules.kl_ceiling):
            far = f"further than {rules.kl_ceiling:g} nats from its reference"
            return f"{rules.patience} steps in a row the policy was {far}"
        if self._above("clipfrac", rules.clipfrac):
            return (
                f"{rules.patience} steps in a row more than {rules.clipfrac:.0%} of the tokens' weight was clipped: "
                "each step moves the policy too far"
            )
        if self._above(SILENT, rules.silent):
            return (
                f"silence: {rules.patience} steps in a row more than {rules.silent:.0%} of a role's messages were "
                "missing or next to empty"
            )
        if self._above(WAITS, rules.waits):
            return f"waiting: {rules.patience} steps in a row more than {rules.waits:.0%} of a role's decisions"
        if self._rising():
            return f"the entropy rose {rules.patience} steps in a row, by more than {rules.entropy_rise:.0%} in all"
        if self._hacking():
            return (
                f"reward hacking: {rules.patience} steps in a row earned more than the first {rules.patience}, but by "
                "turns of which many more fail, or by replies that are far longer"
            )
        return ""

    def _averaged(self) -> str:
        """Return which rule holds for the moving averages."""
        rules = self.rules
        entropies = _moving([step["entropy"] for step in self.recent if "entropy" in step], rules.average)
        if entropies and entropies[-1] < rules.entropy_fall * max(entropies):
            return (
                f"entropy collapse: the mean of {rules.average} steps fell from {max(entropies):.3g} to "
                f"{entropies[-1]:.3g} nats per token"
            )
        rates = _moving([step["parse_rate"] for step in self.recent if "parse_rate" in step], rules.average)
        if rates:
            self.best_parse_rate = max(rates[-1], self.best_parse_rate or 0.0)
            last, bound = rates[-rules.average :], self.best_parse_rate - rules.legality_fall
            if len(last) == rules.average and max(last) < bound:
                return (
                    f"falling legality: the share of replies that can be read fell from {self.best_parse_rate:.2f} "
                    f"to {last[-1]:.2f} (means of {rules.average} steps)"
                )
        return self._drifting()

    def _drifting(self) -> str:
        learned = [step for step in self.recent if step.get("lr", math.inf) > 0]
        names = ("advantage_mean", "advantage_std")
        last = [step for step in learned if all(name in step for name in names)][-self.rules.average :]
        if len(last) < self.rules.average or not self.rules.advantage_drift:
            return ""
        mean, deviation = (fmean(step[name] for step in last) for name in names)
        if abs(mean) > max(ROUNDING, self.rules.advantage_drift * deviation):
            return (
                f"drifting advantages: over {self.rules.average} steps their mean was {mean:.3g} at a standard "
                f"deviation of {deviation:.3g}, so that all tokens were pushed the same way"
            )
        return ""

    def _above(self, name: str, bound: float) -> bool:
        last = self.recent[-self.rules.patience :]
        return len(last) == self.rules.patience and all(step.get(name, -1.0) > bound for step in last)

    def _rising(self) -> bool:
        values = [step["entropy"] for step in self.recent[-self.rules.patience - 1 :] if "entropy" in step]
        if self.began is None or len(values) <= self.rules.patience:
            return False
        return all(a < b for a, b in pairwise(values)) and values[-1] > self.began * (1 + self.rules.entropy_rise)

    def _hacking(self) -> bool:
        last, rules = self.recent[-self.rules.patience :], self.rules
        if not len(last) == len(self.first) == rules.patience:
            return False
        began = {name: fmean([step.get(name, math.nan) for step in self.first]) for name in NAMES}

        def hacks(step: Mapping[str, float]) -> bool:
            numbers = {name: step.get(name, math.nan) for name in NAMES}  # a comparison with NaN is false: no alarm
            worse = numbers["failing"] > began["failing"] + rules.hacking_failing
            worse |= numbers["parse_rate"] < began["parse_rate"] - rules.hacking_failing
            longer = numbers["reply_tokens"] > began["reply_tokens"] * rules.hacking_length
            return numbers["reward"] > began["reward"] and (worse or longer)

        return all(hacks(step) for step in last)

    def state_dict(self) -> dict[str, Any]:
        """Return what must survive a restart."""
        return {
            "began": self.began,
            "first": self.first,
            "recent": self.recent,
            "best_parse_rate": self.best_parse_rate,
            "evaluated": self.evaluated,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state of `state_dict`; earlier checkpoints lack some of it."""
        self.began = state["began"]
        self.first, self.recent = ([dict(step) for step in state.get(name, ())] for name in ("first", "recent"))
        self.best_parse_rate = state.get("best_parse_rate")
        self.evaluated = state.get("evaluated", 0)


def _moving(values: list[float], steps: int) -> list[float]:
    """Return the means of every `steps` values in a row."""
    return [fmean(values[start : start + steps]) for start in range(len(values) - steps + 1)]
