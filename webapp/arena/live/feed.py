"""One viewpoint of one match, read once for all sockets of this process that share it.

The rows and the game's state are cached between reads.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from weakref import WeakValueDictionary

from channels.db import database_sync_to_async
from django.db import DatabaseError, connection, transaction
from django.utils.safestring import SafeString, mark_safe

from training.records import SPECTATOR, SeatMove, Viewer
from webapp.accounts.models import User
from webapp.arena import hints
from webapp.arena.live import client_state, fragments, updates
from webapp.arena.live.updates import Update
from webapp.arena.models import Match, ViewerRow
from webapp.arena.play import services

BUSY_S, GATHER_S = 0.05, 0.003
"""A read within `BUSY_S` of the last waits for `GATHER_S`, so that sockets which receive the same hints share it."""


class AccessLost(Exception):
    """The user's viewpoint has changed since the socket was opened, or they may no longer see the match."""


@dataclass(frozen=True)
class ClientVersions:
    """What a client shows: its last row (-1: not known yet), the version of each part, and the snapshot's stamp."""

    last: int = -1
    parts: Mapping[str, str] = field(default_factory=dict)
    stamp: tuple[object, ...] = ()


@dataclass(frozen=True)
class Snapshot:
    """A match from one viewpoint, read in one database snapshot; `at` is the monotonic time at which the read began."""

    state: client_state.ClientState
    rows: Sequence[ViewerRow]
    stamp: tuple[object, ...]
    now: datetime
    at: float
    lines: Mapping[int, SafeString] = field(default_factory=dict)
    """The HTML of the newest rows, by their numbers."""
    rendered: dict[client_state.Rights, fragments.RenderedParts] = field(default_factory=dict)

    @property
    def access(self) -> tuple[object, ...]:
        """A key that changes whenever the users who may watch change."""
        match, chairs = self.state.match, self.state.chairs
        return (match.state, match.visibility, match.host_id, *(client_state.is_free(chair.seat) for chair in chairs))

    def place_of(self, user: User) -> Viewer:
        """The viewpoint of this user in the snapshot."""
        sitting = (chair.number for chair in self.state.chairs if chair.seat.user_id == user.pk)
        return next(sitting, SPECTATOR)

    def frame_for(self, user: User, client: ClientVersions) -> tuple[str, ClientVersions]:
        """Return the frame that updates a client to this snapshot (empty if nothing is new), and its new versions.

        Raises `AccessLost` if this is not the user's viewpoint.
        """
        if self.place_of(user) != self.state.viewer:
            raise AccessLost
        if self.stamp == client.stamp:
            return "", client
        parts = self.render(client_state.rights_of(user, self.state))
        new = self.rows[client.last :]
        last = new[-1].number if new else client.last
        html = fragments.frame(parts, self._rows_html(new), last, self.now.isoformat(), client.parts)
        return html, ClientVersions(last, parts.versions, self.stamp)

    def _rows_html(self, rows: Sequence[ViewerRow]) -> SafeString:
        lines = [self.lines.get(row.number) or fragments.row_html(self.state, row) for row in rows]
        return mark_safe("".join(lines))  # noqa: S308  (each is safe)

    def render(self, rights: client_state.Rights) -> fragments.RenderedParts:
        """The parts for all users with the same rights; rendered once."""
        if rights not in self.rendered:
            self.rendered[rights] = fragments.render_parts(replace(self.state, rights=rights))
        return self.rendered[rights]


