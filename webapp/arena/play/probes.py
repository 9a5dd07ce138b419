"""Probes of models at the table: the game asks a seat about its beliefs after its move, on the context before it.

Question and answer enter neither the log nor later observations. People and scripted players are never probed. Beliefs
reveal that a player is a model, so they are shown only to users who may know the players.
"""

from __future__ import annotations

import re

from training.engines.base import Sampling
from training.records import Message, Observation, Probe
from training.text.parsing import split_private
from training.text.refusals import with_refusals
from webapp.arena.models import Match, SeatBelief
from webapp.arena.play.model_seats import Claim
from webapp.runs.episodes.beliefs import BeliefPoint

SAMPLING = Sampling(temperature=0.0, max_tokens=64)
SECONDS = 5.0
"""How long a worker waits for an answer."""


def probe_of(claim: Claim) -> Probe | None:
    """The game's probe of the seat at this step; None if there is none or the seat is not a model."""
    return None if claim.deployment is None else claim.game.probes().get(claim.seat)


def observation(claim: Claim, probe: Probe) -> Observation:
    """The probe's observation: the context before the move, then the question with its choices."""
    context = with_refusals(claim.observation, claim.past)
    text = f"{probe.question} Nobody reads this answer. Reply with one of these and nothing else: "
    question = Message(author=None, text=text + ", ".join(probe.choices), channel="private")
    return Observation(messages=(*context.messages, question))


def read(reply: str, probe: Probe) -> str | None:
    """The choice that equals the reply, else the only one that it mentions; None if ambiguous."""
    answer = split_private(reply)[0].strip().strip(".,!\"'*").casefold()
    for choice in probe.choices:
        if choice.casefold() == answer:
            return choice
    mentioned = [name for name in probe.choices if re.search(rf"(?<!\w){re.escape(name.casefold())}(?!\w)", answer)]
    return mentioned[0] if len(mentioned) == 1 else None


def keep(*, claim: Claim, probe: Probe, reply: str) -> None:
    """Store the choice in a reply, once per step and seat; a reply without a readable choice is dropped."""
    answer = read(reply, probe)
    if answer is not None:
        fields = {"question": probe.question, "choices": list(probe.choices), "truth": list(probe.truth)}
        place = {"match_id": claim.match_id, "step": claim.step, "seat": claim.seat}
        SeatBelief.objects.get_or_create(**place, defaults={**fields, "answer": answer})


def believed(match: Match) -> list[BeliefPoint]:
    """A match's stored beliefs: the named choice has probability 1, every other 0."""
    return [
        BeliefPoint(
            row.step, row.seat, row.question, {name: float(name == row.answer) for name in row.choices}, row.truth
        )
        for row in match.beliefs.order_by("step", "seat")
    ]
