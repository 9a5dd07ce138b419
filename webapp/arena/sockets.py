"""What the sockets of a match share: sign-in, rate limit, hints, frames and closing.

The database is the truth; hints only say when to read it again. Close codes: 1012 come back, 1008 stay away (not yours,
signed out, too fast, not reading), 1009 too large.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from django.db import DatabaseError
from django.utils.crypto import constant_time_compare
from redis.exceptions import RedisError

from webapp.accounts.models import User
from webapp.core.circuit import CIRCUIT
from webapp.core.sockets import LARGEST_MESSAGE
from webapp.core.statements import execute

logger = logging.getLogger(__name__)
COME_BACK, STAY_AWAY, TOO_LARGE = 1012, 1008, 1009


@dataclass
class Bucket:
    """A rate limit: `burst` messages at once, then `rate` per second."""

    rate: float = 4.0
    burst: float = 20.0
    tokens: float = 20.0
    at: float = field(default_factory=time.monotonic)

    def take(self) -> bool:
        """Whether one more message is within the limit."""
        now = time.monotonic()
        self.tokens = min(self.burst, self.tokens + (now - self.at) * self.rate)
        self.at = now
        self.tokens -= 1
        return self.tokens >= 0


class SignIn:
    """Whether the user of a socket is still signed in, checked before every move; blocking.

    The session and the user are loaded again only when a row of theirs has changed.
    """

    STATEMENT = """
        SELECT md5(session_data || to_jsonb(person)::text) FROM django_session, accounts_user person
        WHERE session_key = %s AND expire_date > now() AND person.id = %s"""

    def __init__(self, session_key: str, user_id: int) -> None:
        self._place = session_key, user_id
        self._version: str | None = None
        self._user: User | None = None

    def user(self) -> User | None:
        """The user as they are now; None once they have signed out, changed their password or been deactivated."""
        row = execute(self.STATEMENT, self._place).fetchone()
        if row is None:
            return None
        if row[0] != self._version:
            self._version, self._user = row[0], self._load(*self._place)
        return self._user

    def _load(self, session_key: str, user_id: int) -> User | None:
        session = SessionStore(session_key).load()
        user = User.objects.filter(pk=user_id, is_active=True).first()
        if user is None or str(session.get(SESSION_KEY)) != str(user_id):
            return None
        same = constant_time_compare(session.get(HASH_SESSION_KEY, ""), user.get_session_auth_hash())
        return user if same else None


class MatchSocket(AsyncWebsocketConsumer):
    """One browser tab at one match. Once it is open, the client sends its greeting: what its page already shows.

    A subclass names its group, admits users, handles messages and sends what is new.
    """

    LARGEST: ClassVar[int] = LARGEST_MESSAGE
    REFRESH_EVERY: ClassVar[float] = 3.0
    HELLO_WITHIN: ClassVar[float] = 10.0
    SEND_WITHIN: ClassVar[float] = 10.0
    JOIN_WITHIN: ClassVar[float] = 0.5

    user: User
    sign_in: SignIn
    match_id: int
    closed = False
    joined = False
    ticker: asyncio.Task[None] | None = None

    @property
    def group(self) -> str:
        """The channel-layer group with the hints for this socket."""
        raise NotImplementedError

    @property
    def greeted(self) -> bool:
        """Whether the client has sent its greeting."""
        raise NotImplementedError

    async def admit(self) -> bool:
        """Whether `self.user` may open the socket."""
        raise NotImplementedError

    async def readmit(self, user: User) -> bool:
        """Whether this user, as they are now, may keep the socket; checked every few seconds."""
        raise NotImplementedError

    async def handle(self, text: str) -> None:
        """Handle a message of the client."""
        raise NotImplementedError

    async def refresh(self, *, within: float = 0.0) -> None:
        """Send what is new since the last frame, if anything, as it was at most `within` seconds ago."""
        raise NotImplementedError

    async def connect(self) -> None:
        """Refuse users without access, before the socket opens."""
        self.user = self.scope["user"]
        self.sign_in = SignIn(self.scope["session"].session_key, self.user.pk)
        self.match_id = self.scope["url_route"]["kwargs"]["match_id"]
        self.bucket = Bucket()
        self.refreshing = asyncio.Lock()
        if not await self.admit():
            await self.close()
            return
        await self.accept()
        await self._join()
        self.ticker = asyncio.create_task(self._tick())

    async def _join(self) -> None:
        """Subscribe to hints; while Redis does not answer the socket only polls."""
        if self.joined or not CIRCUIT.closed:
            return
        try:
            async with asyncio.timeout(self.JOIN_WITHIN):
                await self.channel_layer.group_add(self.group, self.channel_name)
            self.joined = True
        except (RedisError, OSError) as error:
            CIRCUIT.failed(error)

    async def disconnect(self, code: int) -> None:
        """Stop polling and unsubscribe."""
        self.closed = True
        if self.ticker is not None:
            self.ticker.cancel()
        with suppress(RedisError, OSError):  # the subscription then ends with the connection to Redis
            async with asyncio.timeout(self.JOIN_WITHIN):
                await self.channel_layer.group_discard(self.group, self.channel_name)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Handle a message within the limits; those that arrive after the socket was closed are ignored."""
        if self.closed:
            return
        if text_data is None or len(text_data.encode()) > self.LARGEST:
            await self.close(TOO_LARGE)
            return
        if not self.bucket.take():
            await self.close(STAY_AWAY)
            return
        await self.handle(text_data)

    async def changed(self, event: Mapping[str, Any]) -> None:
        """Handle a hint."""
        await self.refresh()

    async def send_frame(self, html: str) -> None:
        """Send a frame; close the socket if the client does not read."""
        if self.closed:
            return
        try:
            async with asyncio.timeout(self.SEND_WITHIN):
                await self.send(text_data=html)
        except TimeoutError:
            await self.close(STAY_AWAY)
        except OSError:  # what servers raise when the client has left
            self.closed = True

    async def close(self, code: int | bool | None = None, reason: str | None = None) -> None:
        """Close the socket once; nothing is sent afterwards."""
        if self.closed:
            return
        self.closed = True
        with suppress(OSError):
            await super().close(code, reason)

    async def _tick(self) -> None:
        """Every few seconds, check the session and the access, and send what no hint announced."""
        opened = time.monotonic()
        try:
            while not self.closed and await self._still_welcome(opened):
                await self._join()
                await self.refresh(within=self.REFRESH_EVERY)
                # with jitter: after a restart all sockets connect in the same second
                await asyncio.sleep(self.REFRESH_EVERY * random.uniform(0.7, 1.3))
            await self.close(STAY_AWAY)
        except DatabaseError:
            await self.close(COME_BACK)
        except Exception:  # the root of this task: the client must reconnect after a server error
            logger.exception("%s of match %s failed", type(self).__name__, self.match_id)
            await self.close(COME_BACK)

    async def signed_in(self) -> User | None:
        """The reloaded user of this socket; None once their session has ended."""
        return await database_sync_to_async(self.sign_in.user, thread_sensitive=False)()

    async def _still_welcome(self, opened: float) -> bool:
        """Whether the session is valid, the user may keep the socket, and the greeting came in time."""
        if not self.greeted and time.monotonic() - opened >= self.HELLO_WITHIN:
            return False
        user = await self.signed_in()
        return user is not None and await self.readmit(user)
