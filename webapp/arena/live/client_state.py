"""A match as it looks now from one viewer's place.

Everything comes from the viewer's own observation, its own rows, and what is public; nothing else may enter a page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from django.db.models import Exists, OuterRef

from training.games import GameSpec, lookup
from training.records import SPECTATOR, Observation, Scenario, Seat, Viewer, Zone
from webapp.accounts.models import User
from webapp.arena import access
from webapp.arena.models import GuestLink, Match, MatchSeat, ViewerRow
from webapp.arena.play import hosting, services
from webapp.arena.setup import tables
from webapp.runs.episodes.viewer import opening
from webapp.serving.models import Deployment


@dataclass(frozen=True)
class Chair:
    """One seat as it is shown at the table."""

    number: Seat
    name: str
    you: bool
    acting: bool
    waking: bool
    back_by: datetime | None
    seat: MatchSeat


@dataclass(frozen=True)
class Rights:
    """What somebody who looks at a table may do with it, and whether they know what sits where."""

    hosting: bool = False
    knows_kinds: bool = False
    can_sit: bool = False


@dataclass(frozen=True)
class ClientState:
    """A match from one viewer's place."""

    match: Match
    viewer: Viewer
    scenario: Scenario
    spec: GameSpec
    seen: Observation
    chairs: Sequence[Chair]
    yours: MatchSeat | None
    deadline: datetime | None
    moved: bool
    turn: int
    rights: Rights = Rights()
    asks_ready: bool = False
    phase: str = ""
    board: Sequence[Zone] = ()
    shared: Sequence[str] = field(default_factory=list)
    private: Sequence[str] = field(default_factory=list)

    @property
    def away(self) -> list[Chair]:
        """The seats at which a stand-in moves soon, unless who sits there comes back."""
        return [chair for chair in self.chairs if chair.back_by is not None]

    @property
    def sees_free_seats(self) -> bool:
        """Whether the viewer may see which seats are free: who fills them or may sit down, not who sits there already.

        A seat that fills up later than others is a person's.
        """
        return self.yours is None or self.rights.hosting

    @property
    def your_turn(self) -> bool:
        """Whether the viewer must move now."""
        return bool(self.seen.actions)

    @property
    def can_talk(self) -> bool:
        """Whether plain words are a move of their own now."""
        return any(action.bare for action in self.seen.actions)

    @property
    def takes_text(self) -> bool:
        """Whether any words of the viewer's would be read by others now."""
        return any(action.text in {"optional", "required"} for action in self.seen.actions)

    @property
    def empty(self) -> list[Chair]:
        """The seats that nobody sits at yet."""
        return [chair for chair in self.chairs if chair.seat.kind == MatchSeat.Kind.OPEN]

    @property
    def acting(self) -> list[Chair]:
        """The others who are to move, as far as this viewer may know."""
        return [chair for chair in self.chairs if chair.acting and not chair.you]


def briefing(match: Match, viewer: Viewer) -> tuple[list[str], list[str]]:
    """The opening as (what the public was told, what this viewer was told beyond it), in paragraphs.

    A game's first message to a seat is the rules with its private side in the middle; what the public's first message
    says, too, is shared.
    """
    rows = match.rows.filter(number=1, viewer__in=[viewer, SPECTATOR]).values_list("viewer", "message")
    first = {place: message["text"] for place, message in rows}
    return opening(first.get(viewer, ""), first.get(SPECTATOR, ""))


@dataclass(frozen=True)
class Facts:
    """What is read of a match besides its moves and rows: who sits there, who is due, and what time it is."""

    match: Match
    seats: Sequence[MatchSeat]
    due: Mapping[Seat, datetime | None]
    now: datetime

    @property
    def stamp(self) -> tuple[object, ...]:
        """Changes whenever anything here does that a scene depends on."""
        match = self.match
        return (
            *(match.state, match.step, match.visibility, match.aborted_why, match.paused_at, match.unrated_why),
            *((seat.kind, seat.user_id, seat.consent, seat.ready, seat.stand_in) for seat in self.seats),
            *((seat.deployment.state if seat.deployment else "", is_free(seat)) for seat in self.seats),
            *(self.back_by(seat) for seat in self.seats),
            *self.due.items(),
        )

    def back_by(self, seat: MatchSeat) -> datetime | None:
        """Until when somebody who seems to have left can come back before a stand-in moves for them."""
        return hosting.back_by(seat, self.match, self.now)


