"""Who reads, writes and moderates what watchers write beside a match.

A player of the match never does: not from another tab, not as its host or as an administrator, not after they were sent
away, and not when the game is over. Guests see no match but their own. Matches of experiments and plays alone have no
watchers' messages.
"""

from __future__ import annotations

from webapp.accounts.models import User
from webapp.arena.models import Match


def may_read(match: Match, user: User) -> bool:
    """Whether this user watches the match, or its replay, and is none of its players."""
    if user.is_guest or match.shown_as or match.task or match.state == Match.State.OPEN:
        return False
    if match.seats.filter(user=user).exists() or match.former_players.filter(user=user).exists():
        return False
    if match.over and Match.objects.filter(pk=match.pk).unrevealed_to(user).exists():  # messages may say who plays
        return False
    return Match.objects.visible_to(user).filter(pk=match.pk).exists()


def is_muted(match: Match, user: User) -> bool:
    """Whether a moderator has muted this user beside the match."""
    return match.chat_mutes.filter(user=user).exists()


def may_moderate(match: Match, user: User) -> bool:
    """Whether this user, who may read the messages, may delete them and mute their authors: hosts, administrators."""
    return user.is_admin or match.host_id == user.pk
