"""What one viewer of a match may see now: who may look from where, and the match as it looks from there.

Everything comes from the viewer's own observation, its own rows, and what is public; nothing else may enter a page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import Count

from training.games import GameSpec, lookup
from training.records import ALL, SPECTATOR, Observation, Scenario, Seat, Viewer, Zone
from webapp.accounts.models import User
from webapp.arena import services, tables
from webapp.arena.models import Match, MatchSeat, ViewerRow
from webapp.serving.models import Deployment


def own_seat(match: Match, user: User) -> MatchSeat | None:
    """The seat at which this person sits, or None."""
    return match.seats.filter(user=user).first()


def viewer_of(match: Match, user: User) -> Viewer:
    """From where this person looks at a match that is not over: their seat, else the public's place."""
    seat = own_seat(match, user)
    return SPECTATOR if seat is None else seat.seat


def viewpoints(match: Match, user: User) -> list[Viewer]:
    """The places from which this person may look: during a match only their own; afterwards who sat there (and the
    host, annotators it is assigned to, and admins) may see all, others what its visibility allows.
    """
    if not match.over:
        return [viewer_of(match, user)]
    everything = [ALL, SPECTATOR, *range(len(services.scenario_of(match).seats))]
    involved = match.host_id == user.pk or user.is_admin or own_seat(match, user) is not None
    if involved or match.visibility == Match.Visibility.PUBLIC:
        return everything
    assigned = Match.objects.assigned_to(user).filter(pk=match.pk).exists()
    return everything if assigned else [SPECTATOR]


def told_who(match: Match, user: User) -> bool:
    """Whether this person may be told who or what sat at the other seats: once the game is over, and they have rated
    it (as a player) or judged it (as an annotator it is assigned to).
    """
    return match.over and not Match.objects.filter(pk=match.pk).untold_to(user).exists()


def shows_judgments(match: Match, user: User) -> bool:
    """Whether the replay offers this person judgments: to who judges, sees all there, and is told who sat where.

    Values and reasons give away what was hidden, and often who was a model.
    """
    return user.is_annotator and ALL in viewpoints(match, user) and told_who(match, user)


def chose_seats(match: Match, user: User) -> bool:
    """Whether this person knows what sits where because they chose it; who only asked for a rematch did not."""
    return match.host_id == user.pk and match.swapped_from_id is None


@dataclass(frozen=True)
class Line:
    """A match in a list: each seat with whether this person may be told what sits there."""

    match: Match
    seats: Sequence[tuple[MatchSeat, bool]]


def lines(matches: Iterable[Match], user: User) -> list[Line]:
    """Matches (loaded `with_seats`) as lists show them to this person."""
    found = list(matches)
    untold = set(
        Match.objects.filter(pk__in=[match.pk for match in found]).untold_to(user).values_list("pk", flat=True)
    )

    def shown(match: Match, seat: MatchSeat) -> bool:
        told = match.over and match.pk not in untold
        return told or chose_seats(match, user) or seat.user_id == user.pk or seat.kind == MatchSeat.Kind.OPEN

    return [Line(match, [(seat, shown(match, seat)) for seat in match.seats.all()]) for match in found]


@dataclass(frozen=True)
class Chair:
    """One seat as it is shown at the table."""

    number: Seat
    name: str
    you: bool
    acting: bool
    waking: bool
    seat: MatchSeat


@dataclass(frozen=True)
class Scene:
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
    hosting: bool = False
    knows_kinds: bool = False
    can_sit: bool = False
    asks_ready: bool = False
    phase: str = ""
    board: Sequence[Zone] = ()
    shared: Sequence[str] = field(default_factory=list)
    private: Sequence[str] = field(default_factory=list)

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


def _paragraphs(text: str) -> list[str]:
    return [part.strip() for part in re.split(r"\n\s*\n", text) if part.strip()]


