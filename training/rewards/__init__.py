"""What an episode earned: the registry of rewards, and how a configuration puts one together."""

from __future__ import annotations

from collections.abc import Callable

from training.errors import BadInput
from training.games import GameSpec
from training.rewards.base import Reward, Score
from training.rewards.judge import Judge
from training.rewards.judged import Judged, QualityFiltered
from training.rewards.outcome import Outcome
from training.rewards.rubrics import SOTOPIA
from training.rewards.rules import Ruled
from training.run_sections import RewardSection

__all__ = ["REGISTRY", "Reward", "Score", "build"]


def _outcome(spec: GameSpec, judge: Judge | None) -> Reward:
    if spec.judged:
        raise BadInput(f"{spec.name} has no result of its own: only a judge can score it", "reward.source")
    return Outcome(spec)


def _judged(spec: GameSpec, judge: Judge | None) -> Reward:
    return Judged(_needed(judge), SOTOPIA)


def _needed(judge: Judge | None) -> Judge:
    if judge is None:
        raise BadInput("this reward or filter needs a judge: give its address and model", "judge")
    return judge


REGISTRY: dict[str, Callable[[GameSpec, Judge | None], Reward]] = {"outcome": _outcome, "judge": _judged}


def build(section: RewardSection, spec: GameSpec, judge: Judge | None = None) -> Reward:
    """Return the reward of a run on the game `spec`; raise `BadInput` if the game or a missing judge rules it out."""
    source = section.source
    if source == "auto":
        source = "judge" if spec.judged else "outcome"
    reward: Reward = Ruled(REGISTRY[source](spec, judge), section)
    return QualityFiltered(reward, _needed(judge)) if section.judge_filter else reward
