"""The configuration of OMAR: which form of credit, with which parameters."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, ValidationInfo, field_validator

from training.errors import BadInput
from training.methods.base import MethodConfig
from training.methods.omar.base import Omar
from training.methods.omar.flat import Flat
from training.methods.omar.group_relative import GroupRelative
from training.methods.omar.hierarchical import Hierarchical
from training.methods.omar.turn_only import TurnOnly

FORMS: dict[str, type[Omar]] = {
    "hierarchical": Hierarchical,
    "flat": Flat,
    "turn_only": TurnOnly,
    "group_relative": GroupRelative,
}
"""The classes by the value of `OmarConfig.advantage`."""


class OmarConfig(MethodConfig):
    """How OMAR turns a seat's reward into credit.

    The policy gradient of the default form is unbiased at `gamma_turn` = 1; at the default 0.9 it is that of a reward
    which counts less for earlier turns.
    """

    summary: ClassVar[str] = "Self-play in which one model plays every seat; credit goes to turns, then to tokens."

    name: Literal["omar"] = Field(default="omar", description="The method: self-play with a hierarchical advantage.")
    advantage: Literal["hierarchical", "flat", "turn_only", "group_relative"] = Field(
        default="hierarchical",
        description="hierarchical: turns first, then tokens inside each turn. Ablations: flat (one long sequence), "
        "turn_only (every token gets its turn's advantage), group_relative (reward minus a group's mean, no critic).",
    )
    critic_heads: Literal["two", "one"] = Field(
        default="two",
        description="two: separate value heads for turns and tokens. one: a single head, as in the paper.",
    )
    turn_value: Literal["before", "last_token"] = Field(
        default="before",
        validate_default=True,
        description="Where a turn's value is read: before its first token, or (the paper, with one head) after its "
        "last token.",
    )
    gamma_turn: float = Field(
        default=0.9,
        ge=0,
        le=1,
        description="Turn decay: the discount from one turn to the next. Below 1 the gradient is biased towards late "
        "turns.",
    )
    lam_turn: float = Field(
        default=1.0, ge=0, le=1, description="GAE's λ from turn to turn; 1 trusts rewards, 0 the critic."
    )
    gamma: float = Field(default=1.0, ge=0, le=1, description="Discount from token to token inside a turn.")
    lam: float = Field(default=1.0, ge=0, le=1, description="GAE's λ from token to token inside a turn.")
    filter: Literal["off", "zero", "min"] = Field(
        default="min",
        description="Advantage of a turn that fails the quality filters. min: at most 0. zero: exactly 0 (the "
        "paper; only where rewards cannot be negative). off: as any other turn.",
    )
    whiten: bool = Field(default=False, description="Whiten advantages to mean 0 and variance 1 over the step's batch.")
    elimination_discount: float = Field(
        default=0.75,
        ge=0,
        le=1,
        description="Share of a positive reward that a seat keeps if the game eliminated it before the final round.",
    )
    baseline: Literal["conversation", "role"] = Field(
        default="conversation",
        description="For group_relative: the mean over the seats of the same conversation, or over the same seat in "
        "all replays of the same start.",
    )

    @field_validator("turn_value")
    @classmethod
    def _heads_fit(cls, value: str, info: ValidationInfo) -> str:
        heads, advantage = info.data.get("critic_heads"), info.data.get("advantage")
        hierarchical = advantage == "hierarchical"
        if value == "last_token" and (advantage == "turn_only" or (hierarchical and heads == "two")):
            raise ValueError(
                "a turn head of its own, read after the turn, learns the outcome of the very turn it should be a "
                "baseline for: its advantage vanishes as it improves. Use turn_value = before"
                + (", or critic_heads = one" if hierarchical else "")
            )
        if hierarchical and heads == "one" and value == "before":
            raise ValueError(
                "one head cannot hold the turn's value and its first token's at the same position: they have different "
                "targets. Use turn_value = last_token (the paper's form), or critic_heads = two"
            )
        return value

    def build(self) -> Omar:
        """Return the form that `advantage` names."""
        return FORMS[self.advantage](self)

    def check(self, reward_low: float, replays: int) -> None:
        """Refuse `zero` where rewards may be negative, and a replay baseline without replays."""
        if self.filter == "zero" and reward_low < 0:
            raise BadInput(
                f"rewards may fall to {reward_low:g}, and an advantage of 0 would then reward failing; use min",
                "filter",
            )
        if self.advantage == "group_relative" and self.baseline == "role" and replays < 2:
            raise BadInput("a mean over replays needs at least 2 games per scenario", "baseline")
