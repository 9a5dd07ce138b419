"""Settings of the household: which task in which room, or a game of ALFWorld, and how many turns."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from training.games.log import Settings

Family = Literal["pick_and_place", "two_objects", "clean", "heat", "cool", "look_under_light"]
Thing = Annotated[str, Field(pattern=r"^[a-z]{1,30} [1-9][0-9]?$")]
Kind = Annotated[str, Field(pattern=r"^[a-z]{1,30}$")]


class Task(Settings):
    """What is to be done, in terms of the rules; seats read it as a sentence."""

    family: Family = Field(description="The family of the task.")
    object: Kind = Field(description="The kind of object, such as mug. Any object of the kind will do.")
    receptacle: Kind = Field(
        description="The kind of receptacle in or on which it must lie in the end; in look_under_light: desklamp."
    )


class Home(Settings):
    """A room with everything in it, and a task."""

    receptacles: dict[Thing, tuple[Thing, ...]] = Field(
        min_length=1, max_length=60, description="The objects that are in or on each receptacle at first."
    )
    task: Task = Field(description="The task.")


class HouseholdSettings(Settings):
    """The settings of a household."""

    family: Literal["any"] | Family = Field(default="any", description="The family of the task. any: drawn.")
    room: Literal["any", "kitchen", "living_room", "bedroom", "bathroom"] = Field(
        default="any",
        description="The room. any: drawn among those in which the family has tasks: heat and cool need a kitchen, "
        "clean a kitchen or bathroom, look_under_light a bedroom or living room.",
    )
    receptacles: int | None = Field(
        default=None, ge=15, le=35, description="The number of receptacles. Empty: drawn in the range of the room."
    )
    distractors: int = Field(default=25, ge=0, le=60, description="Objects that the task does not need.")
    split: Literal["all", "train", "test"] = Field(
        default="all",
        description="The tasks among which one is drawn: every fifth is for tests, the others to train.",
    )
    turn_limit: int = Field(default=40, ge=15, le=200, description="Turns, after which the task has failed.")
    home: Home | None = Field(
        default=None, description="The room and the task. Empty: drawn from the scenario's seed by the other settings."
    )
    alfworld: str = Field(
        default="",
        max_length=300,
        pattern=r"^([\w-]+(\.[\w-]+)*(/[\w-]+(\.[\w-]+)*)*)?$",
        description="A folder in PARLEY_HOME/alfworld, of whose games of ALFWorld one is drawn instead. Empty: none.",
    )
    sha256: str = Field(
        default="", pattern=r"^([0-9a-f]{64})?$", description="Hash of that folder's games; needed with it."
    )
