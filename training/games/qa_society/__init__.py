"""A question, an asker without tools, helpers with one search each, and one reward for all: collaborative self-play."""

from __future__ import annotations

from training.games.base import GameSpec, sample_files
from training.games.qa_society.game import QaSociety
from training.games.qa_society.settings import MOST_COST, MOST_EFFORT, MOST_SEATS, QaSocietySettings, bounds, tool_of
from training.records import Scenario

__all__ = ["SPEC", "QaSociety", "QaSocietySettings", "alone"]

LABEL = 80
"""Longest label of a question, in characters."""


def label(scenario: Scenario) -> str:
    """Return the beginning of the question."""
    question = " ".join(QaSocietySettings.model_validate(scenario.settings).question.split())
    return question if len(question) <= LABEL else f"{question[:LABEL].rsplit(' ', 1)[0]} …"


def private(scenario: Scenario) -> tuple[str, ...]:
    """Return what each seat can search."""
    settings = QaSocietySettings.model_validate(scenario.settings)
    tools = (tool_of(settings, seat) for seat in range(len(scenario.seats)))
    return tuple(f"searches {tool}" if tool else "" for tool in tools)


def alone(scenario: Scenario, tool: str = "") -> Scenario:
    """Return the question of a scenario for a single agent, with one tool or without any.

    This is how a policy that learned in a society is measured by itself (the paper's section 5): asking is off, and
    the agent chooses between searching, answering and hedging.
    """
    settings = {**scenario.settings, "asking": False, "tools": [tool] if tool else []}
    name = f"{scenario.id[:150]}-{tool or 'alone'}"
    return scenario.model_copy(update={"id": name, "settings": settings, "seats": scenario.seats[:1]})


def agents(scenario: Scenario) -> tuple[Scenario, ...]:
    """Return the question of a scenario for a single agent with each of its tools; without tools, without a search."""
    tools = dict.fromkeys(QaSocietySettings.model_validate(scenario.settings).tools)
    return tuple(alone(scenario, tool) for tool in tools or ("",))


SPEC = GameSpec(
    name="qa_society",
    focus="talk",
    title="Question answering in a society",
    summary="An asker without tools asks helpers who can search; all are paid for a right answer and few searches.",
    make=QaSociety,
    settings=QaSocietySettings,
    players=(1, MOST_SEATS),
    low=-MOST_COST * MOST_EFFORT,
    high=1.0,
    bounds=bounds,
    cooperative=True,
    symmetric=False,
    label=label,
    private=private,
    actions=("ask", "search", "answer", "hedge"),
    scenario_only=("question", "answers", "tools", "asking", "metadata"),
    script="training.games.qa_society.script:QaScript",
    alone=agents,
    corpora="tools",
    samples=sample_files("qa_society"),
)
