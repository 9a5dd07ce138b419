"""What a participant does: begin, answer, send heartbeats, continue, come back, withdraw.

Each function is one transaction, `heartbeat` two. Raises `BadInput` without changing anything. A stage that is over is
never repeated: an answer to an earlier page changes nothing, so that a reload or a second press is harmless.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.utils.crypto import salted_hmac

from training.errors import BadInput
from webapp.accounts.models import User
from webapp.accounts.services import create_guest
from webapp.arena.play import services
from webapp.arena.setup import waiting_room
from webapp.core import quotas
from webapp.experiments import allocation, grouping, resume_tokens, seating, states
from webapp.experiments.leaving import ABSENT
from webapp.experiments.models import Experiment, Participant, Question
from webapp.experiments.states import Outcome, Stage

FULL = "there is no place left in this study"
LONGEST_BEFORE = timedelta(minutes=30)
"""Whoever answers the first questions for longer than this holds no place back from others."""
RETRY_WITHIN = timedelta(minutes=10)
"""How long a browser may agree again to the participation that it began, if the response was lost."""


@dataclass(frozen=True)
class Origin:
    """The ids that a recruitment platform put into the link."""

    external_id: str = ""
    study_id: str = ""
    session_id: str = ""


def refusal(experiment: Experiment, origin: Origin) -> str:
    """Why nobody can begin now, as a sentence for participants; empty if they can."""
    if experiment.state == Experiment.State.PAUSED:
        return "this study is paused: try again later"
    if experiment.state != Experiment.State.OPEN:
        return "this study is over"
    if experiment.closes_at is not None and experiment.closes_at <= services.database_now():
        return "this study is over"
    if experiment.requires_id and not origin.external_id:
        return "open the study from the platform that invited you: this link has no participant's id"
    if origin.external_id and experiment.participants.filter(id_hash=id_hash(experiment, origin)).exists():
        return "you have begun this study already: go on in the browser in which you began"
    free = allocation.free_places(experiment)
    if free is not None and free <= _on_their_way(experiment):
        return FULL
    return ""


def id_hash(experiment: Experiment, origin: Origin) -> str:
    """A keyed hash of the platform's id, which stays when the id is erased; empty without an id."""
    if not origin.external_id:
        return ""
    return salted_hmac(f"experiment {experiment.pk}", origin.external_id, algorithm="sha256").hexdigest()


def is_of_another(participant: Participant, origin: Origin) -> bool:
    """Whether a link with these ids was sent to somebody else; a link without an id is anybody's."""
    return bool(origin.external_id) and participant.id_hash != id_hash(participant.experiment, origin)


def _on_their_way(experiment: Experiment) -> int:
    """Participants who answer the questions before the game now, and will need a place."""
    now = services.database_now()
    seen, begun = now - ABSENT[Stage.BEFORE], now - LONGEST_BEFORE
    return (
        experiment.participants.under_way().filter(stage=Stage.BEFORE, seen_at__gte=seen, created_at__gte=begun).count()
    )


@transaction.atomic
def begin(
    *, experiment: Experiment, user: User | None, origin: Origin, may_reuse: bool, resume_token: str = ""
) -> Participant:
    """Take part after consent, as `user` or as a new guest.

    A guest whose browser has this resume token, and was shown no page since it agreed, comes back to what it began.
    """
    experiment = Experiment.objects.select_for_update().get(pk=experiment.pk)
    if user is None and (begun := _begun_with(experiment, origin, resume_token)):
        return begun
    if why := refusal(experiment, origin):
        raise BadInput(why)
    quotas.check(
        user=experiment.owner,
        quota="participants_per_hour",
        used=quotas.within_hour(Participant.objects.filter(experiment__owner=experiment.owner)),
    )
    person = user or create_guest(shown_name="Participant")
    now = services.database_now()
    try:
        with transaction.atomic():
            participant = Participant.objects.create(
                experiment=experiment,
                user=person,
                external_id=origin.external_id[:200],
                id_hash=id_hash(experiment, origin),
                study_id=origin.study_id[:200],
                session_id=origin.session_id[:200],
                resume_token_hash="" if user else resume_tokens.hash_of(experiment, resume_token),
                may_reuse=may_reuse,
                times={"consent": states.stamp(now)},
                seen_at=now,
                visible=True,
            )
    except IntegrityError as error:
        raise BadInput("you have begun this study already") from error
    states.enter(participant, Stage.BEFORE)
    if not experiment.questions.filter(part=Question.Part.BEFORE).exists():
        _to_waiting_room(participant)
    return participant


def _begun_with(experiment: Experiment, origin: Origin, resume_token: str) -> Participant | None:
    """The guest's participation that began recently with this resume token and id, if it has no answers yet."""
    if not resume_token:
        return None
    fresh = experiment.participants.filter(created_at__gte=services.database_now() - RETRY_WITHIN, answers={})
    same = {
        "resume_token_hash": resume_tokens.hash_of(experiment, resume_token),
        "id_hash": id_hash(experiment, origin),
    }
    return fresh.filter(**same).select_related("user").first()


