"""Invitations: links by which one person each becomes an annotator of a queue, with or without that role.

Whoever accepts one may judge in this queue, and sees nothing else that annotators see. A token is shown once and stored
hashed. Each write is one transaction; `BadInput` says what is wrong and changes nothing.
"""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction
from django.db.models.functions import Now

from training.errors import BadInput
from webapp.accounts.models import User, digest, new_token
from webapp.core import quotas
from webapp.judgments.models import Invitation, Queue

DAYS = 14
"""How long an invitation can be accepted."""


@transaction.atomic
def invite(*, queue: Queue, by: User) -> str:
    """Return the token of a new invitation, which is shown once."""
    if queue.judge_id is not None or queue.rule:
        raise BadInput("no person judges this queue", "queue")
    if queue.state == Queue.State.CLOSED:
        raise BadInput("the queue is closed", "queue")
    open_ones = Invitation.objects.filter(created_by=by, accepted_by=None, expires_at__gt=Now())
    quotas.check(user=by, quota="open_invitations", used=open_ones)
    token = new_token()
    Invitation.objects.create(
        queue=queue, token_sha256=digest(token), created_by=by, expires_at=Now() + timedelta(days=DAYS)
    )
    return token


def find(token: str) -> Invitation | None:
    """The invitation that a token opens, accepted or not, or None."""
    rows = Invitation.objects.select_related("queue__owner", "queue__codebook_version__codebook")
    return rows.filter(token_sha256=digest(token)).first()


def refusal(invitation: Invitation, user: User) -> str:
    """Why this person cannot accept it now; empty if they can."""
    if user.is_guest:
        return "a guest cannot judge: make an account first"
    if invitation.accepted_by_id is not None:
        return "this invitation has been used: ask for another one"
    if not Invitation.objects.filter(pk=invitation.pk, expires_at__gt=Now()).exists():
        return "this invitation has expired: ask for another one"
    if invitation.queue.state == Queue.State.CLOSED:
        return "the queue is closed: it takes no more judgments"
    if Queue.objects.annotated_by(user).filter(pk=invitation.queue_id).exists():
        return "you judge in this queue already: the invitation is for somebody else"
    return ""


@transaction.atomic
def accept(*, token: str, user: User) -> Queue:
    """Make this person an annotator of the invitation's queue, once."""
    invitation = Invitation.objects.select_for_update(of=("self",)).filter(token_sha256=digest(token)).first()
    if invitation is None:
        raise BadInput("this invitation does not exist, or was revoked", "invitation")
    if why := refusal(invitation, user):
        raise BadInput(why, "invitation")
    invitation.accepted_by = user
    invitation.save(update_fields=["accepted_by"])
    invitation.queue.annotators.add(user)
    return invitation.queue


@transaction.atomic
def revoke(*, invitation: Invitation) -> None:
    """Revoke an invitation that nobody has accepted."""
    locked = Invitation.objects.select_for_update().filter(pk=invitation.pk).first()
    if locked is None:
        raise BadInput("it was revoked already", "invitation")
    if locked.accepted_by_id is not None:
        raise BadInput("somebody has accepted it: remove them from the annotators instead", "invitation")
    locked.delete()
