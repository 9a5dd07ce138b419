"""Settings of Werewolf: who plays what, what each night and day allows, and what the dead and the public may see."""

from __future__ import annotations

from collections import Counter
from typing import Literal

from pydantic import Field, model_validator

from training.games.log import Settings

Role = Literal["villager", "werewolf", "seer", "witch", "hunter", "guard", "doctor"]

SIX: tuple[Role, ...] = ("werewolf", "werewolf", "seer", "witch", "villager", "villager")
NINE: tuple[Role, ...] = (*("werewolf",) * 3, "seer", "witch", "hunter", *("villager",) * 3)


class WerewolfSettings(Settings):
    """Everything a game of Werewolf is made of."""

    roles: tuple[Role, ...] = Field(
        default=SIX, min_length=3, max_length=12, description="The roles in the game, as many as there are players."
    )
    deal: tuple[Role, ...] = Field(
        default=(), description="The same roles by seat, where they are known. Empty: dealt from the scenario's seed."
    )
    rounds: int = Field(default=1, ge=1, le=5, description="Rounds of discussion a day; everybody speaks once in each.")
    order: Literal["seat", "simultaneous", "bid"] = Field(
        default="seat",
        description="Who speaks: in seat order from a start drawn each day, all at once, or who bids most.",
    )
    speakers: tuple[tuple[int, ...], ...] = Field(
        default=(),
        description="For seat order: the seats (from 0) as they spoke on each day of a recorded game; later days "
        "follow the rule. The dead are passed over.",
    )
    reveal: bool = Field(default=True, description="Whether a player's role is told when that player dies.")
    first_night_kill: bool = Field(
        default=True, description="Whether anybody can die in the first night; if not, only seers act and wolves talk."
    )
    self_save: bool = Field(default=True, description="Whether a witch may use the antidote on herself.")
    wolf_talk: int = Field(default=1, ge=0, le=5, description="Rounds in which the wolves talk before they choose.")
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
        default="voted", description="Whose last words are heard: nobody's, of who was voted out, or of all who die."
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
        default=False, description="Whether the living are asked aside, after every speech, whom they would vote for."
    )

    @model_validator(mode="after")
    def _fits(self) -> WerewolfSettings:
        wolves = self.roles.count("werewolf")
        if not 0 < wolves < len(self.roles) - wolves:
            raise ValueError("roles: there must be werewolves, and fewer of them than of the others")
        if self.deal and Counter(self.deal) != Counter(self.roles):
            raise ValueError("deal: these are not the same roles as in roles")
        if self.speakers and self.order != "seat":
            raise ValueError("speakers states an order of speaking; set order to seat")
        if any(not 0 <= seat < len(self.roles) for day in self.speakers for seat in day):
            raise ValueError("speakers: a seat is named that does not exist")
        return self