def note_shown(*, participant: Participant) -> None:
    """Note that a page has reached the participant's browser: its resume token opens nothing any more.

    It is a transaction of its own, for the reason that `heartbeat` has.
    """
    if participant.resume_token_hash:
        Participant.objects.filter(pk=participant.pk).update(resume_token_hash="")
        participant.resume_token_hash = ""


@transaction.atomic
def answer(*, participant: Participant, part: str, answers: Mapping[str, Any]) -> Participant:
    """Store the answers of one questionnaire, check attention and go on."""
    participant = states.locked(participant)
    if participant.stage != part or participant.outcome:
        return participant
    questions = participant.experiment.questions.filter(part=part)
    wrong = [question for question in questions if not question.is_right(answers.get(question.name))]
    participant.answers |= {question.name: answers.get(question.name) for question in questions}
    participant.failed = [*participant.failed, *(question.name for question in wrong)]
    participant.times[f"answered_{part}"] = states.stamp(services.database_now())
    if any(question.on_wrong == Question.OnWrong.END for question in wrong):
        states.end(participant, Outcome.ATTENTION, participant.experiment.code_attention)
    elif part == Question.Part.BEFORE:
        _to_waiting_room(participant)
    else:
        states.enter(participant, Stage.DEBRIEFING)
    return participant


def _to_waiting_room(participant: Participant) -> None:
    """Assign an arm, as late as possible, and wait there; without a free place the participation ends."""
    arm = allocation.assign(participant)
    if arm is None:
        states.end(participant, Outcome.WAITED, participant.experiment.code_waited)
        return
    participant.arm = arm
    states.enter(participant, Stage.WAIT)
    seating.request_models(arm)


def heartbeat(*, participant: Participant, visible: bool) -> Participant:
    """Note that a participant's page is open and whether it is in the foreground; form the groups that are possible.

    Both are transactions of their own: a row that is written before the experiment's lock is taken could wait for
    somebody who has that lock and waits for the row.
    """
    rows = Participant.objects.filter(pk=participant.pk)
    rows.update(seen_at=services.database_now(), visible=visible)
    participant.refresh_from_db()
    if participant.outcome == Outcome.LEFT:
        participant = come_back(participant=participant)
    arm = participant.arm
    if visible and participant.stage == Stage.WAIT and arm is not None and grouping.present(arm).count() >= arm.people:
        grouping.form_groups(arm=arm)
        participant.refresh_from_db()
    return participant


@transaction.atomic
def update_stage(*, participant: Participant) -> Participant:
    """Bring a participant to the stage that their page must show: after a game's end, or back after leaving."""
    if participant.outcome == Outcome.LEFT:
        participant = come_back(participant=participant)
    if participant.outcome or participant.stage != Stage.PLAY:
        return participant
    participant = states.locked(participant)
    states.follow_match(participant)
    if participant.stage == Stage.AFTER and not participant.experiment.questions.filter(part=Stage.AFTER).exists():
        states.enter(participant, Stage.DEBRIEFING)
    return participant


@transaction.atomic
def come_back(*, participant: Participant) -> Participant:
    """Let somebody who had left go on where they were. Who waited needs a free place of their arm again."""
    participant = states.locked(participant)
    if participant.outcome != Outcome.LEFT:
        return participant
    participant.outcome, participant.code = "", ""
    participant.returns += 1
    participant.times.pop("ended", None)
    now = services.database_now()
    participant.seen_at = now
    if participant.stage == Stage.WAIT:
        participant.waiting_since = now
        if allocation.reassign(participant) is None:
            states.end(participant, Outcome.WAITED, participant.experiment.code_waited)
            return participant
    participant.save()
    return participant


@transaction.atomic
def finish(*, participant: Participant) -> Participant:
    """End a participation after the debriefing, with the code for complete ones."""
    participant = states.locked(participant)
    if participant.stage == Stage.DEBRIEFING and not participant.outcome:
        participant.times[str(Stage.DONE)] = states.stamp(services.database_now())
        states.end(participant, Outcome.COMPLETED, participant.experiment.code_completed)
    return participant


@transaction.atomic
def withdraw(*, participant: Participant) -> Participant:
    """Withdraw consent, at any time: answers and ids are erased, the match leaves every export, the code stays."""
    participant = states.locked(participant)
    if participant.outcome == Outcome.WITHDRAWN:
        return participant
    code, unfinished = participant.code, not participant.outcome
    participant.answers, participant.failed, participant.may_reuse = {}, [], False
    participant.external_id = participant.study_id = participant.session_id = ""
    seat = states.match_seat(participant)
    if seat is not None and participant.group is not None:
        waiting_room.answer_consent(match=participant.group.match, user=participant.user, agreed=False)
        if unfinished and participant.stage == Stage.PLAY:
            states.hand_over(participant)
    states.end(participant, Outcome.WITHDRAWN, code)
    return participant
