"""The chat of a match's spectators: messages, reports, moderation. No row of the game is written.

Each function is one transaction; it raises `BadInput` without changing anything. The caller has checked with
`webapp.arena.access` that the user may read, or moderate, the messages. The match is never locked:
spectators must not delay its moves.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from django.db import connection, transaction
from django.db.models import Min

from training.errors import BadInput
from webapp.accounts.models import User
from webapp.arena import access, hints
from webapp.arena.models import Match
from webapp.arena.play import services
from webapp.arena.watching.models import LONGEST, ChatMessage, ChatMute, ChatReport
from webapp.core import quotas

SHOWN = 100
"""The newest messages that a page shows."""
BURST, WITHIN = 5, timedelta(seconds=10)
"""A person may write at most `BURST` messages within this time."""


def messages(match: Match) -> Sequence[ChatMessage]:
    """The newest messages of a match's chat, oldest first, with authors and reports."""
    newest = match.chat_messages.select_related("author").prefetch_related("reports")
    return list(reversed(newest.order_by("-pk")[:SHOWN]))


def reported(moderator: User) -> list[ChatMessage]:
    """The messages with open reports that this moderator can handle, earliest report first."""
    rows = ChatMessage.objects.filter(reports__dismissed_at=None, reports__isnull=False, deleted_at=None)
    if not moderator.is_admin:
        rows = rows.filter(match__host=moderator)
    for played in ({"match__seats__user": moderator}, {"match__former_players__user": moderator}):
        rows = rows.exclude(**played)  # however many there are, they do not hide the others
    rows = rows.annotate(since=Min("reports__created_at")).order_by("since")
    listed = rows.select_related("author", "match").prefetch_related("reports")[:SHOWN]
    return [message for message in listed if access.may_read_chat(message.match, moderator)]


@transaction.atomic
def write(*, match: Match, user: User, text: str) -> ChatMessage:
    """Write a message in the chat of a running match."""
    words = " ".join(text.split())
    if not words:
        raise BadInput("write something first", "text")
    if len(words) > LONGEST:
        raise BadInput(f"a message has at most {LONGEST} characters, not {len(words)}", "text")
    if not Match.objects.filter(pk=match.pk, state=Match.State.RUNNING).exists():
        raise BadInput("the game is over: the chat is closed")
    if access.is_muted(match, user):
        raise BadInput("a moderator has muted you in this chat")
    written = ChatMessage.objects.filter(author=user)
    quotas.check(user=user, quota="chat_messages_per_hour", used=quotas.within_hour(written))
    now = services.database_now()
    if written.filter(created_at__gt=now - WITHIN).count() >= BURST:  # under the lock of the quota
        raise BadInput("you are writing too fast: wait a few seconds")
    _in_order(match)
    message = ChatMessage.objects.create(match=match, author=user, text=words, step=match.step, created_at=now)
    hints.send_to_watchers(match.pk)
    return message


def _in_order(match: Match) -> None:
    """Make other writers in a match wait until the transaction ends: messages become visible in the order of their
    numbers, so that a page's last number says which it has.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"chat of {match.pk}"])


@transaction.atomic
def delete(*, match: Match, message_id: int, by: User) -> None:
    """Delete a message for all readers; idempotent."""
    if not match.chat_messages.filter(pk=message_id).exists():
        raise BadInput("there is no such message")
    deleted = {"deleted_by": by, "deleted_at": services.database_now()}
    match.chat_messages.filter(pk=message_id, deleted_at=None).update(**deleted)
    hints.send_to_watchers(match.pk)


@transaction.atomic
def report(*, match: Match, message_id: int, by: User) -> None:
    """Report a message to the moderators; it is then hidden from its reporter. Idempotent."""
    message = match.chat_messages.filter(pk=message_id, deleted_at=None).first()
    if message is None:
        raise BadInput("there is no such message")
    if message.author_id == by.pk:
        raise BadInput("this message is your own")
    reports = ChatReport.objects.filter(reporter=by)
    quotas.check(user=by, quota="chat_reports_per_hour", used=quotas.within_hour(reports.exclude(message=message)))
    reports.get_or_create(message=message, reporter=by, defaults={"created_at": services.database_now()})
    hints.send_to_watchers(match.pk)


@transaction.atomic
def dismiss_reports(*, match: Match, message_id: int, by: User) -> None:
    """Keep a reported message; later reports of other readers are shown again.

    Its author, who may be a moderator, does not decide that: one report then waits for another moderator.
    """
    if match.chat_messages.filter(pk=message_id, author=by).exists():
        raise BadInput("this message is your own: another moderator decides")
    reports = ChatReport.objects.filter(message__match=match, message=message_id, dismissed_at=None)
    reports.update(dismissed_by=by, dismissed_at=services.database_now())
    hints.send_to_watchers(match.pk)


@transaction.atomic
def mute(*, match: Match, message_id: int, by: User) -> None:
    """Mute the author of a message in this chat; their messages stay."""
    message = match.chat_messages.select_related("author").filter(pk=message_id).first()
    if message is None:
        raise BadInput("there is no such message")
    if access.may_moderate_chat(match, message.author):
        raise BadInput("the author is a moderator of this chat, too")
    ChatMute.objects.get_or_create(
        match=match, user=message.author, defaults={"by": by, "created_at": services.database_now()}
    )
