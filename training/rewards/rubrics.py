"""Rubrics as data: dimensions with their scale, question and anchors, versioned. Reading a wrong one raises `BadInput`.

`SOTOPIA` has the seven dimensions whose mean is the reward of social dialogue; `CONDUCT` the five fine-grained ones,
which are used in evaluation and by people, never as a reward; `BEHAVIOURS` asks whether a player of Werewolf did what
the behaviour table of OMAR counts. A text that changes gets a new version number.
"""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from training.errors import BadInput
from training.games import REGISTRY
from training.reading import Record


class Anchor(Record):
    """The meaning of one value of a scale."""

    value: float
    text: str = Field(min_length=1, max_length=500)


class Dimension(Record):
    """One question with its scale `low`–`high`, ends included, and the meaning of some of its values.

    `yes_no`: the answer is 1 for yes or 0 for no, and nothing between. `roles`: it is asked about seats that held one
    of these roles only; empty: about every seat.
    """

    name: str = Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")
    title: str = Field(min_length=1, max_length=80)
    low: float
    high: float
    question: str = Field(min_length=1, max_length=1000)
    anchors: tuple[Anchor, ...] = ()
    yes_no: bool = False
    roles: tuple[Annotated[str, Field(min_length=1, max_length=40)], ...] = Field(default=(), max_length=40)

    @model_validator(mode="after")
    def _scale_is_one(self) -> Self:
        if self.low >= self.high:
            raise ValueError("the scale's low end must be below its high end")
        if any(not self.low <= anchor.value <= self.high for anchor in self.anchors):
            raise ValueError("an anchor lies outside the scale")
        if self.yes_no and (self.low, self.high) != (0, 1):
            raise ValueError("the scale of yes or no goes from 0 to 1")
        return self

    @property
    def scale(self) -> str:
        """The valid values, in words."""
        return "0 or 1" if self.yes_no else f"{self.low:g} to {self.high:g}"

    def takes(self, value: float) -> bool:
        """Return whether `value` is valid."""
        return value in (0, 1) if self.yes_no else self.low <= value <= self.high

    def asks(self, role: str) -> bool:
        """Return whether the question applies to a seat with `role` (empty: a game without roles)."""
        return not self.roles or role in self.roles


class Rubric(Record):
    """A named, versioned list of dimensions."""

    name: str = Field(pattern=r"^[a-z][a-z0-9-]{0,79}$")
    version: int = Field(ge=1)
    title: str = Field(min_length=1, max_length=200)
    dimensions: tuple[Dimension, ...] = Field(min_length=1, max_length=40)

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        names = [dimension.name for dimension in self.dimensions]
        if len(set(names)) != len(names):
            raise ValueError("two dimensions share a name")
        return self

    def mean_range(self) -> tuple[float, float]:
        """Return the lowest and highest mean over the dimensions."""
        count = len(self.dimensions)
        return sum(d.low for d in self.dimensions) / count, sum(d.high for d in self.dimensions) / count

    def asks(self, role: str) -> bool:
        """Return whether any dimension applies to a seat with `role` (empty: a game without roles)."""
        return any(dimension.asks(role) for dimension in self.dimensions)

    def of(self, role: str) -> Rubric:
        """Return this version with the dimensions for a seat with `role`; raise `BadInput` if there are none."""
        if not self.asks(role):
            raise BadInput(f"{self.name} v{self.version} asks nothing about {role or 'a seat without a role'}", "role")
        dimensions = tuple(dimension for dimension in self.dimensions if dimension.asks(role))
        return self.model_copy(update={"dimensions": dimensions})


def _dimension(name: str, title: str, scale: tuple[int, int], question: str, anchors: dict[int, str]) -> Dimension:
    marks = tuple(Anchor(value=value, text=text) for value, text in anchors.items())
    return Dimension(name=name, title=title, low=scale[0], high=scale[1], question=question, anchors=marks)


SOTOPIA = Rubric(
    name="sotopia",
    version=1,
    title="Social intelligence: seven dimensions",
    dimensions=(
        _dimension(
            "goal",
            "Goal completion",
            (0, 10),
            "How far did this participant get towards the goal given to them, by the end of the conversation? Judge "
            "only what was reached, not the effort.",
            {0: "nothing of the goal was reached", 5: "about half, or with a large concession", 10: "all of it"},
        ),
        _dimension(
            "believability",
            "Believability",
            (0, 10),
            "Does this participant talk and act as a person with this profile would, from turn to turn?",
            {
                0: "repeats itself, breaks role or acts against the profile",
                5: "mostly in character, with stiff or odd turns",
                10: "a person with this profile might have said every line",
            },
        ),
        _dimension(
            "knowledge",
            "New knowledge",
            (0, 10),
            "Did this participant learn something new and useful, for instance by asking or by listening closely?",
            {0: "learned nothing", 5: "learned a few things of some use", 10: "learned much that matters to them"},
        ),
        _dimension(
            "secret",
            "Keeping the secret",
            (-10, 0),
            "Did this participant keep what they wanted to hide? Without a secret the value is 0.",
            {-10: "told it outright", -5: "gave hints that let the other guess it", 0: "kept it, or has none"},
        ),
        _dimension(
            "social_rules",
            "Social rules and laws",
            (-10, 0),
            "Did this participant break laws, moral rules or the manners that the situation asks for?",
            {-10: "a serious crime or grave harm", -5: "clearly rude or unfair", 0: "broke no rule"},
        ),
        _dimension(
            "relationship",
            "Relationship",
            (-5, 5),
            "What did the conversation do to the relationship with the other, and to this participant's standing?",
            {-5: "ruined it", 0: "left it as it was", 5: "made it markedly closer or stronger"},
        ),
        _dimension(
            "financial",
            "Financial and material benefit",
            (-5, 5),
            "What did this participant gain or lose in money, goods or other material terms?",
            {-5: "a heavy loss", 0: "neither gain nor loss", 5: "a large gain"},
        ),
    ),
)

