"""Transitions of participants, for use under the lock of their experiment: next stage, end, broken groups.

`locked` takes that lock, which comes before the locks of matches. The database's clock says when things happened.
"""

from __future__ import annotations

from datetime import datetime

from training.errors import BadInput
from webapp.arena.models import Match, MatchSeat
from webapp.arena.play import hosting, services
from webapp.experiments import allocation
from webapp.experiments.models import Experiment, Group, Participant

Stage, Outcome = Participant.Stage, Participant.Outcome


def locked(participant: Participant) -> Participant:
    """The participant under the lock of the experiment. For use in a transaction."""
    Experiment.objects.select_for_update().get(pk=participant.experiment_id)
    rows = Participant.objects.select_related("experiment", "arm", "group__match")
    return rows.get(pk=participant.pk)


def enter(participant: Participant, stage: Participant.Stage) -> None:
    """Go to a stage; its first time is kept."""
    now = services.database_now()
    participant.stage = stage
    participant.times.setdefault(str(stage), stamp(now))
    participant.waiting_since = now if stage == Stage.WAIT else None
    participant.save()


def stamp(moment: datetime) -> str:
    """A time in ISO 8601 with milliseconds."""
    return moment.isoformat(timespec="milliseconds")


def end(participant: Participant, outcome: Participant.Outcome, code: str = "") -> None:
    """End a participation. Unless it is complete, its slot is given away, and with it those of the whole group."""
    now = services.database_now()
    participant.outcome, participant.code = outcome, code
    participant.times["ended"] = stamp(now)
    participant.waiting_since = None
    if outcome == Outcome.LEFT:
        participant.left_at = now
    if outcome in {Outcome.COMPLETED, Outcome.WAITED, Outcome.ATTENTION}:
        participant.stage = Stage.DONE
    participant.save()
    if outcome != Outcome.COMPLETED:
        allocation.release(participant)
        if participant.group is not None:
            break_group(participant.group, f"a participant: {participant.get_outcome_display()}")
    close_if_complete(participant.experiment)


def break_group(group: Group, why: str) -> None:
    """Say that a group does not count: every slot of it is given away to participants of another group."""
    if not group.broken_why:
        group.broken_why = why
        group.save(update_fields=["broken_why"])
    for member in group.participants.all():
        allocation.release(member)


def match_seat(participant: Participant) -> MatchSeat | None:
    """The seat of a participant, or None."""
    if participant.group is None:
        return None
    return MatchSeat.objects.filter(match=participant.group.match_id, user=participant.user_id).first()


def hand_over(participant: Participant) -> None:
    """Let a scripted player go on for a participant whose game is running, who may not take the seat back."""
    seat = match_seat(participant)
    if seat is None or participant.group is None:
        return
    seat.barred = True
    seat.save(update_fields=["barred"])
    try:
        hosting.replace(match=participant.group.match, number=seat.seat)
    except BadInput:  # the game has ended meanwhile
        return


def follow_match(participant: Participant) -> None:
    """Send a participant whose match has ended to the questions after it."""
    if participant.stage != Stage.PLAY or participant.group is None:
        return
    match = Match.objects.get(pk=participant.group.match_id)
    if match.state == Match.State.ABORTED:
        break_group(participant.group, "its game had no result")
    if match.over:
        enter(participant, Stage.AFTER)


def close_if_complete(experiment: Experiment) -> None:
    """Close an experiment in which every slot of every arm has a complete participant."""
    if experiment.per_arm is None or experiment.state not in {Experiment.State.OPEN, Experiment.State.PAUSED}:
        return
    complete = experiment.slots.filter(participant__outcome=Outcome.COMPLETED).count()
    if complete >= experiment.per_arm * experiment.arms.count():
        experiment.state, experiment.closed_at = Experiment.State.CLOSED, services.database_now()
        experiment.save(update_fields=["state", "closed_at"])
