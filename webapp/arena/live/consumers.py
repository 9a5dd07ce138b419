"""The table's socket: HTML fragments out, moves in.

The client first sends the number of its last row and the versions of its parts; the server then sends what is newer.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from typing import Any

from channels.db import database_sync_to_async

from training.errors import BadInput, IllegalMove
from training.records import Viewer
from webapp.accounts.models import User
from webapp.arena import access, hints
from webapp.arena.live import fragments
from webapp.arena.live.feed import AccessLost, ClientVersions, MatchFeed, Snapshot
from webapp.arena.models import Match
from webapp.arena.play import coach, hosting, human_moves
from webapp.arena.sockets import POLICY_VIOLATION, MatchSocket


def viewer_for(user: User, match_id: int) -> Viewer | None:
    """The viewpoint of this user for a socket; None if the match is not visible to them."""
    match = Match.objects.visible_to(user).filter(pk=match_id).first()
    return None if match is None else access.viewer_of(match, user)


def _object(text: str) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput("this message could not be read: it is not JSON") from error
    if not isinstance(data, dict):
        raise BadInput("this message could not be read: it is not a JSON object")
    return data


class TableConsumer(MatchSocket):
    """One browser tab at one match: its greeting is `{"last": n, "parts": {…}}`."""

    viewer: Viewer
    feed: MatchFeed
    client_versions = ClientVersions()
    access: tuple[object, ...] = ()
    note_at = 0.0

    @property
    def group(self) -> str:
        """The group of the match's players and spectators."""
        return hints.group(self.match_id)

    @property
    def greeted(self) -> bool:
        """Whether the client has said what its page shows."""
        return self.client_versions.last >= 0

    async def authorize(self) -> bool:
        """Determine the viewpoint; False if the match is not visible to the user."""
        viewer = await database_sync_to_async(viewer_for, thread_sensitive=False)(self.user, self.match_id)
        if viewer is None:
            return False
        self.viewer, self.feed = viewer, MatchFeed.of(self.match_id, viewer)
        return True

    async def reauthorize(self, user: User) -> bool:
        """Take over the user's current role, and record that they are present; `refresh` checks their access."""
        self.user = user
        if self.viewer >= 0 and time.monotonic() >= self.note_at:
            self.note_at = time.monotonic() + hosting.NOTED_EVERY.total_seconds()
            note = database_sync_to_async(hosting.note_presence, thread_sensitive=False)
            await note(match_id=self.match_id, user=user)
        return True

    async def handle(self, text: str) -> None:
        """Handle a greeting, a request for advice or a move (the fields of their forms)."""
        try:
            data = _object(text)
            await (self._greet(data) if "last" in data else self._ask(data) if "coach" in data else self._move(data))
        except BadInput as error:
            await self.send_frame(fragments.refusal(str(error)))

    async def _greet(self, data: Mapping[str, Any]) -> None:
        last, versions = data.get("last"), data.get("parts", {})
        if isinstance(last, str) and last.isascii() and last.isdigit() and len(last) < 10:
            last = int(last)
        if not isinstance(last, int) or isinstance(last, bool) or not 0 <= last < 10**9:
            raise BadInput("must be the number of the last row that you received", "last")
        if not isinstance(versions, dict) or not all(isinstance(value, str) for value in versions.values()):
            raise BadInput("must map the parts that you received to their versions", "parts")
        async with self.refreshing:
            self.client_versions = ClientVersions(last, versions)
        await self.refresh()

    async def _move(self, data: Mapping[str, Any]) -> None:
        """Make a move if the user is still signed in; otherwise close the socket."""
        began = time.monotonic()
        try:
            if not await database_sync_to_async(self._play, thread_sensitive=False)(data):
                await self.close(POLICY_VIOLATION)
                return
        except (BadInput, IllegalMove) as error:
            await self.send_frame(fragments.refusal(human_moves.explain(error)))
            await self.refresh()
            return
        await self.send_frame(fragments.refusal(""))
        await self.refresh(since=began)  # a move that is new comes with a hint

    def _play(self, data: Mapping[str, Any]) -> bool:
        """Make the move; False if the session has ended."""
        if self.sign_in.user() is None:
            return False
        human_moves.play(match_id=self.match_id, user=self.user, data=data)
        return True

    async def _ask(self, data: Mapping[str, Any]) -> None:
        """Ask a coach if the user is still signed in; otherwise close the socket."""
        if await self.signed_in() is None:
            await self.close(POLICY_VIOLATION)
            return
        ask = database_sync_to_async(coach.ask_by_form, thread_sensitive=False)
        problem = ""
        try:
            await ask(match_id=self.match_id, user=self.user, data=data)
        except (BadInput, IllegalMove) as error:
            problem = coach.explain(error)
        await self.send_frame(fragments.refusal(problem, of="coach-refusal"))
        await self.refresh()

    async def changed(self, event: Mapping[str, Any]) -> None:
        """Handle a hint."""
        if self.viewer in event["viewers"]:
            await self.refresh(since=event.get("read_at", math.inf))

    async def refresh(self, *, since: float = math.inf) -> None:
        """Send what is new since the last frame, if anything; one frame at a time, in order."""
        async with self.refreshing:
            if not self.greeted:
                return
            try:
                snapshot = await self._snapshot(since)
                html, after = snapshot.frame_for(self.user, self.client_versions)
            except AccessLost:
                await self.close(POLICY_VIOLATION)
                return
            if html:
                await self.send_frame(html)
            self.client_versions = after

    async def _snapshot(self, since: float) -> Snapshot:
        """The match as this user may see it; from their new seat if seats have just been drawn."""
        snapshot = await self.feed.refresh(since=since)
        if (seat := snapshot.place_of(self.user)) != self.viewer and min(seat, self.viewer) >= 0:
            self.viewer, self.feed = seat, MatchFeed.of(self.match_id, seat)
            snapshot = await self.feed.refresh()
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
