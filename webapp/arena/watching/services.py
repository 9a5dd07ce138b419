"""The chat of a match's watchers: write and delete lines, mute their authors. Nothing here touches a row of the game.

Each function is one transaction; it raises `BadInput` without changing anything. The caller has checked with
`webapp.arena.watching.access` that the user may read, or moderate, the lines. No lock of the match is taken: watchers
must not delay its moves.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from django.db import transaction

from training.errors import BadInput
from webapp.accounts.models import User
from webapp.arena import hints
from webapp.arena.models import Match
from webapp.arena.play import services
from webapp.arena.watching import access
from webapp.arena.watching.models import LONGEST, WatcherLine, WatcherMute
from webapp.core import quotas

SHOWN = 100
"""The newest lines that a page shows."""
BURST, WITHIN = 5, timedelta(seconds=10)
"""A person may write `BURST` lines within this time."""


def lines(match: Match) -> Sequence[WatcherLine]:
    """The newest lines beside a match, in order, with their authors."""
    newest = match.watcher_lines.select_related("author").order_by("-pk")[:SHOWN]
    return list(reversed(newest))


@transaction.atomic
def write(*, match: Match, user: User, text: str) -> WatcherLine:
    """Write a line beside a running match."""
    words = " ".join(text.split())
    if not words:
        raise BadInput("write something first", "text")
    if len(words) > LONGEST:
        raise BadInput(f"a line has at most {LONGEST} characters, not {len(words)}", "text")
    if not Match.objects.filter(pk=match.pk, state=Match.State.RUNNING).exists():
        raise BadInput("the game is over: nothing can be written any more")
    if access.is_muted(match, user):
        raise BadInput("a moderator has muted you in this chat")
    written = WatcherLine.objects.filter(author=user)
    quotas.check(user=user, quota="watcher_lines_per_hour", used=quotas.within_hour(written))
    now = services.database_now()
    if written.filter(created_at__gt=now - WITHIN).count() >= BURST:  # under the lock of the quota
        raise BadInput("you are writing too fast: wait a few seconds")
    line = WatcherLine.objects.create(match=match, author=user, text=words, step=match.step, created_at=now)
    hints.send_to_watchers(match.pk)
    return line


@transaction.atomic
def delete(*, match: Match, line_id: int, by: User) -> None:
    """Delete a line for all readers; doing it twice changes nothing."""
    if not match.watcher_lines.filter(pk=line_id).exists():
        raise BadInput("there is no such line")
    deleted = {"deleted_by": by, "deleted_at": services.database_now()}
    match.watcher_lines.filter(pk=line_id, deleted_at=None).update(**deleted)
    hints.send_to_watchers(match.pk)


@transaction.atomic
def mute(*, match: Match, line_id: int, by: User) -> None:
    """Mute the author of a line beside this match; their lines stay."""
    line = match.watcher_lines.select_related("author").filter(pk=line_id).first()
    if line is None:
        raise BadInput("there is no such line")
    if access.may_moderate(match, line.author):
        raise BadInput("the author is a moderator of this chat, too")
    WatcherMute.objects.get_or_create(
        match=match, user=line.author, defaults={"by": by, "created_at": services.database_now()}
    )
