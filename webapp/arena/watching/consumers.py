"""The watchers' socket: lines out, nothing in but the number of the last line that the page has.

The socket and its group are separate, so that nothing that watchers write comes near a player's socket. The database is
the truth; hints only say when to look. Close codes are those of the table's socket.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, ClassVar

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.db import DatabaseError
from redis.exceptions import RedisError

from webapp.accounts.models import User
from webapp.arena import hints
from webapp.arena.live.consumers import COME_BACK, STAY_AWAY, TOO_LARGE, SignIn
from webapp.arena.models import Match
from webapp.arena.watching import access, fragments, services
from webapp.core.circuit import CIRCUIT

logger = logging.getLogger(__name__)


def _readable(user: User, match_id: int) -> Match | None:
    match = Match.objects.filter(pk=match_id).first()
    return match if match is not None and access.may_read(match, user) else None


class WatchersConsumer(AsyncWebsocketConsumer):
    """One browser tab of somebody who watches."""

    LARGEST: ClassVar[int] = 200
    LOOK_EVERY: ClassVar[float] = 3.0
    SEND_WITHIN: ClassVar[float] = 10.0
    JOIN_WITHIN: ClassVar[float] = 0.5

    gone = False
    joined = False
    ticker: asyncio.Task[None] | None = None
    shown: dict[int, bool] | None = None
    """Whether the page shows a line as deleted, by the line's number; None before the greeting."""

    async def connect(self) -> None:
        """Refuse users who may not read the lines, before the socket opens."""
        self.user: User = self.scope["user"]
        self.sign_in = SignIn(self.scope["session"].session_key, self.user.pk)
        self.match_id: int = self.scope["url_route"]["kwargs"]["match_id"]
        self.looking = asyncio.Lock()
        if not await self._still_welcome():
            await self.close()
            return
        await self.accept()
        self.ticker = asyncio.create_task(self._tick())

    async def disconnect(self, code: int) -> None:
        """Stop looking, and unsubscribe."""
        self.gone = True
        if self.ticker is not None:
            self.ticker.cancel()
        if self.joined:
            with suppress(RedisError, OSError):  # the subscription then ends with the connection to Redis
                async with asyncio.timeout(self.JOIN_WITHIN):
                    await self.channel_layer.group_discard(hints.watchers(self.match_id), self.channel_name)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Handle the greeting `{"last": n}`; anything else closes the socket."""
        if self.gone:
            return
        if text_data is None or len(text_data.encode()) > self.LARGEST:
            await self.close(TOO_LARGE)
            return
        last = _last(text_data)
        if last is None or self.shown is not None:  # a page greets once
            await self.close(STAY_AWAY)
            return
        lines = await database_sync_to_async(services.lines, thread_sensitive=False)(self.match)
        async with self.looking:
            self.shown = {line.pk: False for line in lines if line.pk <= last}
        await self._look()

    async def look(self, event: Mapping[str, Any]) -> None:
        """Handle a hint."""
        await self._look()

    async def _look(self) -> None:
        """Send the lines that are new, and those that were deleted since they were sent."""
        async with self.looking:
            if self.shown is None or self.gone:
                return
            lines = await database_sync_to_async(services.lines, thread_sensitive=False)(self.match)
            new = [line for line in lines if line.pk not in self.shown]
            deleted = [line for line in lines if line.deleted_at is not None and self.shown.get(line.pk) is False]
            moderates = access.may_moderate(self.match, self.user)
            render = database_sync_to_async(fragments.frame, thread_sensitive=False)
            html = await render(new, deleted, self.match, moderates=moderates)
            self.shown = {line.pk: line.deleted_at is not None for line in lines}
            if html:
                await self._send(html)

    async def _send(self, html: str) -> None:
        """Send a frame; close the socket if the client does not read."""
        try:
            async with asyncio.timeout(self.SEND_WITHIN):
                await self.send(text_data=html)
        except TimeoutError:
            await self.close(STAY_AWAY)
        except OSError:  # what servers raise when the client is gone
            self.gone = True

    async def close(self, code: int | bool | None = None, reason: str | None = None) -> None:
        """Close the socket once; nothing is sent afterwards."""
        if self.gone:
            return
        self.gone = True
        with suppress(OSError):
            await super().close(code, reason)

    async def _tick(self) -> None:
        """Check session and access every few seconds, and look for lines whose hint was lost."""
        try:
            while not self.gone and await self._still_welcome():
                await self._join()
                await self._look()
                await asyncio.sleep(self.LOOK_EVERY * random.uniform(0.7, 1.3))
            await self.close(STAY_AWAY)
        except DatabaseError:
            await self.close(COME_BACK)
        except Exception:  # the root of this task: the client must reconnect after a server error
            logger.exception("the watchers' socket of match %s failed", self.match_id)
            await self.close(COME_BACK)

    async def _join(self) -> None:
        """Subscribe to hints; while Redis does not answer the socket only polls."""
        if self.joined or not CIRCUIT.closed:
            return
        try:
            async with asyncio.timeout(self.JOIN_WITHIN):
                await self.channel_layer.group_add(hints.watchers(self.match_id), self.channel_name)
            self.joined = True
        except (RedisError, OSError) as error:
            CIRCUIT.failed(error)

    async def _still_welcome(self) -> bool:
        """Whether the session is valid and its user, reloaded from the database, may still read the lines."""
        user = await database_sync_to_async(self.sign_in.user, thread_sensitive=False)()
        if user is None:
            return False
        match = await database_sync_to_async(_readable, thread_sensitive=False)(user, self.match_id)
        if match is None:
            return False
        self.user, self.match = user, match
        return True


def _last(text: str) -> int | None:
    """The number in a greeting; None if it is none."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    last = data.get("last") if isinstance(data, dict) else None
    return last if isinstance(last, int) and not isinstance(last, bool) and 0 <= last < 2**53 else None
