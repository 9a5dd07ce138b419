"""What a researcher states about an experiment, and its states: draft, open, paused, closed.

Each function is one transaction; it raises `BadInput` without changing anything. The design can be changed in a draft
only: opening it fixes every text and states the hash of the pre-registration.
"""

from __future__ import annotations

import hashlib

from django.db import IntegrityError, transaction
from django.db.models import Max

from training.errors import BadInput
from webapp.accounts.models import User, new_token
from webapp.arena.play import services
from webapp.core import quotas
from webapp.experiments import states
from webapp.experiments.models import SHORTEST_WAIT_S, Arm, Experiment, Question
from webapp.experiments.states import Outcome, Stage

State = Experiment.State


def _draft(pk: int) -> Experiment:
    """The experiment under its lock, if it is a draft."""
    experiment = Experiment.objects.select_for_update().get(pk=pk)
    if not experiment.is_draft:
        raise BadInput("the experiment has been opened, which fixed its design: copy it to change something")
    return experiment


@transaction.atomic
def save(*, experiment: Experiment, owner: User) -> Experiment:
    """Store a new experiment of this owner, or the changed texts and numbers of a draft."""
    if experiment.pk is None:
        quotas.check(user=owner, quota="experiments", used=Experiment.objects.filter(owner=owner))
        experiment.owner = owner
    else:
        _draft(experiment.pk)
    experiment.preregistration = experiment.preregistration.replace("\r\n", "\n")  # one hash for every browser
    experiment.save()
    return experiment


@transaction.atomic
def save_arm(*, arm: Arm) -> Arm:
    """Store a new or changed arm of a draft."""
    _draft(arm.experiment_id)
    if arm.pk is None:
        arm.position = _next(arm.experiment.arms.aggregate(last=Max("position"))["last"])
    try:
        with transaction.atomic():
            arm.save()
    except IntegrityError as error:
        raise BadInput("another arm has this name", "name") from error
    return arm


@transaction.atomic
def save_question(*, question: Question) -> Question:
    """Store a new or changed question of a draft."""
    _draft(question.experiment_id)
    if question.pk is None:
        same = question.experiment.questions.filter(part=question.part)
        question.position = _next(same.aggregate(last=Max("position"))["last"])
    try:
        with transaction.atomic():
            question.save()
    except IntegrityError as error:
        raise BadInput("another question has this name", "name") from error
    return question


def _next(last: int | None) -> int:
    return 0 if last is None else last + 1


@transaction.atomic
def drop(*, part: Arm | Question) -> None:
    """Delete an arm or a question of a draft."""
    _draft(part.experiment_id)
    part.delete()


@transaction.atomic
def move_up(*, question: Question) -> None:
    """Ask a question of a draft before the one that precedes it."""
    experiment = _draft(question.experiment_id)
    rows = list(experiment.questions.filter(part=question.part))
    at = next(number for number, row in enumerate(rows) if row.pk == question.pk)
    if at:
        rows[at - 1], rows[at] = rows[at], rows[at - 1]
    for number, row in enumerate(rows):
        row.position = number
    Question.objects.bulk_update(rows, ["position"])


def missing(experiment: Experiment) -> list[str]:
    """What an experiment needs before it can be opened, as sentences; empty if nothing."""
    arms = list(experiment.arms.all())
    lacks = []
    if not arms:
        lacks.append("Add at least one arm.")
    if experiment.per_arm is None and experiment.closes_at is None:
        lacks.append("State a stopping rule: participants per arm, a closing date, or both.")
    if experiment.closes_at is not None and experiment.closes_at <= services.database_now():
        lacks.append("The closing date is in the past.")
    if experiment.shortest_wait_s >= experiment.wait_seconds:
        lacks.append("Make the shortest wait shorter than the longest wait, or nobody is seated before it ends.")
    lacks += [
        f"{arm.name} seats {arm.people} participants at a table: participants per arm must be a multiple of it."
        for arm in arms
        if experiment.per_arm is not None and experiment.per_arm % arm.people
    ]
    if not experiment.debriefing.strip() and any(arm.misleads for arm in arms):
        names = ", ".join(arm.name for arm in arms if arm.misleads)
        lacks.append(f"Write a debriefing: in {names}, participants are misinformed about other players.")
    return lacks


