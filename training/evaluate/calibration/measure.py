"""Puts questions to a single agent: as it plays, without a search, and after one.

All games of a set are in flight together, so that the engine batches them. The probabilities of the first action are
those before the reply of the game without a search, where every action is still offered. A failure outside the model
leaves its question out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from statistics import fmean
from typing import Any

from training.engines.base import Engine, Sampling
from training.evaluate.calibration.questions import EvaluationSet
from training.evaluate.calibration.report import BaseF1, Row
from training.players.base import Player, Reply
from training.players.limited import ActionScorer, LimitedPlayer, Logprobs, probabilities
from training.players.model import ModelPlayer
from training.records import Episode, Scenario, Seat
from training.rollout import Job, RolloutPolicy, Tool, rollout
from training.text.template import ChatTokenizer

PLAYED, UNSEARCHED, SEARCHED = "played", "unsearched", "searched"
WAYS = (PLAYED, UNSEARCHED, SEARCHED)
"""How a question is put: the agent plays; it must not search; it must search once, then answer or hedge."""
_REPLIES = ("answer", "hedge")
_ORDERS: Mapping[str, Sequence[Sequence[str]]] = {
    PLAYED: (),
    UNSEARCHED: (_REPLIES,),
    SEARCHED: (("search",), _REPLIES),
}


@dataclass(frozen=True, slots=True)
class Agent:
    """A model that is asked: its engine, tokenizer and sampling; `window` in tokens, None = no bound."""

    title: str
    engine: Engine
    tokenizer: ChatTokenizer
    sampling: Sampling
    window: int | None = None


@dataclass(frozen=True, slots=True)
class Conditions:
    """How questions are put: games of each question and way, games in flight, retries and seed, and the search.

    `limited`: an agent that plays draws its action among the legal ones. `on_reply` and `on_game` report progress.
    """

    draws: int
    limited: bool
    lanes: int
    rules: RolloutPolicy
    tool: Tool | None = None
    on_reply: Callable[[Reply], None] = lambda reply: None
    on_game: Callable[[], None] = lambda: None


@dataclass(slots=True)
class Answers:
    """The games of an agent by question and way, and the log-probabilities of its first actions by question."""

    games: dict[tuple[str, str], list[Episode]] = field(default_factory=dict)
    first: dict[str, Logprobs] = field(default_factory=dict)

    def mean(self, question: str, way: str, metric: str) -> float | None:
        """Return the mean over a question's games of a metric, of which no more than 1 counts in a game.

        None where a game failed or none was played.
        """
        games = self.games.get((question, way), ())
        if not games or any(game.error for game in games):
            return None
        return fmean(min(game.metrics[metric], 1.0) for game in games)

    def f1(self, question: str, way: str) -> float | None:
        """Return the mean F1 of a question, None where a game failed or none was played."""
        return self.mean(question, way, "f1")

    @property
    def failure(self) -> str:
        """The reason for which the first failed game failed; empty if none did."""
        errors = (game.error.message for games in self.games.values() for game in games if game.error)
        return next(errors, "")


async def ask(agent: Agent, evaluation_set: EvaluationSet, ways: Sequence[str], conditions: Conditions) -> Answers:
    """Return the games of an agent that is asked every question in each of these ways."""
    answers = Answers()
    jobs, places = _jobs(evaluation_set, ways, conditions.draws)
    factories = _factories(agent, ways, answers, limited=conditions.limited)
    # the first game is played alone: it leaves the rules, with which all prompts begin, in the engine's cache
    for part in (jobs[:1], jobs[1:]):
        playing = rollout(
            part,
            factories,
            lanes=conditions.lanes,
            rules=conditions.rules,
            tool=conditions.tool,
            on_reply=conditions.on_reply,
        )
        async with aclosing(playing):
            async for job, episode in playing:
                answers.games.setdefault(places[job.number], []).append(episode)
                conditions.on_game()
    return answers


def _jobs(
    evaluation_set: EvaluationSet, ways: Sequence[str], draws: int
) -> tuple[list[Job], dict[int, tuple[str, str]]]:
    """Return the games, and question and way by number. A number, which is part of a game's seed, depends on question,
    way and draw alone: agents that are asked in different ways draw alike.
    """
    jobs: list[Job] = []
    places: dict[int, tuple[str, str]] = {}
    for place, start in enumerate(evaluation_set.starts):
        for way in ways:
            for draw in range(draws):
                number = (place * len(WAYS) + WAYS.index(way)) * draws + draw
                jobs.append(Job(number, start, (way,)))
                places[number] = start.id, way
    return jobs, places


def _factories(
    agent: Agent, ways: Sequence[str], answers: Answers, *, limited: bool
) -> dict[str, Callable[[Scenario, Seat], Player]]:
    scorer = ActionScorer(agent.engine, agent.tokenizer)

    def player(scenario: Scenario, seat: Seat, *, way: str) -> Player:
        places: dict[str, Any] = {"seat": seat, "names": scenario.seats, "window": agent.window}
        if way == PLAYED and not limited:
            return ModelPlayer(agent.engine, agent.tokenizer, agent.sampling, **places)
        return LimitedPlayer(
            agent.engine,
            agent.tokenizer,
            agent.sampling,
            order=_ORDERS[way],
            scorer=scorer,
            on_first=partial(answers.first.__setitem__, scenario.id),
            **places,
        )

    return {way: partial(player, way=way) for way in ways}


def row_of(evaluation_set: EvaluationSet, question: str, answers: Answers, base: BaseF1) -> Row | None:
    """Return the row of a question, None where a game of it failed, or with a tool one of the base model.

    `answers` are of the ways played and unsearched.
    """
    f1, searched, hedged = (answers.mean(question, PLAYED, name) for name in ("f1", "searches", "hedged"))
    unsearched, logprobs = answers.f1(question, UNSEARCHED), answers.first.get(question)
    if f1 is None or searched is None or hedged is None or unsearched is None or logprobs is None:
        return None
    if evaluation_set.tool and None in base:
        return None
    chances = probabilities(logprobs)
    return Row(
        label=evaluation_set.label,
        tool=evaluation_set.tool,
        question=question,
        search=chances.get("search"),
        answer=chances["answer"],
        hedge=chances["hedge"],
        legal=min(1.0, math.fsum(map(math.exp, logprobs.values()))),
        f1=f1,
        searched=searched,
        hedged=hedged,
        text=_final(answers.games[question, PLAYED][0]),
        unsearched_f1=unsearched,
        base_searched_f1=base.searched if evaluation_set.tool else None,
        base_unsearched_f1=base.unsearched if evaluation_set.tool else None,
    )


def _final(game: Episode) -> str:
    """Return the final answer of a game, nothing where there is none."""
    last = game.moves[-1].move if game.moves else None
    return str(last.args.get("answer", "")) if last and last.origin == "seat" else ""
