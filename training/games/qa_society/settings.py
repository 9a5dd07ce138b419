"""The settings of a society that answers a question, and which seats they fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, StringConstraints, field_validator

from training.errors import BadInput
from training.games.actions import clean
from training.games.log import Settings
from training.games.qa_society.scoring import tokens
from training.records import Seat

ASKER: Seat = 0
MOST_SEATS = 12
MOST_EFFORT = 100
MOST_COST = 1.0

Line = Annotated[str, Field(max_length=1000)]
Tool = Annotated[str, StringConstraints(max_length=40, pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$")]
"""The name of a corpus; letters, digits, `_` and `-`, since it becomes part of a role's name."""


class QaSocietySettings(Settings):
    """A question with its right answers, who may search what, and the budgets."""

    question: str = Field(min_length=1, max_length=2000, description="The question, which everybody reads.")
    answers: tuple[Line, ...] = Field(
        max_length=100, description="The right answers, each in another form. The best fit counts. No seat reads them."
    )
    tools: tuple[Tool, ...] = Field(
        default=(),
        max_length=MOST_SEATS - 1,
        description="The corpus that each helper can search, in seat order from the second seat on. With asking off: "
        "the one that the only seat can search; none for an agent without a search.",
    )
    asking: bool = Field(
        default=True, description="Whether the first seat may ask the others. Off: one seat answers alone."
    )
    deanon: bool = Field(
        default=False, description="Whether the asker reads which helper, with which corpus, gave each answer."
    )
    cost: float = Field(default=0.01, ge=0, le=MOST_COST, description="What each search takes from everybody's return.")
    effort: int = Field(default=12, ge=1, le=MOST_EFFORT, description="Most asks and searches; one more ends the game.")
    turn_limit: int = Field(default=30, ge=1, le=400, description="Most moves of all seats together.")
    evidence_chars: int = Field(
        default=2000, ge=20, le=100_000, description="Longest result of one search, in characters."
    )
    max_chars: int = Field(default=200, ge=20, le=20_000, description="Longest answer, in characters.")
    metadata: dict[str, Line] = Field(
        default_factory=dict,
        max_length=20,
        description="What the question's source states besides, such as its relation. Nobody reads it.",
    )

    @field_validator("question")
    @classmethod
    def _has_words(cls, question: str) -> str:
        if not clean(question):
            raise ValueError("a question needs some text")
        return question

    @field_validator("answers")
    @classmethod
    def _can_be_given(cls, answers: tuple[str, ...]) -> tuple[str, ...]:
        if not any(map(tokens, answers)):
            raise ValueError("at least one right answer must have a word or number that is no article")
        return answers


def bounds(settings: Mapping[str, Any]) -> tuple[float, float]:
    """Return the lowest and the highest return: nothing right after the most searches, everything right without any.

    The settings may be only a few. Where asking is on, an ask comes before the first search.
    """
    fields = QaSocietySettings.model_fields
    cost, effort, turns, asking = (
        settings.get(name, fields[name].default) for name in ("cost", "effort", "turn_limit", "asking")
    )
    return 0.0 - cost * (min(effort, turns) - bool(asking)), 1.0


def check_seats(settings: QaSocietySettings, seats: int) -> None:
    """Raise `BadInput` with the field that does not fit the number of seats."""
    helpers = seats - 1
    if not settings.asking:
        if helpers:
            raise BadInput(f"one seat answers alone, and this scenario has {seats}", "settings.asking")
        if len(settings.tools) > 1:
            raise BadInput("an agent has one tool or none", "settings.tools")
    elif not helpers:
        raise BadInput("a single seat has nobody to ask: add helpers, or set asking to false", "seats")
    elif len(settings.tools) != helpers:
        raise BadInput(
            f"{helpers} helpers need as many tools, in seat order, not {len(settings.tools)}", "settings.tools"
        )


def tool_of(settings: QaSocietySettings, seat: Seat) -> str | None:
    """Return the corpus that a seat can search; None for the asker and for an agent without a search."""
    if settings.asking:
        return None if seat == ASKER else settings.tools[seat - 1]
    return settings.tools[0] if settings.tools else None


def role_of(settings: QaSocietySettings, seat: Seat) -> str:
    """Return a seat's role, with its tool: reports by role compare how often each tool is used."""
    if settings.asking and seat == ASKER:
        return "asker"
    kind, tool = "helper" if settings.asking else "agent", tool_of(settings, seat)
    return f"{kind}_{tool}" if tool else kind
