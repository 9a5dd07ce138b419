"""Rewards: their registry, and the construction of a run's reward from its configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from training.errors import BadInput
from training.games import GameSpec
from training.labels.codebooks import SOTOPIA
from training.records import Episode
from training.reward_section import RewardSection
from training.rewards import components, labels
from training.rewards.base import Reward, Score
from training.rewards.judge import Judge
from training.rewards.judged import Judged, QualityFiltered
from training.rewards.labels import Labelled, Labeller
from training.rewards.outcome import Outcome
from training.rewards.process import Process
from training.rewards.rules import Bounds, Ruled, Settings, factor, scaled

__all__ = ["REGISTRY", "PerGame", "Reward", "Score", "Source", "build", "lowest", "source"]


def _outcome(spec: GameSpec, judge: Judge | None) -> Reward:
    if spec.judged:
        raise BadInput(f"{spec.name} has no result of its own: only a judge can score it", "reward.source")
    return Outcome()


def _judged(spec: GameSpec, judge: Judge | None) -> Reward:
    return Judged(_needed(judge), SOTOPIA)


def _needed(judge: Judge | None) -> Judge:
    if judge is None:
        raise BadInput("this reward or filter needs a judge: give its address and model", "judge")
    return judge


@dataclass(frozen=True, slots=True)
class Source:
    """A source of rewards: its factory, and the bounds of a seat's return."""

    make: Callable[[GameSpec, Judge | None], Reward]
    bounds: Callable[[GameSpec, Settings], Bounds]


REGISTRY: dict[str, Source] = {
    "outcome": Source(_outcome, lambda spec, settings: spec.range_of(settings)),
    "judge": Source(_judged, lambda spec, settings: SOTOPIA.mean_range()),
}


def source(section: RewardSection, spec: GameSpec) -> str:
    """Return the name of the configured source."""
    if section.source == "auto":
        return "judge" if spec.judged else "outcome"
    return section.source


def per_return(section: RewardSection, spec: GameSpec, settings: Settings) -> float | None:
    """Return the reward of one unit of a seat's return, None where the reward is not the game's result."""
    return factor(section, spec.range_of(settings)) if source(section, spec) == "outcome" else None


def lowest(section: RewardSection, spec: GameSpec, settings: Settings, longest: int) -> float:
    """Return the lower bound of one reward of a seat: at the end of a game, on the way, or for a reply and its labels.

    `longest` bounds a reply, in tokens. A game that pays on the way may take all of it back.
    """
    bounds = REGISTRY[source(section, spec)].bounds(spec, settings)
    on_the_way = factor(section, bounds) * (bounds[0] - bounds[1]) if spec.pays else 0.0
    of_turn, of_seat = labels.lowest(section)
    at_end = scaled(section, bounds[0], bounds) + of_seat
    return min(at_end, on_the_way, components.lowest(section, longest, of_turn))


class PerGame:
    """The rewards of a run's games; each episode is scored by the reward of its game."""

    def __init__(self, rewards: Mapping[str, Reward]) -> None:
        self._rewards = dict(rewards)

    async def score(self, episode: Episode, seed: int) -> Score:
        """Score one episode by the reward of its game."""
        return await self._rewards[episode.scenario.game].score(episode, seed)


def build(
    section: RewardSection,
    spec: GameSpec,
    judge: Judge | None = None,
    labellers: Mapping[str, Labeller] | None = None,
) -> Reward:
    """Return the reward of a run for the game `spec`; raise `BadInput` if it needs another game or a judge.

    `labellers` are the classifiers that the section names.
    """
    entry = REGISTRY[source(section, spec)]
    reward: Reward = Ruled(entry.make(spec, judge), section, partial(entry.bounds, spec))
    if section.labels:
        reward = Labelled(reward, section, labellers or {}, judge)
    if section.judge_filter:
        reward = QualityFiltered(reward, _needed(judge))
    if section.process == "none":
        return reward
    return Process(reward, section, _needed(judge) if section.process == "judge" else None)
