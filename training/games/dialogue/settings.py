"""Settings of the dialogue: the scene, two people with goals and secrets, and how the talk runs (after SOTOPIA)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator, model_validator

from training.games.log import Settings

Kind = Literal["speak", "nonverbal", "action", "none", "leave"]


class Profile(Settings):
    """A participant's profile. The relationship determines how much of it the other participant knows."""

    first_name: str = Field(default="", max_length=200, description="First name. The display name comes from the seat.")
    last_name: str = Field(default="", max_length=200, description="Last name.")
    age: int | None = Field(default=None, ge=0, le=200, description="Age in years. May be empty.")
    gender: str = Field(default="", max_length=200, description="Gender, such as Woman, Man, Nonbinary.")
    pronouns: str = Field(default="", max_length=200, description="Pronouns, such as She/her.")
    occupation: str = Field(default="", max_length=500, description="Occupation.")
    public_info: str = Field(default="", max_length=4000, description="What acquaintances and closer people know.")
    personality_and_values: str = Field(
        default="", max_length=4000, description="Personality and values: what friends and closer people know."
    )
    secret: str = Field(default="", max_length=4000, description="A secret that nobody else knows.")
    big_five: str = Field(default="", max_length=1000, description="Five-factor traits; kept for judges, not shown.")
    moral_values: tuple[str, ...] = Field(default=(), description="Moral values; kept for judges, not shown.")
    schwartz_personal_values: tuple[str, ...] = Field(default=(), description="Basic values; kept, not shown.")
    decision_making_style: str = Field(default="", max_length=1000, description="Decision style; kept, not shown.")
    mbti: str = Field(default="", max_length=40, description="Type indicator; kept for judges, not shown.")


class Participant(Settings):
    """One seat's private side."""

    profile: Profile = Field(default_factory=Profile, description="Who this participant is.")
    goal: str = Field(
        min_length=1,
        max_length=8000,
        description="The private goal. <extra_info>, <strategy_hint> and <clarification_hint> may mark parts of it.",
    )


class EarlierTurn(Settings):
    """One turn before the game begins."""

    seat: Literal[0, 1] = Field(description="Who did it.")
    kind: Kind = Field(default="speak", description="What kind of turn it was.")
    text: str = Field(default="", max_length=8000, description="What was said or done.")


class DialogueSettings(Settings):
    """The settings of a dialogue."""

    scenario: str = Field(min_length=1, max_length=8000, description="The scene, known to both.")
    relationship: int = Field(
        default=0,
        ge=0,
        le=5,
        description="0 strangers, 1 known by name, 2 acquaintances, 3 friends, 4 romantic partners, 5 family.",
    )
    participants: tuple[Participant, Participant] = Field(description="The two seats' profiles and goals.")
    show_hints: bool = Field(default=True, description="Whether a seat reads the hints inside its own goal.")
    kinds: tuple[Kind, ...] = Field(
        default=("speak", "nonverbal", "action", "none", "leave"),
        max_length=5,
        description="The kinds of turn a seat may choose from; speaking is always one of them.",
    )
    order: Literal["alternating", "simultaneous", "random"] = Field(
        default="alternating", description="Who acts: by turns, both at once, or drawn from the scenario's seed."
    )
    first_seat: Literal[0, 1] | None = Field(
        default=0, description="Who begins when turns alternate. Empty: drawn from the scenario's seed."
    )
    fixed_order: tuple[Literal[0, 1], ...] = Field(
        default=(),
        max_length=400,
        description="For random order: the seats as they acted in a recorded conversation, then by seed.",
    )
    given: tuple[EarlierTurn, ...] = Field(
        default=(), max_length=4, description="Up to two rounds that were spoken before the game begins."
    )
    turn_limit: int = Field(default=20, ge=2, le=400, description="Turns of both seats together.")
    turns_per_seat: int | None = Field(
        default=None, ge=1, le=200, description="Turns of each seat at most, such as 5. Empty: only the total counts."
    )
    goal_check: bool = Field(
        default=False, description="Whether the tool seat is asked if a goal is reached; then the game ends."
    )
    goal_check_every: int = Field(default=1, ge=1, le=100, description="Turns between two such questions.")
    max_chars: int = Field(default=1000, ge=20, le=20_000, description="Longest turn, in characters.")
    codename: str = Field(default="", max_length=300, description="Name of the scene in its source; not shown.")
    source: str = Field(default="", max_length=300, description="Where the scene comes from; not shown.")
    constraints: dict[str, str] = Field(
        default_factory=dict, description="Who may be cast, as text from the source; kept, not shown."
    )

    @field_validator("kinds")
    @classmethod
    def _speaks(cls, kinds: tuple[Kind, ...]) -> tuple[Kind, ...]:
        if "speak" not in kinds:
            raise ValueError("speak must be one of the kinds")
        if len(set(kinds)) != len(kinds):
            raise ValueError("a kind is named twice")
        return kinds

    @model_validator(mode="after")
    def _fits(self) -> DialogueSettings:
        if self.fixed_order and self.order != "random":
            raise ValueError("fixed_order states a random order; set order to random")
        for turn in self.given:
            if turn.kind in ("speak", "nonverbal", "action") and not turn.text.strip():
                raise ValueError(f"an earlier turn of kind {turn.kind} needs text")
            if turn.kind == "leave":
                raise ValueError("nobody can have left before the game begins")
        return self
