"""Probes of models after a game: each model seat is asked what it believes at every point of the game with probes.

The context is what the seat had read until then. The game is over, so question and answer cannot reach it, and nobody
at the table can notice them. People and scripted players are never probed. Beliefs reveal that a player is a model, so
they are shown only to users who may know the players.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from training.engines.base import Sampling
from training.errors import BadInput, IllegalMove
from training.games import make
from training.records import Message, Move, Observation, Probe, Scenario, Seat, SeatMove
from training.seeding import derive
from training.text.parsing import split_private
from training.text.refusals import Refusal, with_refusals
from webapp.arena.models import Match, MatchMove, SeatBelief
from webapp.arena.play import model_seats, services
from webapp.runs.episodes.beliefs import BeliefPoint
from webapp.serving.models import Deployment

SAMPLING = Sampling(temperature=0.0, max_tokens=64)
SECONDS = 60.0
"""How long a worker waits for an answer."""


@dataclass(frozen=True)
class Question:
    """The probe of one model seat after `step` steps of a match, which had read `context` until then."""

    match_id: int
    step: int
    seat: Seat
    probe: Probe
    scenario: Scenario
    context: Observation
    deployment: Deployment

    @property
    def seed(self) -> int:
        """The seed of the answer."""
        return derive(self.scenario.seed, "probe", self.match_id, self.seat, self.step)

    @property
    def asked(self) -> Observation:
        """The context and the question, as in training."""
        question = Message(author=None, text=self.probe.question)
        return Observation(messages=(*self.context.messages, question))

    @property
    def named(self) -> Observation:
        """The context and the question with its choices, for a model that names one."""
        text = f"{self.probe.question} Nobody reads this answer. Reply with one of these and nothing else: "
        question = Message(author=None, text=text + ", ".join(self.probe.choices), channel="private")
        return Observation(messages=(*self.context.messages, question))


def model_seats_of(match: Match) -> dict[Seat, Deployment]:
    """The models at the seats of a match, without those that write strategies: no question is put to two voices."""
    seated = match.seats.named().filter(deployment__isnull=False, form={})
    return {sitting.seat: sitting.deployment for sitting in seated if sitting.deployment is not None}


def unanswered(match: Match) -> Iterator[Question]:
    """The questions to the models of a finished match that have no stored answer, in the order of the game.

    There are none where the game has no probes, and where its moves can no longer be replayed.
    """
    seated = model_seats_of(match)
    if not seated or match.state != Match.State.FINISHED:
        return
    answered = set(match.beliefs.values_list("step", "seat"))
    refused: dict[Seat, list[Refusal]] = {seat: [] for seat in seated}
    try:
        state = services.MatchState(make(services.scenario_of(match)))
        for step, moves in groupby(match.moves.order_by("number"), key=lambda move: move.step):
            for seat, probe in sorted(state.game.probes().items()):
                if seat in seated and (step, seat) not in answered:
                    context = with_refusals(state.game.observe(seat), refused[seat])
                    yield Question(match.pk, step, seat, probe, state.game.scenario, context, seated[seat])
            for move in moves:
                _advance(state, move, refused)
    except (BadInput, IllegalMove):  # played by rules of an earlier release
        return


def _advance(state: services.MatchState, move: MatchMove, refused: dict[Seat, list[Refusal]]) -> None:
    services.catch_up(state, [SeatMove(seat=move.seat, move=Move.from_dict(move.move))])
    if move.seat in refused:
        refused[move.seat] += model_seats.refusals(move.seat, move.attempts)


def shares(logprobs: Sequence[float], probe: Probe) -> dict[str, float]:
    """The probability of every choice, normalised over the choices."""
    highest = max(logprobs)
    weights = [math.exp(logprob - highest) for logprob in logprobs]
    return {choice: weight / sum(weights) for choice, weight in zip(probe.choices, weights, strict=True)}


def read(reply: str, probe: Probe) -> str | None:
    """The choice that equals the reply, else the only one that it mentions; None if ambiguous."""
    answer = split_private(reply)[0].strip().strip(".,!\"'*").casefold()
    for choice in probe.choices:
        if choice.casefold() == answer:
            return choice
    mentioned = [name for name in probe.choices if re.search(rf"(?<!\w){re.escape(name.casefold())}(?!\w)", answer)]
    return mentioned[0] if len(mentioned) == 1 else None


def keep(*, question: Question, reply: str | Mapping[str, float]) -> None:
    """Store the choice in a reply, or its probabilities, once per step and seat; without a readable choice, nothing."""
    probe = question.probe
    known = None if isinstance(reply, str) else dict(reply)
    answer = read(reply, probe) if isinstance(reply, str) else max(probe.choices, key=lambda choice: reply[choice])
    if answer is not None:
        fields = {"question": probe.question, "choices": list(probe.choices), "truth": list(probe.truth)}
        defaults = {**fields, "answer": answer, "probabilities": known}
        place = {"match_id": question.match_id, "step": question.step, "seat": question.seat}
        SeatBelief.objects.get_or_create(**place, defaults=defaults)


def believed(match: Match) -> list[BeliefPoint]:
    """A match's stored beliefs: where only a choice is known, it has probability 1 and every other 0."""
    return [
        BeliefPoint(row.step, row.seat, row.question, row.probabilities or _certain(row), row.truth)
        for row in match.beliefs.order_by("step", "seat")
    ]


def _certain(row: SeatBelief) -> dict[str, float]:
    return {name: float(name == row.answer) for name in row.choices}