def briefing(match: Match, viewer: Viewer) -> tuple[list[str], list[str]]:
    """The opening as (what the public was told, what this viewer was told beyond it), in paragraphs.

    A game's first message to a seat is the rules with its private side in the middle; what the public's first message
    says, too, is shared.
    """
    rows = match.rows.filter(number=1, viewer__in=[viewer, SPECTATOR]).values_list("viewer", "message")
    first = {place: _paragraphs(message["text"]) for place, message in rows}
    shared = first.get(SPECTATOR, [])
    return shared, [part for part in first.get(viewer, []) if part not in shared]


def look(match: Match, viewer: Viewer, user: User | None = None) -> Scene:
    """The match as it looks from `viewer`'s place now; with what `user`, who looks, may do with the table."""
    scenario = services.scenario_of(match)
    spec = lookup(match.game)
    seats = list(match.seats.select_related("user", "deployment__checkpoint", "deployment__remote").order_by("seat"))
    seen, acting, moved, turn = Observation(messages=()), frozenset[Seat](), False, 0
    phase, board = "", tuple[Zone, ...]()
    if match.state == Match.State.RUNNING:
        now = services.fold(match)
        seen = now.game.observe(viewer)
        acting = now.game.acting(viewer)
        phase, board = now.game.phase(viewer), now.game.board(viewer)
        moved, turn = viewer in now.pending, now.turns[viewer]
        if moved or match.paused_at is not None or any(seat.stand_in for seat in seats if seat.seat == viewer):
            seen = seen.model_copy(update={"actions": ()})
    due = dict(match.due.values_list("seat", "deadline"))
    shared, private = briefing(match, viewer)
    yours = next((seat for seat in seats if seat.seat == viewer), None)
    member = user is not None and not user.is_guest
    return Scene(
        match=match,
        viewer=viewer,
        scenario=scenario,
        spec=spec,
        seen=seen,
        chairs=[_chair(seat, viewer, acting - ({viewer} if moved else set()), due) for seat in seats],
        yours=yours,
        hosting=user is not None and (user.is_admin or match.host_id == user.pk),
        knows_kinds=user is not None and chose_seats(match, user),
        can_sit=member and yours is None and match.state == Match.State.OPEN and match.seats.free().exists(),
        asks_ready=match.state == Match.State.OPEN and _asks_ready(seats, yours),
        deadline=_deadline(match, viewer, acting, due),
        moved=moved,
        turn=turn,
        phase=phase,
        board=board,
        shared=shared,
        private=private,
    )


def _asks_ready(seats: Sequence[MatchSeat], yours: MatchSeat | None) -> bool:
    """Whether the viewer can press Ready now: every seat is taken, and they have not pressed it."""
    full = all(seat.kind != MatchSeat.Kind.OPEN for seat in seats)
    return yours is not None and not yours.ready and full and tables.needs_ready(seats)


def _chair(seat: MatchSeat, viewer: Viewer, acting: frozenset[Seat], due: dict[Seat, datetime | None]) -> Chair:
    now = seat.seat in acting
    cold = seat.deployment is not None and seat.deployment.state != Deployment.State.READY
    return Chair(
        number=seat.seat,
        name=seat.name,
        you=seat.seat == viewer,
        acting=now,
        waking=cold and (seat.match.state == Match.State.OPEN or (now and due.get(seat.seat) is None)),
        seat=seat,
    )


def _deadline(
    match: Match, viewer: Viewer, acting: frozenset[Seat], due: dict[Seat, datetime | None]
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


def last_number(match: Match, viewer: Viewer) -> int:
    """How many rows this viewer has."""
    return match.rows.filter(viewer=viewer).count()


def stamp(match: Match, viewer: Viewer) -> tuple[object, ...]:
    """Changes whenever anything does that `look` or the rows of this match, just read, depend on; far cheaper."""
    links = Count("guest_link")
    seats = match.seats.annotate(links=links).order_by("seat")
    return (
        *(match.state, match.step, match.visibility, match.aborted_why, match.paused_at, match.unrated_why),
        last_number(match, viewer),
        *seats.values_list("kind", "user_id", "consent", "ready", "stand_in", "deployment__state", "links"),
        *match.due.order_by("seat").values_list("seat", "step", "deadline"),
    )
