"""The table's socket: HTML fragments out, moves in. The database is the truth; hints only say when to look.

The client first sends the number of its last row and the versions of its parts; the server then sends what is newer.
Close codes: 1012 come back, 1008 stay away (not yours, signed out, too fast, not reading), 1009 too large.
"""

from __future__ import annotations

import asyncio
import json
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
from django.db import DatabaseError, connection
from django.utils.crypto import constant_time_compare
from redis.exceptions import RedisError

from training.errors import BadInput, IllegalMove
from training.records import Viewer
from webapp.accounts.models import User
from webapp.arena import access, hints
from webapp.arena.live import fragments
from webapp.arena.live.feed import AccessLost, ClientVersions, MatchFeed, Snapshot
from webapp.arena.models import Match
from webapp.arena.play import coach, hosting, human_moves
from webapp.core.circuit import CIRCUIT
from webapp.core.sockets import LARGEST_MESSAGE

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


def viewer_for(user: User, match_id: int) -> Viewer | None:
    """The viewpoint of this user for a socket; None if the match is not visible to them."""
    match = Match.objects.visible_to(user).filter(pk=match_id).first()
    return None if match is None else access.viewer_of(match, user)


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
        with connection.cursor() as cursor:
            cursor.execute(self.STATEMENT, self._place)
            row = cursor.fetchone()
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


def _object(text: str) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput("this message could not be read: it is not JSON") from error
    if not isinstance(data, dict):
        raise BadInput("this message could not be read: it is not a JSON object")
    return data


