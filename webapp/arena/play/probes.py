"""What models at the table are asked aside: the game's probes, put to a seat after it has moved, on what it saw before.

The question enters no log and nothing that the seat sees later, and its answer changes nothing. People and scripted
players are never asked. Who has beliefs is a model, so they are shown to those alone who may know that.
"""

from __future__ import annotations

import re

from training.engines.base import Sampling
from training.records import Message, Observation, Probe
from training.text.parsing import split_private
from training.text.refusals import with_refusals
from webapp.arena.models import Match, SeatBelief
from webapp.arena.play.model_seats import Claim
from webapp.runs.episodes.beliefs import Believed

SAMPLING = Sampling(temperature=0.0, max_tokens=64)
SECONDS = 5.0
"""How long a worker waits for such an answer: others may wait for the worker."""


def probe_of(held: Claim) -> Probe | None:
    """What the game asks the seat at this step; None if nothing, or if no model sits there."""
    return None if held.deployment is None else held.game.probes().get(held.seat)


def observation(held: Claim, probe: Probe) -> Observation:
    """What the model is sent: all that it saw before its move, then the question with its choices."""
    seen = with_refusals(held.seen, held.past)
    asked = f"{probe.question} Nobody reads this answer. Reply with one of these and nothing else: "
    question = Message(author=None, text=asked + ", ".join(probe.choices), channel="private")
    return Observation(messages=(*seen.messages, question))


def read(reply: str, probe: Probe) -> str | None:
    """The choice that a reply consists of, else the only one that it names; None if it cannot be told."""
    said = split_private(reply)[0].strip().strip(".,!\"'*").casefold()
    for choice in probe.choices:
        if choice.casefold() == said:
            return choice
    named = [one for one in probe.choices if re.search(rf"(?<!\w){re.escape(one.casefold())}(?!\w)", said)]
    return named[0] if len(named) == 1 else None


def keep(*, held: Claim, probe: Probe, reply: str) -> None:
    """Store what a reply says, once a step and seat; one from which no choice can be read is dropped."""
    answer = read(reply, probe)
    if answer is not None:
        given = {"question": probe.question, "choices": list(probe.choices), "truth": list(probe.truth)}
        place = {"match_id": held.match_id, "step": held.step, "seat": held.seat}
        SeatBelief.objects.get_or_create(**place, defaults={**given, "answer": answer})


def believed(match: Match) -> list[Believed]:
    """All such answers of a match: the choice that was named has probability 1, every other 0."""
    return [
        Believed(row.step, row.seat, row.question, {one: float(one == row.answer) for one in row.choices}, row.truth)
        for row in match.beliefs.order_by("step", "seat")
    ]
