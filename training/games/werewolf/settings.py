"""Settings of Werewolf: the roles, the rules of nights and days, and what the dead and the public may see."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Literal

from pydantic import Field, model_validator

from training.games.log import Settings

Role = Literal["villager", "werewolf", "seer", "witch", "hunter", "guard", "doctor"]

SIX: tuple[Role, ...] = ("werewolf", "werewolf", "seer", "witch", "villager", "villager")
NINE: tuple[Role, ...] = (*("werewolf",) * 3, "seer", "witch", "hunter", *("villager",) * 3)


Event = Literal["speakers", "runoff", "prey", "vote"]


class Fixed(Settings):
    """The outcomes of chance on one day of a recorded game."""

    event: Event = Field(
        description="speakers: who spoke, in order; runoff: in which order the tied spoke again; prey: on whom the "
        "wolves' tied votes fell; vote: who left after a tied vote."
    )
    day: int = Field(ge=1, le=50, description="The day, or the day after the night; the first is 1.")
    seats: tuple[Annotated[int, Field(ge=0, le=11)], ...] = Field(
        min_length=1, max_length=60, description="The seats, counted from 0."
    )


class WerewolfSettings(Settings):
    """The settings of a game of Werewolf."""

    roles: tuple[Role, ...] = Field(
        default=SIX, min_length=3, max_length=12, description="The roles in the game, as many as there are players."
    )
    deal: tuple[Role, ...] = Field(
        default=(),
        max_length=12,
        description="The same roles by seat, where they are known. Empty: dealt from the scenario's seed.",
    )
    rounds: int = Field(default=1, ge=1, le=5, description="Rounds of discussion a day; everybody speaks once in each.")
    order: Literal["seat", "simultaneous", "bid"] = Field(
        default="seat",
        description="Who speaks: in seat order from a start drawn each day, all at once, or who bids most.",
    )
    fixed: tuple[Fixed, ...] = Field(
        default=(),
        max_length=200,
        description="What chance decided in a recorded game. All else is drawn from the scenario's seed.",
    )
    reveal: bool = Field(default=True, description="Whether a player's role is revealed when that player dies.")
    first_night_kill: bool = Field(
        default=True, description="Whether anybody can die in the first night; if not, only seers act and wolves talk."
    )
    self_save: bool = Field(default=True, description="Whether a witch may use the antidote on herself.")
    wolf_talk: int = Field(default=1, ge=0, le=5, description="Rounds in which the wolves talk before they choose.")
    prey: Literal["others", "anybody"] = Field(
        default="others", description="Whom the wolves may choose: one of the others, or also one of themselves."
    )
    wolf_tie: Literal["first", "random", "nobody"] = Field(
        default="first",
        description="When the wolves' votes tie: what the wolf of the lowest seat wants among the tied, one by chance, "
        "or nobody dies.",
    )
    tie: Literal["nobody", "runoff", "random"] = Field(
        default="nobody",
        description="When the village's vote ties: nobody leaves, the tied speak again and the others choose between "
        "them (tied again: nobody), or one of the tied leaves by chance.",
    )
    last_words: Literal["nobody", "voted", "all"] = Field(
        default="voted",
        description="Whose last words are heard: nobody's, of who was voted out, or of who dies at night, too.",
    )
    wolf_win: Literal["parity", "side"] = Field(
        default="parity",
        description="The wolves win when they are at least as many as the others; side: also when all plain villagers "
        "or all others with a power are dead.",
    )
    day_limit: int = Field(
        default=10, ge=1, le=50, description="Days after which the village wins if wolves are fewer."
    )
    dead_see: Literal["public", "all"] = Field(
        default="public", description="What the dead go on to see: what everybody hears, or also the nights and roles."
    )
    spectator_delay: int = Field(
        default=1, ge=0, le=20, description="Phases (night, dawn, discussion, vote) by which spectators see it later."
    )
    max_words: int = Field(default=60, ge=0, le=1000, description="Words of one speech at most; 0 = no such bound.")
    max_chars: int = Field(default=1000, ge=20, le=20_000, description="Longest speech, in characters.")
    probes: bool = Field(
        default=False,
        description="Whether living players can be asked probes around every speech: whom they would vote for.",
    )

    @model_validator(mode="after")
    def _fits(self) -> WerewolfSettings:
        wolves = self.roles.count("werewolf")
        if not 0 < wolves < len(self.roles) - wolves:
            raise ValueError("roles: there must be werewolves, and fewer of them than of the others")
        if self.deal and Counter(self.deal) != Counter(self.roles):
            raise ValueError("deal: these are not the same roles as in roles")
        if len({(fixed.event, fixed.day) for fixed in self.fixed}) < len(self.fixed):
            raise ValueError("fixed: an event of one day is stated twice")
        if any(not 0 <= seat < len(self.roles) for fixed in self.fixed for seat in fixed.seats):
            raise ValueError("fixed: a seat is named that does not exist")
        return self