def is_free(seat: MatchSeat) -> bool:
    """Whether anybody signed in may take a seat that was read by `facts`."""
    return seat.kind == MatchSeat.Kind.OPEN and not seat.invited  # type: ignore[attr-defined]


def facts(match: Match) -> Facts:
    """What a scene of this match needs besides its moves and rows."""
    invited = Exists(GuestLink.objects.filter(seat=OuterRef("pk")))
    seats = match.seats.annotate(invited=invited).select_related("user", "deployment__checkpoint", "deployment__remote")
    due = match.due.order_by("seat").values_list("seat", "deadline")
    return Facts(match, list(seats.order_by("seat")), dict(due), services.database_now())


def look(match: Match, viewer: Viewer, user: User | None = None) -> ClientState:
    """The match as it looks from `viewer`'s place now; with what `user`, who looks, may do with the table."""
    now = services.fold(match) if match.state == Match.State.RUNNING else None
    found = scene(facts(match), viewer, now, briefing(match, viewer))
    return found if user is None else replace(found, rights=rights_of(user, found))


def rights_of(user: User, scene: ClientState) -> Rights:
    """What this person, who looks from the scene's place, may do with its table."""
    match = scene.match
    free = match.state == Match.State.OPEN and any(is_free(chair.seat) for chair in scene.chairs)
    return Rights(
        hosting=user.is_admin or match.host_id == user.pk,
        knows_kinds=access.chose_seats(match, user),
        can_sit=free and scene.yours is None and not user.is_guest,
    )


def scene(of: Facts, viewer: Viewer, now: services.MatchState | None, told: tuple[list[str], list[str]]) -> ClientState:
    """The match as it looks from `viewer`'s place, put together from what was read; `now` if it is running."""
    match, seats = of.match, of.seats
    seen, acting, moved, turn = Observation(messages=()), frozenset[Seat](), False, 0
    phase, board = "", tuple[Zone, ...]()
    if now is not None:
        seen = now.game.observe(viewer)
        acting = now.game.acting(viewer)
        phase, board = now.game.phase(viewer), now.game.board(viewer)
        moved, turn = viewer in now.pending, now.turns[viewer]
        if moved or match.paused_at is not None or any(seat.stand_in for seat in seats if seat.seat == viewer):
            seen = seen.model_copy(update={"actions": ()})
    yours = next((seat for seat in seats if seat.seat == viewer), None)
    return ClientState(
        match=match,
        viewer=viewer,
        scenario=services.scenario_of(match),
        spec=lookup(match.game),
        seen=seen,
        chairs=[_chair(of, seat, viewer, acting - ({viewer} if moved else set())) for seat in seats],
        yours=yours,
        asks_ready=match.state == Match.State.OPEN and _asks_ready(seats, yours),
        deadline=_deadline(match, viewer, acting, of.due),
        moved=moved,
        turn=turn,
        phase=phase,
        board=board,
        shared=told[0],
        private=told[1],
    )


def _asks_ready(seats: Sequence[MatchSeat], yours: MatchSeat | None) -> bool:
    """Whether the viewer can press Ready now: every seat is taken, and they have not pressed it."""
    full = all(seat.kind != MatchSeat.Kind.OPEN for seat in seats)
    return yours is not None and not yours.ready and full and tables.needs_ready(seats)


def _chair(of: Facts, seat: MatchSeat, viewer: Viewer, acting: frozenset[Seat]) -> Chair:
    now = seat.seat in acting
    cold = seat.deployment is not None and seat.deployment.state != Deployment.State.READY
    return Chair(
        number=seat.seat,
        name=seat.name,
        you=seat.seat == viewer,
        acting=now,
        waking=cold and (of.match.state == Match.State.OPEN or (now and of.due.get(seat.seat) is None)),
        back_by=of.back_by(seat),
        seat=seat,
    )


def _deadline(
    match: Match, viewer: Viewer, acting: frozenset[Seat], due: Mapping[Seat, datetime | None]
) -> datetime | None:
    """The viewer's own deadline, or that of whom they know to be acting, the same for all who act at once.

    Who knows of nobody sees no clock: it would start anew with every step that others take in secret.
    """
    if match.state != Match.State.RUNNING or match.paused_at is not None or not acting:
        return None
    one = viewer if viewer in acting else next(iter(acting)) if len(acting) == 1 else None
    return match.step_until if one is None else due.get(one, match.step_until)


def rows_after(match: Match, viewer: Viewer, number: int) -> list[ViewerRow]:
    """The viewer's rows that follow `number`, in order."""
    return list(match.rows.filter(viewer=viewer, number__gt=number).order_by("number"))