class TableConsumer(AsyncWebsocketConsumer):
    """One browser tab at one match."""

    LARGEST: ClassVar[int] = LARGEST_MESSAGE
    LOOK_EVERY: ClassVar[float] = 3.0
    HELLO_WITHIN: ClassVar[float] = 10.0
    SEND_WITHIN: ClassVar[float] = 10.0
    JOIN_WITHIN: ClassVar[float] = 0.5
    OTHERS_FIRST: ClassVar[float] = 0.005
    """Delay of the frame to the player who moved: threads share one core, and the others wait for the move."""

    viewer: Viewer
    feed: MatchFeed
    client_versions = ClientVersions()
    access: tuple[object, ...] = ()
    gone = False
    note_at = 0.0

    async def connect(self) -> None:
        """Determine the viewpoint; users without access are refused before the socket opens."""
        self.user: User = self.scope["user"]
        self.sign_in = SignIn(self.scope["session"].session_key, self.user.pk)
        self.match_id: int = self.scope["url_route"]["kwargs"]["match_id"]
        self.bucket = Bucket()
        self.looking = asyncio.Lock()
        self.ticker: asyncio.Task[None] | None = None
        self.joined = False
        viewer = await database_sync_to_async(viewer_for, thread_sensitive=False)(self.user, self.match_id)
        if viewer is None:
            await self.close()
            return
        self.viewer, self.feed = viewer, MatchFeed.of(self.match_id, viewer)
        await self.accept()
        await self._join()
        self.ticker = asyncio.create_task(self._tick())

    async def _join(self) -> None:
        """Subscribe to hints; while Redis does not answer the socket only polls."""
        if not CIRCUIT.closed:
            return
        try:
            async with asyncio.timeout(self.JOIN_WITHIN):
                await self.channel_layer.group_add(hints.group(self.match_id), self.channel_name)
            self.joined = True
        except (RedisError, OSError) as error:
            CIRCUIT.failed(error)

    async def disconnect(self, code: int) -> None:
        """Stop polling and unsubscribe."""
        self.gone = True
        if self.ticker is not None:
            self.ticker.cancel()
        if self.joined:
            with suppress(RedisError, OSError):  # the subscription then ends with the connection to Redis
                async with asyncio.timeout(self.JOIN_WITHIN):
                    await self.channel_layer.group_discard(hints.group(self.match_id), self.channel_name)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Handle a greeting (`{"last": n, "parts": {…}}`), a request for advice or a move (the fields of their forms).

        Messages that arrive after the socket was closed are ignored.
        """
        if self.gone:
            return
        if text_data is None or len(text_data.encode()) > self.LARGEST:
            await self.close(TOO_LARGE)
            return
        if not self.bucket.take():
            await self.close(STAY_AWAY)
            return
        try:
            data = _object(text_data)
            await (self._greet(data) if "last" in data else self._ask(data) if "coach" in data else self._move(data))
        except BadInput as error:
            await self._say(fragments.refusal(str(error)))

    async def _greet(self, data: Mapping[str, Any]) -> None:
        last, versions = data.get("last"), data.get("parts", {})
        if isinstance(last, str) and last.isascii() and last.isdigit() and len(last) < 10:
            last = int(last)
        if not isinstance(last, int) or isinstance(last, bool) or not 0 <= last < 10**9:
            raise BadInput("must be the number of the last row that you received", "last")
        if not isinstance(versions, dict) or not all(isinstance(value, str) for value in versions.values()):
            raise BadInput("must map the parts that you received to their versions", "parts")
        async with self.looking:
            self.client_versions = ClientVersions(last, versions)
        await self._look()

    async def _move(self, data: Mapping[str, Any]) -> None:
        """Make a move if the user is still signed in; otherwise close the socket."""
        try:
            if not await database_sync_to_async(self._play, thread_sensitive=False)(data):
                await self.close(STAY_AWAY)
                return
        except (BadInput, IllegalMove) as error:
            await self._say(fragments.refusal(human_moves.explain(error)))
            await self._look()
            return
        await self._say(fragments.refusal(""))
        await asyncio.sleep(self.OTHERS_FIRST)
        await self._look()

    def _play(self, data: Mapping[str, Any]) -> bool:
        """Make the move; False if the session has ended."""
        if self.sign_in.user() is None:
            return False
        human_moves.play(match_id=self.match_id, user=self.user, data=data)
        return True

    async def _ask(self, data: Mapping[str, Any]) -> None:
        """Ask a coach if the user is still signed in; otherwise close the socket."""
        if await self._signed_in() is None:
            await self.close(STAY_AWAY)
            return
        ask = database_sync_to_async(coach.ask_by_form, thread_sensitive=False)
        problem = ""
        try:
            await ask(match_id=self.match_id, user=self.user, data=data)
        except (BadInput, IllegalMove) as error:
            problem = coach.explain(error)
        await self._say(fragments.refusal(problem, of="coach-refusal"))
        await self._look()

    async def look(self, event: Mapping[str, Any]) -> None:
        """Handle a hint."""
        if self.viewer in event["viewers"]:
            await self._look()

    async def _look(self, *, within: float = 0.0) -> None:
        """Send what is new since the last frame, if anything; one frame at a time, in order.

        A snapshot that another socket read at most `within` seconds ago is reused.
        """
        async with self.looking:
            if self.client_versions.last < 0:
                return
            try:
                snapshot = await self._snapshot(within)
                html, after = snapshot.frame_for(self.user, self.client_versions)
            except AccessLost:
                await self.close(STAY_AWAY)
                return
            if html:
                await self._say(html)
            self.client_versions = after

    async def _snapshot(self, within: float) -> Snapshot:
        """The match as this user may see it; from their new seat if seats have just been drawn."""
        snapshot = await self.feed.look(within=within)
        if (seat := snapshot.place_of(self.user)) != self.viewer and min(seat, self.viewer) >= 0:
            self.viewer, self.feed = seat, MatchFeed.of(self.match_id, seat)
            snapshot = await self.feed.look()
        await self._check(snapshot)
        return snapshot

    async def _check(self, snapshot: Snapshot) -> None:
        """Raise `AccessLost` if the user may no longer watch; checked whenever the access key has changed.

        At a table with one seat, checked always: a user who begins the same task may not go on watching.
        """
        access_key = (snapshot.access, self.user.role)
        if access_key == self.access and not snapshot.state.match.task:
            return
        viewer = await database_sync_to_async(viewer_for, thread_sensitive=False)(self.user, self.match_id)
        if viewer is None:
            raise AccessLost
        self.access = access_key

    async def _say(self, html: str) -> None:
        """Send a frame; close the socket if the client does not read."""
        if self.gone:
            return
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
        """Check the session and poll for changes every few seconds."""
        opened = time.monotonic()
        try:
            while not self.gone and await self._still_welcome(opened):
                if not self.joined:
                    await self._join()
                await self._look(within=self.LOOK_EVERY)
                # with jitter: after a restart all sockets connect in the same second
                await asyncio.sleep(self.LOOK_EVERY * random.uniform(0.7, 1.3))
            await self.close(STAY_AWAY)
        except DatabaseError:
            await self.close(COME_BACK)
        except Exception:  # the root of this task: the client must reconnect after a server error
            logger.exception("the socket of match %s failed", self.match_id)
            await self.close(COME_BACK)

    async def _signed_in(self) -> User | None:
        """The reloaded user of this socket; None once their session has ended."""
        return await database_sync_to_async(self.sign_in.user, thread_sensitive=False)()

    async def _still_welcome(self, opened: float) -> bool:
        """Whether the session is valid and the client has sent its greeting in time; if so, record the user's presence.

        The user is reloaded, so access follows their current role.
        """
        if self.client_versions.last < 0 and time.monotonic() - opened >= self.HELLO_WITHIN:
            return False
        user = await self._signed_in()
        if user is None:
            return False
        self.user = user
        if self.viewer >= 0 and time.monotonic() >= self.note_at:
            self.note_at = time.monotonic() + hosting.NOTED_EVERY.total_seconds()
            note = database_sync_to_async(hosting.note_presence, thread_sensitive=False)
            await note(match_id=self.match_id, user=user)
        return True