class MatchFeed:
    """Reads of one viewpoint of a match; sockets call `refresh`, which calls `see`."""

    _feeds: WeakValueDictionary[tuple[int, Viewer], MatchFeed] = WeakValueDictionary()

    def __init__(self, match_id: int, viewer: Viewer) -> None:
        self.match_id, self.viewer = match_id, viewer
        self._snapshot: Snapshot | None = None
        self._facts: client_state.Facts | None = None
        self._version: str | None = None
        self._rows: list[ViewerRow] = []
        self._match_state: services.MatchState | None = None
        self._reading = threading.Lock()
        self._turn = asyncio.Lock()
        self._begun = self._got = 0

    @classmethod
    def of(cls, match_id: int, viewer: Viewer) -> MatchFeed:
        """The feed that all sockets of this process share, for as long as one of them uses it."""
        return cls._feeds.setdefault((match_id, viewer), cls(match_id, viewer))

    @classmethod
    def open_at(cls, match_id: int, viewer: Viewer) -> MatchFeed | None:
        """The feed of this viewpoint if a socket of this process uses it."""
        return cls._feeds.get((match_id, viewer))

    async def refresh(self, *, since: float = math.inf) -> Snapshot:
        """The last snapshot if it was taken at the monotonic time `since` or later, else one taken after this call.

        Calls during a running read share the next read.
        """
        if self._snapshot is not None and self._snapshot.at >= since:
            return self._snapshot
        least = self._begun + 1
        async with self._turn:
            if self._snapshot is None or self._got < least:
                busy = self._snapshot is not None and time.monotonic() - self._snapshot.at < BUSY_S
                await asyncio.sleep(GATHER_S if busy else 0)
                self._begun += 1
                number = self._begun
                await database_sync_to_async(self.see, thread_sensitive=False)()
                self._got = number
            assert self._snapshot is not None
            return self._snapshot

    def see(self) -> Snapshot:
        """Read the match in one database snapshot, so that no frame shows half a move.

        Raises `AccessLost` if there is no such match.
        """
        with self._reading:
            return self._see()

    def see_unless_busy(self) -> Snapshot | None:
        """The same; None, without waiting, while another thread reads."""
        if not self._reading.acquire(blocking=False):
            return None
        try:
            return self._see()
        finally:
            self._reading.release()

    def _see(self) -> Snapshot:
        at = time.monotonic()
        facts, update = self._read()
        self._facts, self._version = facts, update.version
        self._rows += update.rows
        self._advance(facts.match, update.moves)
        stamp = (*facts.stamp, len(self._rows))
        if self._snapshot is not None and self._snapshot.stamp == stamp:
            self._snapshot = replace(self._snapshot, now=facts.now, at=at)
            return self._snapshot
        state = client_state.build(facts, self.viewer, self._match_state)
        if self._snapshot is None:
            self._snapshot = Snapshot(state, tuple(self._rows), stamp, facts.now, at)
            return self._snapshot
        # in this thread: rendering must not block the event loop
        lines = {row.number: fragments.row_html(state, row) for row in update.rows}
        snapshot = Snapshot(state, tuple(self._rows), stamp, facts.now, at, lines)
        for rights in tuple(self._snapshot.rendered):  # the loop may add to it
            snapshot.render(rights)
        self._snapshot = snapshot
        return snapshot

    def _read(self) -> tuple[client_state.Facts, Update]:
        """Read what is new: two statements while the game only moves on, else everything in a transaction."""
        last = len(self._rows), 0 if self._match_state is None else self._match_state.moves
        update = updates.read(self.match_id, self.viewer, *last)
        if update is not None and self._facts is not None and update.version in {self._version} - {None}:
            return update.applied_to(self._facts), update
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            update = updates.read(self.match_id, self.viewer, *last)
            if update is None:
                raise AccessLost
            return client_state.facts(Match.objects.get(pk=self.match_id)), update

    def _advance(self, match: Match, moves: Sequence[SeatMove]) -> None:
        """Advance the cached state of a match that has begun; it is cleared if the game cannot be replayed."""
        state, self._match_state = self._match_state, None
        if state is None:
            self._match_state = client_state.started(match, moves)
        else:
            self._match_state = services.catch_up(state, moves)


@hints.reader
def read_now(match_id: int, viewer: Viewer) -> float | None:
    """Read a match for the sockets of a viewpoint in this process; None if there are none.

    Infinity, which lets the sockets read themselves, if another thread is reading it or the database fails.
    """
    feed = MatchFeed.open_at(match_id, viewer)
    if feed is None:
        return None
    try:
        snapshot = feed.see_unless_busy()
    except (AccessLost, DatabaseError):  # the sockets close if it fails again
        return math.inf
    return math.inf if snapshot is None else snapshot.at
