"""Plays of a task side by side: what a seat did and what came of it, step by step, and how models did on the task."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Avg, Count, F, FloatField, Func, OuterRef, Q, Subquery, Value
from django.db.models.functions import Cast

from training.games import lookup
from training.games.actions import TAG
from training.records import Seat
from training.views import Line
from webapp.accounts.models import User
from webapp.arena import opponents
from webapp.arena.models import Advice, Match, MatchMove, MatchQuerySet, MatchSeat
from webapp.serving.models import Deployment

SEAT: Seat = 0
SEARCH = "search"
"""The action that counts as a search, in games that have it."""
_ACTION = re.compile(r"<\s*([A-Za-z_ ]+?)\s*>([^<>]+)<\s*/\s*\1\s*>")
"""A tag with what it holds."""
BOTS = (MatchSeat.Kind.MODEL, MatchSeat.Kind.SCRIPTED)
SHOWN = 20
_REWARD = Func(F("match__returns"), Value(str(SEAT)), function="jsonb_extract_path_text")
"""The seat's result; Django's own transform takes a key of digits for the place in a list."""


@dataclass(frozen=True)
class Step:
    """One move of the seat, the lines that people read of it, and what a coach had advised, if asked."""

    move: MatchMove
    lines: Sequence[Line]
    advice: Advice | None = None

    @property
    def deed(self) -> str:
        """What the seat did, without its name; from the move itself in matches that were stored without deeds."""
        if self.move.move["origin"] == "forfeit":
            return "gives up"
        deeds = [line.text for line in self.lines if line.kind == "deed"]
        named = " ".join(str(value) for value in self.move.move["args"].values())
        return ", ".join(deeds) or f"{self.move.move['action'].replace('_', ' ')} {named}".strip()

    @property
    def news(self) -> Sequence[str]:
        """What came of it."""
        return [line.text for line in self.lines if line.kind == "news"]

    @property
    def advised(self) -> str:
        """The advice without tags: `<click>P1</click>` becomes `click: P1`."""
        text = self.advice.text if self.advice else ""
        return TAG.sub("", _ACTION.sub(r"\1: \2", text)).strip()

    @property
    def refused(self) -> int:
        """How many replies were refused before."""
        return sum(bool(attempt["reply"]) for attempt in self.move.attempts)


@dataclass(frozen=True)
class Play:
    """A match with one seat, with what its player did."""

    match: Match
    seat: MatchSeat
    steps: Sequence[Step]

    @property
    def reward(self) -> float | None:
        """The result; None without one."""
        value: float | None = self.match.returns.get(str(SEAT))
        return value

    @property
    def share(self) -> float | None:
        """Where the result lies between the lowest and the highest of the game, from 0 to 1."""
        low, high = lookup(self.match.game).range_of(self.match.scenario["settings"])
        return None if self.reward is None else (self.reward - low) / (high - low)

    @property
    def searches(self) -> int | None:
        """The number of searches; None in a game without them."""
        if SEARCH not in lookup(self.match.game).actions:
            return None
        return sum(step.move.move["action"] == SEARCH for step in self.steps)


def read(match: Match) -> Play:
    """A match with one seat and its steps, from the stored moves and the seat's own log."""
    seat = match.seats.select_related("user", *MatchSeat.NAMES).get(seat=SEAT)
    moves = list(match.moves.filter(seat=SEAT).order_by("number"))
    rows = match.rows.filter(viewer=SEAT, number__gt=1).order_by("number")
    lines = [(row.step, line) for row in rows for line in row.lines]
    advice = {row.step: row for row in match.advice.filter(seat=SEAT).exclude(text="")}
    ends = [*(move.step for move in moves[1:]), math.inf]
    steps = [
        Step(move, [line for step, line in lines if move.step < step <= end], advice.get(move.step))
        for move, end in zip(moves, ends, strict=False)
    ]
    return Play(match, seat, steps)


def attempts(task: str, user: User) -> MatchQuerySet:
    """A person's own plays of a task, the first one first."""
    return Match.objects.filter(task=task, seats__user=user).exclude(state=Match.State.ABORTED).order_by("pk")


def of_bots(task: str, user: User) -> MatchQuerySet:
    """The plays of a task by models and scripted players that a user may read, newest first."""
    readable = Match.objects.visible_to(user).exclude(pk__in=Match.objects.unrevealed_to(user).values("pk"))
    plays = readable.filter(task=task, seats__kind__in=BOTS, seats__stand_in=False)
    return plays.exclude(state=Match.State.ABORTED).with_seats().order_by("-pk")


@dataclass(frozen=True)
class Mean:
    """The means over the finished plays of one player: reward and steps."""

    who: str
    plays: int
    reward: float
    steps: float


def means(task: str, user: User) -> list[Mean]:
    """How models and scripted players did on a task over all finished plays, best first.

    Only players whose models, strategist and speaker, are open to this user are named.
    """
    moves = MatchMove.objects.filter(match=OuterRef("match"), seat=SEAT).order_by().values("match")
    visible = Deployment.objects.visible_to(user)
    named = Q(deployment__isnull=True) | Q(deployment__in=visible)
    spoken = Q(speaker__isnull=True) | Q(speaker__in=visible)
    seats = MatchSeat.objects.filter(named, spoken, match__task=task, match__state=Match.State.FINISHED, kind__in=BOTS)
    rows = (
        seats.exclude(stand_in=True)
        .annotate(
            reward=Cast(_REWARD, FloatField()),
            steps=Subquery(moves.annotate(count=Count("pk")).values("count")),
        )
        .values("deployment", "speaker", "form", "scripted")
        .annotate(plays=Count("pk"), mean=Avg("reward"), mean_steps=Avg("steps"))
        .order_by(F("mean").desc(nulls_last=True), "mean_steps", "scripted", "deployment", "speaker")
    )
    used = {key for row in rows for key in (row["deployment"], row["speaker"]) if key is not None}
    models = Deployment.objects.named().in_bulk(used)
    return [
        Mean(_who(row, models), row["plays"], row["mean"], row["mean_steps"]) for row in rows if row["mean"] is not None
    ]


def _who(row: Mapping[str, Any], models: Mapping[int, Deployment]) -> str:
    if row["deployment"] is None:
        return opponents.title(row["scripted"])
    speaker = models[row["speaker"]] if row["speaker"] else ""
    return opponents.with_voice(str(models[row["deployment"]]), str(speaker), row["form"].get("source", ""))
