"""Experiments to test with: arms of pairs and of one person against a scripted player, participants at any stage."""

from __future__ import annotations

from typing import Any

from training.games.base import FORFEIT
from webapp.accounts.models import User
from webapp.arena.play import services
from webapp.experiments import design, participation
from webapp.experiments.models import PERSON, Arm, Experiment, Participant, Question
from webapp.experiments.participation import Origin

PAIR = [PERSON, PERSON]
ALONE = [PERSON, "scripted:scripted"]
NOTHING = Origin()


def experiment(owner: User, **changes: Any) -> Experiment:
    """A draft without arms, whose tables begin as soon as they can."""
    texts = {"title": "Does framing matter?", "consent_text": "You will play a game.", "debriefing": "You met scripts."}
    numbers = {"per_arm": 4, "seed": 7, "shortest_wait_s": 0}
    return design.save(experiment=Experiment(**{**texts, **numbers, **changes}), owner=owner)


def arm(draft: Experiment, name: str, players: list[str] = ALONE, **changes: Any) -> Arm:
    """A negotiation over a sample scenario."""
    values = {"game": "negotiation", "scenario": "sample", "deadline_s": 90, "shown_as": "unknown"}
    return design.save_arm(arm=Arm(**{**values, "experiment": draft, "name": name, "players": players, **changes}))


def question(draft: Experiment, name: str, **changes: Any) -> Question:
    """A question after the game, from 1 to 5."""
    values = {"part": "after", "text": f"How much {name}?", "kind": "likert", "options": list("abcde")}
    return design.save_question(question=Question(**{**values, "experiment": draft, "name": name, **changes}))


def opened(owner: User, players: list[str] = ALONE, arms: int = 2, **changes: Any) -> Experiment:
    """An open experiment with so many arms alike."""
    made = experiment(owner, **changes)
    for number in range(arms):
        arm(made, f"arm {number + 1}", players)
    design.open_experiment(experiment=made)
    return Experiment.objects.get(pk=made.pk)


def come(to: Experiment, external_id: str = "", *, may_reuse: bool = True) -> Participant:
    """A new guest who has agreed."""
    return participation.begin(experiment=to, user=None, origin=Origin(external_id), may_reuse=may_reuse)


def seated(to: Experiment) -> Participant:
    """A new guest at a table, where the arm has one person."""
    return participation.heartbeat(participant=come(to), visible=True)


def end_match(participant: Participant) -> None:
    """The participant gives up, which ends a negotiation."""
    assert participant.group is not None
    match = participant.group.match
    seat = match.seats.get(user=participant.user)
    while (state := services.fold(match)).due() and seat.seat not in state.due():
        other = next(iter(state.due()))
        services.submit(match_id=match.pk, seat=other, step=match.step, move=state.game.default(other))
        match.refresh_from_db()
    services.submit(match_id=match.pk, seat=seat.seat, step=match.step, move=FORFEIT)


def completed(to: Experiment, **answers: Any) -> Participant:
    """A participant who has gone through every stage of an experiment with one person at each table."""
    participant = seated(to)
    end_match(participant)
    participant = participation.update_stage(participant=participant)
    if participant.stage == "after":
        participant = participation.answer(participant=participant, part="after", answers=answers)
    return participation.finish(participant=participant)
