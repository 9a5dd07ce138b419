"""One viewer's view of one match, read once for all the sockets of this process that look from there.

What is the same for all of them is kept between looks: the rows, the opening, and the game as far as it was played.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from weakref import WeakValueDictionary

from channels.db import database_sync_to_async
from django.db import connection, transaction

from training.records import SPECTATOR, Viewer
from webapp.accounts.models import User
from webapp.arena.live import client_state, fragments
from webapp.arena.models import Match, ViewerRow
from webapp.arena.play import services

GATHER_S = 0.003
"""A look waits so long for the other sockets of its place, which are told of the same thing at the same time."""


class AccessLost(Exception):
    """The person no longer looks from where the socket was opened: they got up, sat down, or may not see it now."""


@dataclass(frozen=True)
class Held:
    """What a client shows: its last row (-1: it has not said), its parts' versions, and of which look they are."""

    last: int = -1
    known: Mapping[str, str] = field(default_factory=dict)
    stamp: tuple[object, ...] = ()


@dataclass(frozen=True)
class Snapshot:
    """A match as it looked from one place in one snapshot of the database; `at` is that moment by our own clock."""

    scene: client_state.ClientState
    rows: Sequence[ViewerRow]
    stamp: tuple[object, ...]
    now: datetime
    at: float = field(default_factory=time.monotonic)
    drawn: dict[client_state.Rights, fragments.Drawn] = field(default_factory=dict)

    @property
    def access(self) -> tuple[object, ...]:
        """Changes whenever anything here does that decides who may watch."""
        match, chairs = self.scene.match, self.scene.chairs
        return (match.state, match.visibility, match.host_id, *(client_state.is_free(chair.seat) for chair in chairs))

    def place_of(self, user: User) -> Viewer:
        """From where this person looked."""
        sitting = (chair.number for chair in self.scene.chairs if chair.seat.user_id == user.pk)
        return next(sitting, SPECTATOR)

    def frame_for(self, user: User, held: Held) -> tuple[str, Held]:
        """The frame that brings a client from what it holds to here (empty if nothing is new), and what it holds then.

        Raises `AccessLost` if the person did not look from here.
        """
        if self.place_of(user) != self.scene.viewer:
            raise AccessLost
        if self.stamp == held.stamp:
            return "", held
        now = self.draw(client_state.rights_of(user, self.scene))
        new = self.rows[held.last :]
        last = new[-1].number if new else held.last
        html = fragments.frame(self.scene, now, new, last, self.now.isoformat(), held.known)
        return html, Held(last, now.versions, self.stamp)

    def draw(self, rights: client_state.Rights) -> fragments.Drawn:
        """The parts for everybody who may do the same with the table; drawn once."""
        if rights not in self.drawn:
            self.drawn[rights] = fragments.drawn(replace(self.scene, rights=rights))
        return self.drawn[rights]


class MatchFeed:
    """Looks from one place; `look` is what sockets call, `see` reads."""

    _kept: WeakValueDictionary[tuple[int, Viewer], MatchFeed] = WeakValueDictionary()

    def __init__(self, match_id: int, viewer: Viewer) -> None:
        self.match_id, self.viewer = match_id, viewer
        self._sight: Snapshot | None = None
        self._rows: list[ViewerRow] = []
        self._told: tuple[list[str], list[str]] = ([], [])
        self._fold: services.MatchState | None = None
        self._reading = threading.Lock()
        self._turn = asyncio.Lock()
        self._begun = self._got = 0

    @classmethod
    def of(cls, match_id: int, viewer: Viewer) -> MatchFeed:
        """The one that all sockets of this process share, for as long as one of them holds it."""
        return cls._kept.setdefault((match_id, viewer), cls(match_id, viewer))

    async def look(self, *, within: float = 0.0) -> Snapshot:
        """The match as it looks at a moment after this call, or at most `within` seconds before it.

        Who asks while another's look is under way shares the next one.
        """
        if self._sight is not None and time.monotonic() - self._sight.at < within:
            return self._sight
        wanted = self._begun + 1
        async with self._turn:
            if self._sight is None or self._got < wanted:
                await asyncio.sleep(GATHER_S)
                self._begun += 1
                number = self._begun
                self._sight = await database_sync_to_async(self.see, thread_sensitive=False)()
                self._got = number
            return self._sight

    def see(self) -> Snapshot:
        """Look now. All of it is read from one snapshot, so that no frame shows half a move.

        Raises `AccessLost` if there is no such match.
        """
        with self._reading, transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            try:
                match = Match.objects.get(pk=self.match_id)
            except Match.DoesNotExist:
                raise AccessLost from None
            facts = client_state.facts(match)
            self._rows += client_state.rows_after(match, self.viewer, len(self._rows))
            stamp = (*facts.stamp, len(self._rows))
            if self._sight is not None and self._sight.stamp == stamp:
                return replace(self._sight, now=facts.now, at=time.monotonic())
            if not self._told[0]:
                self._told = client_state.briefing(match, self.viewer)
            scene = client_state.scene(facts, self.viewer, self._played(match), self._told)
            sight = Snapshot(scene, tuple(self._rows), stamp, facts.now)
            for rights in tuple(self._sight.drawn) if self._sight is not None else ():  # the loop may add to it
                sight.draw(rights)  # here, in a thread, and not in the loop that all sockets wait for
            return sight

    def _played(self, match: Match) -> services.MatchState | None:
        """The game as it stands if it is running; of a game that cannot be played on, nothing is kept."""
        if match.state != Match.State.RUNNING:
            return None
        kept, self._fold = self._fold, None
        if kept is None:
            self._fold = services.fold(match)
        else:
            self._fold = services.catch_up(kept, services.moves_of(match, since=kept.moves))
        return self._fold
