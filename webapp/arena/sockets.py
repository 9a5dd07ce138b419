"""The base of the sockets of a match: sign-in, rate limit, hints, frames and closing.

The database is the truth; hints only say when to read it again. Close codes (RFC 6455 and its registry): after 1012
the client should reconnect, after 1008 not (no access, signed out, too many messages, not reading); 1009: too big.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
import time
from abc import ABC, abstractmethod
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
SERVICE_RESTART, POLICY_VIOLATION, MESSAGE_TOO_BIG = 1012, 1008, 1009


@dataclass
class Bucket:
    """A token bucket: `burst` messages at once, then `rate` per second."""

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
    """Checks before every move that the user of a socket is still signed in; blocking.

    The session and the user are reloaded only if one of their rows has changed.
    """

    STATEMENT = """
        SELECT md5(session_data || to_jsonb(person)::text) FROM django_session, accounts_user person
        WHERE session_key = %s AND expire_date > now() AND person.id = %s"""

    def __init__(self, session_key: str, user_id: int) -> None:
        self._key = session_key, user_id
        self._version: str | None = None
        self._user: User | None = None

    def user(self) -> User | None:
        """Return the current user; None after sign-out, a change of password or deactivation."""
        row = execute(self.STATEMENT, self._key).fetchone()
        if row is None:
            return None
        if row[0] != self._version:
            self._version, self._user = row[0], self._load(*self._key)
        return self._user

    def _load(self, session_key: str, user_id: int) -> User | None:
        session = SessionStore(session_key).load()
        user = User.objects.filter(pk=user_id, is_active=True).first()
        if user is None or str(session.get(SESSION_KEY)) != str(user_id):
            return None
        same = constant_time_compare(session.get(HASH_SESSION_KEY, ""), user.get_session_auth_hash())
        return user if same else None


class MatchSocket(AsyncWebsocketConsumer, ABC):
    """The socket of one browser tab at one match. The client first sends a greeting that says what its page shows.

    A subclass defines its group, authorizes users, handles messages and sends updates.
    """

    LARGEST: ClassVar[int] = LARGEST_MESSAGE
    REFRESH_EVERY: ClassVar[float] = 3.0
    GREETING_WITHIN: ClassVar[float] = 10.0
    SEND_WITHIN: ClassVar[float] = 10.0
    JOIN_WITHIN: ClassVar[float] = 0.5

    user: User
    sign_in: SignIn
    match_id: int
    closed = False
    joined = False
    ticker: asyncio.Task[None] | None = None

    @property
    @abstractmethod
    def group(self) -> str:
        """The channel-layer group with the hints for this socket."""

    @property
    @abstractmethod
    def greeted(self) -> bool:
        """Whether the client has sent its greeting."""

    @abstractmethod
    async def authorize(self) -> bool:
        """Return whether `self.user` may open the socket."""

    @abstractmethod
    async def reauthorize(self, user: User) -> bool:
        """Return whether this reloaded user may keep the socket open; called every few seconds."""

    @abstractmethod
    async def handle(self, text: str) -> None:
        """Handle a message of the client."""

    @abstractmethod
    async def refresh(self, *, since: float = math.inf) -> None:
        """Send any changes since the last frame; a state that was read at the monotonic time `since` is new enough."""

    async def connect(self) -> None:
        """Authorize the user before the socket opens."""
        self.user = self.scope["user"]
        self.sign_in = SignIn(self.scope["session"].session_key, self.user.pk)
        self.match_id = self.scope["url_route"]["kwargs"]["match_id"]
        self.bucket = Bucket()
        self.refreshing = asyncio.Lock()
        if not await self.authorize():
            await self.close()
            return
        await self.accept()
        await self._join()
        self.ticker = asyncio.create_task(self._tick())

    async def _join(self) -> None:
        """Subscribe to hints; while Redis does not respond, the socket only polls."""
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
            await self.close(MESSAGE_TOO_BIG)
            return
        if not self.bucket.take():
            await self.close(POLICY_VIOLATION)
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
            await self.close(POLICY_VIOLATION)
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
        """Every few seconds, check session and access, and send changes for which no hint arrived."""
        opened = time.monotonic()
        try:
            while not self.closed and await self._may_stay(opened):
                await self._join()
                await self.refresh(since=time.monotonic() - self.REFRESH_EVERY)
                # with jitter: after a restart all sockets connect in the same second
                await asyncio.sleep(self.REFRESH_EVERY * random.uniform(0.7, 1.3))
            await self.close(POLICY_VIOLATION)
        except DatabaseError:
            await self.close(SERVICE_RESTART)
        except Exception:  # the root of this task: the client must reconnect after a server error
            logger.exception("%s of match %s failed", type(self).__name__, self.match_id)
            await self.close(SERVICE_RESTART)

    async def signed_in(self) -> User | None:
        """Return the reloaded user of this socket; None after their session has ended."""
        return await database_sync_to_async(self.sign_in.user, thread_sensitive=False)()

    async def _may_stay(self, opened: float) -> bool:
        """Return whether the session is valid, the user still has access, and the greeting came in time."""
        if not self.greeted and time.monotonic() - opened >= self.GREETING_WITHIN:
            return False
        user = await self.signed_in()
        return user is not None and await self.reauthorize(user)