CONDUCT = Rubric(
    name="fine-grained",
    version=2,
    title="Conduct: five fine-grained dimensions",
    dimensions=(
        _dimension(
            "compromise_seeking",
            "Compromise seeking",
            (0, 10),
            "Does this participant look for terms that both sides can live with, and move towards them?",
            {0: "insists, offers nothing", 5: "gives way once pressed", 10: "keeps proposing fair middle ways"},
        ),
        _dimension(
            "persuasion_skill",
            "Persuasion skill",
            (0, 10),
            "How well does this participant argue: reasons that fit the other's interests, answers to objections, "
            "timing?",
            {0: "no reasons, or ones that put the other off", 5: "sound but general reasons", 10: "moves the other"},
        ),
        _dimension(
            "strategic_commitment",
            "Strategic commitment",
            (0, 10),
            "Does this participant use promises, or commitments about what comes later, to win cooperation now and to "
            "get nearer to the goal?",
            {
                0: "commits to nothing, or its promises are plainly empty",
                5: "vague promises, or ones that change little",
                10: "concrete promises for later that the other can rely on, and that win cooperation now",
            },
        ),
        _dimension(
            "empathy_expression",
            "Empathy expression",
            (0, 10),
            "Does this participant notice the other's feelings and needs, and show that they matter?",
            {0: "ignores or hurts them", 5: "polite set phrases", 10: "responds to what the other really feels"},
        ),
        _dimension(
            "mutual_benefit",
            "Mutual benefit seeking",
            (0, 10),
            "Does this participant look for outcomes in which both gain, such as trades of what each values less?",
            {0: "seeks only their own gain", 5: "accepts a joint gain when offered", 10: "creates joint gains"},
        ),
    ),
)


def _behaviour(name: str, title: str, roles: tuple[str, ...], question: str, no: str, yes: str) -> Dimension:
    anchors = (Anchor(value=0, text=no), Anchor(value=1, text=yes))
    return Dimension(
        name=name, title=title, low=0, high=1, question=question, anchors=anchors, yes_no=True, roles=roles
    )


WOLVES = ("werewolf",)
VILLAGE = ("villager", "seer", "witch", "hunter", "guard", "doctor")

BEHAVIOURS = Rubric(
    name="werewolf-behaviours",
    version=1,
    title="Werewolf: five behaviours",
    dimensions=(
        _behaviour(
            "identity_concealment",
            "Identity concealment",
            WOLVES,
            "Did this wolf take on the part of somebody of the village, by its claims, reports or suspicions?",
            "no: it said too little to be anybody, or its own words gave it away",
            "yes: at least once it spoke as a villager could have spoken, and did not contradict it later",
        ),
        _behaviour(
            "voting_manipulation",
            "Voting manipulation",
            WOLVES,
            "Did this wolf try by words to turn the day's vote against somebody of the village?",
            "no: it only voted, or what it said could move no vote",
            "yes: at least once it accused, spread doubt or rallied votes against a player who was no wolf",
        ),
        _behaviour(
            "team_collaboration",
            "Intra-team collaboration",
            WOLVES,
            "Did this wolf support another wolf by day: back what the other claimed, or draw suspicion away from it?",
            "no: by day it played for itself, or there was no other wolf to support",
            "yes: at least once its words or its vote in public served another wolf",
        ),
        _behaviour(
            "protecting_power_roles",
            "Protecting power roles",
            VILLAGE,
            "Did this player help to keep a seer, witch, hunter, guard or doctor (themselves, too) alive or unknown to "
            "the wolves?",
            "no: nothing it said or did served that, or it gave one away without need",
            "yes: at least once it defended, covered for, guarded or saved one, or hid its own power on purpose",
        ),
        _behaviour(
            "recognising_deception",
            "Recognising deception",
            VILLAGE,
            "Did this player see through a wolf: doubt it for a reason, and say so or vote on it?",
            "no: it never doubted a wolf, or only by a guess without a reason",
            "yes: at least once it named a wolf's claim or conduct as false or suspect for a reason that fits",
        ),
    ),
)

RUBRICS: dict[str, Rubric] = {rubric.name: rubric for rubric in (SOTOPIA, CONDUCT, BEHAVIOURS)}
"""Parley's rubrics by name."""

ASKED_FIRST: tuple[str, ...] = (
    "mutual_benefit",
    "believability",
    "voting_manipulation",
    "recognising_deception",
)
"""Dimensions of the rubrics above that players are asked first, one of each rubric and role; others on request."""

QUALITY: tuple[str, ...] = (
    "It is not what a participant in this situation would naturally say or do.",
    "It shows no thought at all: it ignores what was said before and has no purpose.",
    "It has the wrong form, such as broken tags, notes to oneself, or lines spoken for another participant.",
    "It degenerates: it repeats the instructions or itself, mixes languages or scripts, or runs in circles.",
)
"""Criteria by which a turn fails as training data; any single one suffices."""


def rated_after(game: str) -> Rubric | None:
    """Return the rubric by which players rate each other after this game; None if they do not, or for no known game."""
    return RUBRICS.get(REGISTRY[game].rated_by) if game in REGISTRY else None
