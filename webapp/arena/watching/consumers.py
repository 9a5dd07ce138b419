"""The spectators' socket: sends chat messages; receives only the number of the last message on the page.

The socket and its group are separate, so that chat messages can never reach a player's socket.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import ClassVar

from channels.db import database_sync_to_async

from webapp.accounts.models import User
from webapp.arena import access, hints
from webapp.arena.models import Match
from webapp.arena.sockets import POLICY_VIOLATION, MatchSocket
from webapp.arena.watching import fragments, services
from webapp.arena.watching.models import ChatMessage


def _readable(user: User, match_id: int) -> Match | None:
    match = Match.objects.filter(pk=match_id).first()
    return match if match is not None and access.may_read_chat(match, user) else None


Version = tuple[bool, bool, int]
"""What determines how a message is shown: deleted, reported by the reader, and the number of open reports."""
NEW: Version = (False, False, 0)


class WatchersConsumer(MatchSocket):
    """One browser tab of a spectator: its greeting is `{"last": n}`."""

    LARGEST: ClassVar[int] = 200

    match: Match
    shown: dict[int, Version] | None = None
    """The version of each message that the page shows, by the message's number; None before the greeting."""

    @property
    def group(self) -> str:
        """The group of the match's spectators, none of whom is a player."""
        return hints.watchers(self.match_id)

    @property
    def greeted(self) -> bool:
        """Whether the client has sent the number of its last message."""
        return self.shown is not None

    async def authorize(self) -> bool:
        """Whether the user is signed in and may read the messages."""
        user = await self.signed_in()
        return user is not None and await self.reauthorize(user)

    async def reauthorize(self, user: User) -> bool:
        """Whether the user may still read the messages."""
        match = await database_sync_to_async(_readable, thread_sensitive=False)(user, self.match_id)
        if match is None:
            return False
        self.user, self.match = user, match
        return True

    async def handle(self, text: str) -> None:
        """Handle the greeting; anything else closes the socket."""
        last = _last(text)
        if last is None or self.greeted:  # a page greets once
            await self.close(POLICY_VIOLATION)
            return
        messages = await self._messages()
        async with self.refreshing:
            self.shown = {message.pk: NEW for message in messages if message.pk <= last}
        await self.refresh()

    async def _messages(self) -> Sequence[ChatMessage]:
        return await database_sync_to_async(services.messages, thread_sensitive=False)(self.match)

    async def refresh(self, *, since: float = math.inf) -> None:
        """Send new messages, and those that have changed since they were sent."""
        async with self.refreshing:
            if self.shown is None or self.closed:
                return
            messages = await self._messages()
            versions = {message.pk: self._version(message) for message in messages}
            new = [message for message in messages if message.pk not in self.shown]
            changed = [each for each in messages if self.shown.get(each.pk, versions[each.pk]) != versions[each.pk]]
            render = database_sync_to_async(fragments.frame, thread_sensitive=False)
            html = await render(new, changed, self.match, self.user)
            self.shown = versions
            if html:
                await self.send_frame(html)

    def _version(self, message: ChatMessage) -> Version:
        reports = message.reports_open if access.may_moderate_chat(self.match, self.user) else 0
        return message.deleted_at is not None, message.reported_by(self.user), reports


def _last(text: str) -> int | None:
    """The number in a greeting; None for any other text."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    last = data.get("last") if isinstance(data, dict) else None
    return last if isinstance(last, int) and not isinstance(last, bool) and 0 <= last < 2**53 else None
