"""Settings of Among Us: grid, tasks, kills, meetings; roles and tasks are drawn unless `deal` states them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from training.games.log import Settings
from training.seeding import rng

MOST = 8
"""Largest number of rooms along one side of the grid."""

Room = tuple[int, int]
"""Column from the west and row from the north, both from 0."""


class Deal(Settings):
    """A stated deal: the imposter and everybody's tasks."""

    imposter: int = Field(ge=0, le=11, description="Seat of the imposter, from 0.")
    tasks: tuple[Annotated[tuple[Room, ...], Field(max_length=12)], ...] = Field(
        max_length=12,
        description="Rooms of each seat's tasks, as column and row from 0. Those of the imposter are not used.",
    )


class AmongUsSettings(Settings):
    """The settings of a game besides its players."""

    width: int = Field(default=2, ge=1, le=MOST, description="Rooms from west to east.")
    height: int = Field(default=2, ge=1, le=MOST, description="Rooms from north to south.")
    tasks: int = Field(default=4, ge=1, le=12, description="Tasks of each crewmate.")
    task_time: int = Field(
        default=3, ge=1, le=20, description="Rounds that a task takes; going to the next room takes as long."
    )
    cooldown: int = Field(
        default=5, ge=1, le=1000, description="Rounds before the first kill, between kills, and after a meeting."
    )
    wait: int = Field(
        default=10, ge=1, le=100, description="Rounds after which somebody who waits is asked again in any case."
    )
    rounds: int = Field(default=300, ge=1, le=1000, description="Rounds after which the game is over.")
    limit_winner: Literal["imposter", "crew"] = Field(
        default="imposter", description="Who wins when all rounds are over."
    )
    discussion: int = Field(default=2, ge=0, le=5, description="How often everybody speaks in a meeting.")
    words: int = Field(default=20, ge=1, le=200, description="Longest message, in words.")
    max_chars: int = Field(default=300, ge=20, le=5000, description="Longest message, in characters.")
    skip: bool = Field(default=True, description="Whether a vote may name nobody.")
    probes: bool = Field(
        default=True, description="Whether crewmates can be asked probes in meetings: whom they would vote for."
    )
    task_reward: float = Field(
        default=0.2, ge=0, le=1, description="What all own tasks together add to a crewmate's result of 1 or -1."
    )
    deal: Deal | None = Field(default=None, description="Roles and tasks. Empty: drawn from the scenario's seed.")

    @model_validator(mode="after")
    def _fits(self) -> AmongUsSettings:
        if self.width * self.height < 2:
            raise ValueError("there must be at least two rooms")
        for seat, rooms in enumerate(self.deal.tasks if self.deal else ()):
            if self.deal and seat != self.deal.imposter and len(rooms) != self.tasks:
                raise ValueError(f"deal.tasks.{seat} must name {self.tasks} rooms, one for each task")
            for column, row in rooms:
                if not (0 <= column < self.width and 0 <= row < self.height):
                    raise ValueError(f"deal.tasks.{seat}: there is no room ({column},{row})")
        return self


def draw(settings: AmongUsSettings, seats: int, seed: int) -> Deal:
    """Draw roles and tasks: each seat is equally likely to be the imposter, each room equally likely to have a task."""
    grid = [(column, row) for row in range(settings.height) for column in range(settings.width)]
    imposter = rng(seed, "among_us", "imposter").randrange(seats)
    tasks = tuple(
        tuple(sorted(rng(seed, "among_us", "tasks", seat).choices(grid, k=settings.tasks))) for seat in range(seats)
    )
    return Deal(imposter=imposter, tasks=tasks)
