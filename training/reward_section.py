"""The section of a run's configuration for rewards and the quality filter.

Plain pydantic without torch, like `run_sections`.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from training.engines.base import LONGEST_REPLY
from training.reading import Record

MOST_LABELS = 20
"""Labels in a reward."""


class LabelReward(Record):
    """A label of turns or seats as a reward, or as a filter of turns."""

    label: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")] = Field(description="The label's name.")
    classifier: str = Field(
        default="", max_length=500, description="Folder of the classifier that labels turns; on the site, its name."
    )
    codebook: str = Field(
        default="",
        max_length=500,
        description="In place of a classifier: the codebook under which the judge scores each seat, by name or file.",
    )
    use: Literal["reward", "require", "exclude"] = Field(
        default="reward",
        description="reward = the label adds to the reward. require = turns without it fail the quality filter. "
        "exclude = turns with it fail.",
    )
    per: Literal["turn", "seat"] = Field(
        default="turn",
        description="turn = every turn with the label earns the weight. seat = the seat's return rises by the weight "
        "times the share of its turns that have the label, or times a judge's value from 0 to 1.",
    )
    weight: float = Field(default=1.0, ge=-100, le=100, description="What the label is worth; below 0, a penalty.")
    agreement: float | None = Field(
        default=None,
        ge=-1,
        le=1,
        description="How well the judge agrees with people on this label, as κ or α. A classifier states its own.",
    )

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if bool(self.classifier) == bool(self.codebook):
            raise ValueError("name either a classifier or a codebook")
        if self.codebook and (self.use, self.per) != ("reward", "seat"):
            raise ValueError('a judge gives one value per seat: write use = "reward" and per = "seat"')
        if self.classifier and self.agreement is not None:
            raise ValueError("a classifier states its own agreement: leave it out")
        return self

    @property
    def source(self) -> str:
        """The classifier or the codebook."""
        return self.classifier or self.codebook


class RewardSection(Record):
    """The reward of a seat, and the quality filter of turns."""

    source: Literal["auto", "outcome", "judge"] = Field(
        default="auto",
        description="outcome = the game's own result. judge = a model's scores. auto = what the game needs.",
    )
    scale: Literal["unit", "span", "raw"] = Field(
        default="unit",
        description="unit = linearly rescaled, so that the lowest possible return is 0 and the highest 1. "
        "span = multiplied, so that lowest and highest differ by reward.span and 0 stays 0. "
        "raw = the value of the game or judge; negotiation's returns are always shares from 0 to 1.",
    )
    span: float = Field(
        default=4.0, gt=0, le=1e6, description="With scale span: the difference of the highest and lowest return."
    )
    forfeit: Literal["win", "nothing"] = Field(
        default="win",
        description="What the other seat of a two-player game receives when a seat forfeits (rollout.on_refused): "
        "win = the game's result. nothing = a return of 0, before scaling.",
    )
    malformed: float = Field(
        default=0.0,
        ge=-10,
        le=0,
        description="Reward (at most 0) added for every reply that does not parse or is not legal.",
    )
    well_formed: float = Field(default=0.0, ge=0, le=10, description="Reward added for every legal reply.")
    length: Literal["none", "penalty", "bonus"] = Field(
        default="none",
        description="Reward for the length of a legal reply. penalty = 0 up to length_max tokens, then linearly "
        "decreasing. bonus = decreasing linearly from length_coef at length_min tokens to 0 at length_max; since each "
        "reply can earn it, it also rewards more turns.",
    )
    length_coef: float = Field(default=0.5, gt=0, le=100, description="Size of the reward for length.")
    length_min: int = Field(
        default=11,
        ge=0,
        le=LONGEST_REPLY,
        description="Reply length, in tokens, at which a bonus is length_coef; with length_max it sets the slope.",
    )
    length_max: int = Field(
        default=2048,
        ge=1,
        le=LONGEST_REPLY,
        description="Reply length, in tokens, above which a penalty begins and at which a bonus ends.",
    )
    process: Literal["none", "rule", "judge"] = Field(
        default="none",
        description="Process rewards of turns: 1 for a turn that advanced its seat, else 0. rule = a turn after which "
        "the seat had more of its result within reach, where the game can tell. judge = the judge lists the strategies "
        "that were critical, of seats with a strategist.",
    )
    last_strategy: Literal["process", "result"] = Field(
        default="process",
        description="With process rewards: result = a seat's last turn earns the seat's reward if it is not listed.",
    )
    format: bool = Field(
        default=True, description="A reply that does not parse or is not legal fails the quality filter."
    )
    repetition: float = Field(
        default=0.5,
        gt=0,
        le=1,
        description="A turn fails if more than this share of its word trigrams are repeats; 1 = never.",
    )
    overlap: float = Field(
        default=0.6, gt=0, le=1, description="A turn fails if it copies more than this share from the rules; 1 = never."
    )
    scripts: bool = Field(
        default=True, description="A turn fails if it uses a writing system that has not occurred before."
    )
    judge_filter: bool = Field(
        default=False,
        description="The judge also decides whether each turn is natural and reasoned; other turns fail.",
    )

    labels: tuple[LabelReward, ...] = Field(
        default=(),
        max_length=MOST_LABELS,
        description="Labels of turns and seats as rewards or filters, each by a classifier or by the judge.",
    )
    least_agreement: float = Field(
        default=0.6,
        ge=0,
        le=1,
        description="A run warns of a label on which its classifier (F1) or judge (κ or α) agrees less with people.",
    )

    @field_validator("labels")
    @classmethod
    def _labels_differ(cls, value: tuple[LabelReward, ...]) -> tuple[LabelReward, ...]:
        names = [entry.label for entry in value if entry.use == "reward"]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"two rewards are named {twice}")
        return value

    @field_validator("length_max")
    @classmethod
    def _lengths_differ(cls, value: int, info: ValidationInfo) -> int:
        if value <= info.data.get("length_min", 0):
            raise ValueError(f"must be greater than length_min, {info.data['length_min']}")
        return value
