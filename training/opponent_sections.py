"""The sections of a run's configuration that say who plays beside the learner: the pool of opponents, and the league.

Plain pydantic without torch, like `run_sections`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator

from training.reading import Record
from training.records import Seat
from training.sections import MOST_STEPS, Names

MIRROR, PAST, START = "mirror", "past", "start"
"""Sources of opponents that are the learner itself: now, after a saved step, and at the start of the run."""
SPEAKER = "speaker"
"""The source that is the run's speaker alone, without a strategist."""
TEACHER = "teacher"
"""The policy that plays the learner's seats in its place, so that the learner learns from it."""
PHASE = "phase "
"""What the source begins with that is the learner at the end of a phase: `phase NAME`."""


def of_learner(source: str) -> bool:
    """Return whether the source of an opponent is the learner itself, as it is or as it was."""
    return source in (MIRROR, PAST, START) or source.startswith(PHASE)


def saved_steps(step: int, every: int, newest: int) -> tuple[int, ...]:
    """Return the `newest` steps before training step `step` after which the learner was saved; 0 is the start."""
    return tuple(range(0, step, every)[-newest:])  # the range, not its numbers: there may be many


def with_roles(names: Sequence[str], roles: Sequence[str]) -> set[Seat]:
    """Return the seats that have one of the named roles; `roles` is the role of every seat."""
    return {seat for seat, role in enumerate(roles) if role in names}


class Opponent(Record):
    """One entry of the pool that a game's other seats are filled from."""

    source: str = Field(
        min_length=1,
        max_length=500,
        description="mirror = the learner itself at every seat. past = the learner as it was at a saved step. "
        "start = the run's starting model. phase NAME = the learner at the end of that phase. Otherwise as in a "
        "head-to-head: a player such as scripted, a model's name or folder, or ADDRESS MODEL [SECRET].",
    )
    weight: float = Field(default=1.0, gt=0, le=1e6, description="How often it is drawn, relative to the others.")
    learner: Literal["one"] | Annotated[Names, Field(min_length=1)] = Field(
        default="one",
        description="Seats of the learner: one, drawn for every game, or all seats with these roles; with source "
        "mirror, one stands for every seat.",
    )
    partner: str = Field(
        default="",
        max_length=500,
        description="Who plays one of the learner's seats, drawn for every game among those with its roles: a source "
        "as above, other than mirror; nothing is learned from it. Empty = nobody: the learner plays them all.",
    )
    ally: str = Field(
        default="",
        max_length=500,
        description="Who plays one of the opponent's seats, drawn for every game, where it has several: a source as "
        "above, other than mirror. Empty = nobody: the opponent plays them all.",
    )

    @field_validator("learner")
    @classmethod
    def _names_are_roles(cls, value: Literal["one"] | tuple[str, ...]) -> Literal["one"] | tuple[str, ...]:
        if value == "one":
            return value
        if any(name.casefold() == "one" for name in value):
            raise ValueError('for one seat, drawn for every game, write "one" in place of the list of roles')
        if any(not name.strip() or "," in name for name in value):
            raise ValueError("the name of a role is not empty and has no comma")
        if len({*value}) < len(value):
            raise ValueError("a role is named twice")
        return value

    @field_validator("ally")
    @classmethod
    def _ally_has_a_seat(cls, value: str, info: ValidationInfo) -> str:
        if value and info.data.get("source") == MIRROR:
            raise ValueError("with source mirror there is no opponent that could have an ally: name another source")
        if value == MIRROR:
            raise ValueError("an ally cannot be the learner itself: leave it empty, or name another player or past")
        return value

    @field_validator("partner")
    @classmethod
    def _partner_has_a_seat(cls, value: str, info: ValidationInfo) -> str:
        if value and info.data.get("source") == MIRROR:
            raise ValueError("with source mirror the learner plays every seat: name its roles and another source")
        if value and info.data.get("learner") == "one":
            raise ValueError("the learner plays one seat, which the partner would take: name roles in learner")
        if value == MIRROR:
            raise ValueError("a partner cannot be the learner itself: leave it empty, or name another player or past")
        return value

    @property
    def sources(self) -> dict[str, str]:
        """Who may play beside the learner, by field."""
        beside = {"partner": self.partner, "ally": self.ally}
        return {"source": self.source} | {field: source for field, source in beside.items() if source}


class LeagueSection(Record):
    """The league: saved steps play each other and the other opponents, which are drawn by the results."""

    every: int = Field(
        default=0,
        ge=0,
        le=MOST_STEPS,
        description="Training steps between the league's evaluations, a multiple of learn.save_every; 0 = no league.",
    )
    games: int = Field(
        default=32,
        ge=2,
        le=10_000,
        description="Games of each pair in an evaluation, from the same starts for all pairs; rounded up to whole "
        "starts, each of which is played from every seat.",
    )
    pfsp: Literal["none", "hard", "variance"] = Field(
        default="hard",
        description="Weights by which opponents are drawn (prioritised fictitious self-play); p is the learner's last "
        "result against one, from 0 to 1: hard = (1 - p)^2; variance = p(1 - p); none = the entry's weight alone.",
    )