def warnings(experiment: Experiment) -> list[str]:
    """Threats to validity that do not prevent an experiment from being opened, as sentences; empty if none.

    The waiting room shows the same text in every arm, but the waiting time depends on who else must arrive.
    """
    cautions = []
    arms = list(experiment.arms.all())
    at_once = [arm.name for arm in arms if arm.begins_at_once]
    if at_once and experiment.shortest_wait_s < SHORTEST_WAIT_S:
        cautions.append(
            f"The shortest wait is {experiment.shortest_wait_s} s. In {', '.join(at_once)}, a game needs no second "
            f"participant; starting at once suggests a machine. Wait at least {SHORTEST_WAIT_S} s to hide this."
        )
    together = [arm.name for arm in arms if arm.people > 1 and arm.may_show_people]
    if at_once and together:
        cautions.append(
            f"Waiting times differ between the arms. In {', '.join(at_once)}, a game begins when the shortest wait of "
            f"{experiment.shortest_wait_s} s ends; in {', '.join(together)}, only when another participant has come. "
            "A longer wait may suggest that the partner is a person. Choose a shortest wait within which participants "
            "usually arrive, and compare the waiting times of the arms in the export."
        )
    if replaced := [arm.name for arm in arms if arm.fallback_shows]:
        cautions.append(
            f"In {', '.join(replaced)}, the fallback takes empty seats when the longest wait of "
            f"{experiment.wait_seconds} s ends. Such a wait may suggest that the partners are not people."
        )
    return cautions


@transaction.atomic
def open_experiment(*, experiment: Experiment) -> None:
    """Open a draft: from now on its link lets participants in, and its design does not change."""
    draft = _draft(experiment.pk)
    if lacks := missing(draft):
        raise BadInput(" ".join(lacks))
    draft.state, draft.opened_at = State.OPEN, services.database_now()
    text = draft.preregistration
    draft.preregistration_sha256 = hashlib.sha256(text.encode()).hexdigest() if text else ""
    draft.save(update_fields=["state", "opened_at", "preregistration_sha256"])


@transaction.atomic
def pause(*, experiment: Experiment) -> None:
    """Let nobody begin and form no groups; games that run go on, and waits do not end."""
    running = Experiment.objects.select_for_update().get(pk=experiment.pk)
    if running.state != State.OPEN:
        raise BadInput("only an open experiment can be paused")
    running.state = State.PAUSED
    running.save(update_fields=["state"])


@transaction.atomic
def resume(*, experiment: Experiment) -> None:
    """Go on after a pause; waits begin anew."""
    paused = Experiment.objects.select_for_update().get(pk=experiment.pk)
    if paused.state != State.PAUSED:
        raise BadInput("the experiment is not paused")
    paused.state = State.OPEN
    paused.save(update_fields=["state"])
    paused.participants.under_way().filter(stage=Stage.WAIT).update(waiting_since=services.database_now())


@transaction.atomic
def close(*, experiment: Experiment) -> None:
    """Let nobody begin any more. Those who wait get the code for waiting; games that run go on to their end."""
    running = Experiment.objects.select_for_update().get(pk=experiment.pk)
    if running.state not in {State.OPEN, State.PAUSED}:
        raise BadInput("only an open experiment can be closed")
    running.state, running.closed_at = State.CLOSED, services.database_now()
    running.save(update_fields=["state", "closed_at"])
    for participant in running.participants.under_way().filter(stage=Stage.WAIT).select_related("experiment", "group"):
        states.end(participant, Outcome.WAITED, running.code_waited)


def overdue(*, limit: int) -> list[int]:
    """Open experiments whose closing date has come."""
    rows = Experiment.objects.filter(state__in=[State.OPEN, State.PAUSED], closes_at__lte=services.database_now())
    return list(rows.values_list("pk", flat=True)[:limit])


def close_on_date(*, experiment_id: int) -> bool:
    """Close an experiment whose date has come; return whether it was closed."""
    try:
        close(experiment=Experiment.objects.get(pk=experiment_id))
    except BadInput:  # it was closed meanwhile
        return False
    return True


@transaction.atomic
def copy(*, experiment: Experiment, owner: User) -> Experiment:
    """A draft with the same design and no participants."""
    quotas.check(user=owner, quota="experiments", used=Experiment.objects.filter(owner=owner))
    parts: list[Arm | Question] = [*experiment.arms.all(), *experiment.questions.all()]
    duplicate = Experiment.objects.get(pk=experiment.pk)
    duplicate.pk, duplicate.token, duplicate.owner, duplicate.state = None, new_token(), owner, State.DRAFT
    duplicate.title = f"{experiment.title[:190]} (copy)"
    duplicate.preregistration_sha256, duplicate.opened_at, duplicate.closed_at = "", None, None
    duplicate.save()
    for part in parts:
        part.pk, part.experiment = None, duplicate
        if isinstance(part, Arm):
            part.problem, part.problem_since = "", None
        part.save()
    return duplicate


@transaction.atomic
def delete(*, experiment: Experiment) -> None:
    """Delete a draft."""
    _draft(experiment.pk).delete()
