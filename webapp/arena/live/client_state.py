"""The current state of a match from one viewpoint.

It is built only from the viewer's observation, the viewer's rows and public data; nothing else may enter a page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.db.models import Exists, OuterRef

from training.errors import BadInput, IllegalMove
from training.games import GameSpec, lookup, make
from training.labels.rated import rated_after
from training.records import Observation, Scenario, Seat, SeatMove, Viewer
from training.views import TableView
from webapp.accounts.models import User
from webapp.arena import access
from webapp.arena.models import Advice, GuestLink, Match, MatchSeat, ViewerRow
from webapp.arena.play import coach, hosting, services
from webapp.arena.setup import waiting_room
from webapp.serving.models import Deployment

NO_VIEW = TableView()
"""The view of a game that has not begun, or cannot be replayed any more."""


@dataclass(frozen=True)
class Chair:
    """One seat as the table shows it."""

    number: Seat
    name: str
    you: bool
    acting: bool
    starting: bool
    back_by: datetime | None
    seat: MatchSeat


@dataclass(frozen=True)
class Rights:
    """What a user may do with a table, and whether they know which seats are models."""

    hosting: bool = False
    knows_kinds: bool = False
    can_sit: bool = False


@dataclass(frozen=True)
class Coaching:
    """The advice to the viewer's seat, the newest first, and whether a coach can be asked now.

    `failed` is the request of this turn, if the coach has failed to answer it.
    """

    advice: Sequence[Advice] = ()
    waiting: bool = False
    can_ask: bool = False
    failed: Advice | None = None

    @property
    def answers(self) -> list[Advice]:
        """The advice that has come."""
        return [row for row in self.advice if row.text]


@dataclass(frozen=True)
class ClientState:
    """A match from one viewpoint."""

    match: Match
    viewer: Viewer
    scenario: Scenario
    spec: GameSpec
    observation: Observation
    chairs: Sequence[Chair]
    yours: MatchSeat | None
    deadline: datetime | None
    moved: bool
    turn: int
    rights: Rights = Rights()
    asks_ready: bool = False
    view: TableView = NO_VIEW
    coaching: Coaching = Coaching()
    public_due: frozenset[Seat] = frozenset()
    """The seats that must move, as far as every player knows of all others."""

    @property
    def away(self) -> list[Chair]:
        """Seats that a stand-in takes over soon, unless their player returns."""
        return [chair for chair in self.chairs if chair.back_by is not None]

    @property
    def sees_free_seats(self) -> bool:
        """Whether the viewer may see which seats are free: the host and spectators, but not seated players.

        A seat that is filled later than others belongs to a person. Where a countdown fills the seats, a seated host
        who did not choose the players may not see it either. Some tables hide it from everybody: `Match.hides_seats`.
        """
        if self.match.hides_seats or self.yours is None:
            return not self.match.hides_seats
        return self.rights.hosting and (self.rights.knows_kinds or self.match.countdown_s is None)

    @property
    def offers_link(self) -> bool:
        """Whether the host is offered a link to the table: if a seat is free, or nobody may see whether one is."""
        return self.rights.hosting and (self.match.hides_seats or (bool(self.empty) and self.sees_free_seats))

    @property
    def asks_about_others(self) -> bool:
        """Whether the viewer, who has a seat, is asked about the others after the game."""
        codebook = rated_after(self.match.game)
        return access.asks_about_others(self.match, self.viewer, codebook, knows=self.rights.knows_kinds)

    @property
    def your_turn(self) -> bool:
        """Whether the viewer must move."""
        return bool(self.observation.actions)

    @property
    def can_talk(self) -> bool:
        """Whether plain text is a legal move."""
        return any(action.bare for action in self.observation.actions)

    @property
    def takes_text(self) -> bool:
        """Whether other players would read text sent with a move."""
        return any(action.text in {"optional", "required"} for action in self.observation.actions)

    @property
    def empty(self) -> list[Chair]:
        """The open seats."""
        return [chair for chair in self.chairs if chair.seat.kind == MatchSeat.Kind.OPEN]

    @property
    def acting(self) -> list[Chair]:
        """The other seats that must move, as far as this viewer may know."""
        return [chair for chair in self.chairs if chair.acting and not chair.you]

    @property
    def speaking(self) -> list[Chair]:
        """The other seats whose message comes next in a conversation; none in a vote or while moves are hidden.

        A seat is here because it is due, and stays until the step is over, whoever sits there and whatever it does.
        """
        if self.spec.focus != "talk" or self.view.mood == "vote" or self.match.paused_at is not None:
            return []
        return [chair for chair in self.acting if chair.number in self.public_due]


@dataclass(frozen=True)
class Facts:
    """What is read from the database besides moves and rows: the seats, the due seats, all advice and the time."""

    match: Match
    seats: Sequence[MatchSeat]
    due: Mapping[Seat, datetime | None]
    now: datetime
    advice: Sequence[Advice] = ()

    @property
    def stamp(self) -> tuple[object, ...]:
        """A key that changes whenever any input of a `ClientState` changes."""
        match = self.match
        return (
            *(match.state, match.step, match.visibility, match.aborted_why, match.paused_at, match.unrated_why),
            *(match.countdown_ends_at, match.countdown_stopped),
            *((seat.kind, seat.user_id, seat.consent, seat.ready, seat.stand_in, seat.notice) for seat in self.seats),
            *((*(model.state for model in seat.deployments), is_free(seat)) for seat in self.seats),
            *(self.back_by(seat) for seat in self.seats),
            *self.due.items(),
            *((row.pk, row.tries, row.text, row.why, coach.is_pending(row, self.now)) for row in self.advice),
        )

    def back_by(self, seat: MatchSeat) -> datetime | None:
        """The time at which a stand-in takes over from an absent player."""
        return hosting.back_by(seat, self.match, self.now)


def is_free(seat: MatchSeat) -> bool:
    """Whether any signed-in user may take a seat read by `facts`."""
    return seat.kind == MatchSeat.Kind.OPEN and not seat.invited  # type: ignore[attr-defined]


def facts(match: Match) -> Facts:
    """Read what a `ClientState` needs besides moves and rows."""
    invited = Exists(GuestLink.objects.filter(seat=OuterRef("pk")))
    seats = match.seats.annotate(invited=invited).named()
    due = match.due.order_by("seat").values_list("seat", "deadline")
    begun = match.coaching and match.state != Match.State.OPEN
    advice = list(match.advice.order_by("step")) if begun else []
    return Facts(match, list(seats.order_by("seat")), dict(due), services.database_now(), advice)


def read(match: Match, viewer: Viewer, user: User | None = None) -> ClientState:
    """The current state of the match from `viewer`'s viewpoint, with the rights of `user` if one is passed."""
    state = build(facts(match), viewer, folded(match))
    return state if user is None else replace(state, rights=rights_of(user, state))


def folded(match: Match) -> services.MatchState | None:
    """The state of a match that has begun; None if it is over and its game cannot be replayed any more.

    Raises `BadInput` or `IllegalMove` for a running match that cannot be replayed.
    """
    return started(match, services.moves_of(match))


def started(match: Match, moves: Sequence[SeatMove]) -> services.MatchState | None:
    """The same, from all moves of the match."""
    if match.state == Match.State.OPEN:
        return None
    try:
        return services.catch_up(services.MatchState(make(services.scenario_of(match))), moves)
    except (BadInput, IllegalMove):
        if match.over:
            return None
        raise


def view_of(state: services.MatchState | None, viewer: Viewer) -> TableView:
    """What a viewer sees of a match in this state; an empty view without a state."""
    return NO_VIEW if state is None else state.game.show(viewer)


def rights_of(user: User, state: ClientState) -> Rights:
    """The rights of this user at the table."""
    match = state.match
    free = match.state == Match.State.OPEN and any(is_free(chair.seat) for chair in state.chairs)
    return Rights(
        hosting=user.is_admin or (match.host_id == user.pk and not user.is_guest),
        knows_kinds=access.chose_seats(match, user),
        can_sit=free and state.yours is None and not user.is_guest,
    )


def build(match_facts: Facts, viewer: Viewer, match_state: services.MatchState | None) -> ClientState:
    """Build the state for `viewer`; `match_state` is None before the game, and where it cannot be replayed."""
    match, seats = match_facts.match, match_facts.seats
    observation, acting, moved, turn = Observation(messages=()), frozenset[Seat](), False, 0
    public_due = frozenset[Seat]()
    view = view_of(match_state, viewer)
    if match_state is not None and match.state == Match.State.RUNNING:
        observation = match_state.game.observe(viewer)
        acting = match_state.game.acting(viewer)
        public_due = frozenset.intersection(*(match_state.game.acting(seat.seat) for seat in seats))
        moved, turn = viewer in match_state.pending, match_state.turns[viewer]
        if moved or match.paused_at is not None or any(seat.stand_in for seat in seats if seat.seat == viewer):
            observation = observation.model_copy(update={"actions": ()})
    yours = next((seat for seat in seats if seat.seat == viewer), None)
    return ClientState(
        match=match,
        viewer=viewer,
        scenario=services.scenario_of(match),
        spec=lookup(match.game),
        observation=observation,
        chairs=[_chair(match_facts, seat, viewer, acting - ({viewer} if moved else set())) for seat in seats],
        yours=yours,
        asks_ready=match.state == Match.State.OPEN and _asks_ready(seats, yours),
        deadline=_deadline(match, viewer, acting, match_facts.due),
        moved=moved,
        turn=turn,
        view=view if observation.actions else view.model_copy(update={"ask": ""}),
        coaching=_coaching(match_facts, viewer, asks=bool(observation.actions)),
        public_due=public_due,
    )


def _coaching(match_facts: Facts, viewer: Viewer, *, asks: bool) -> Coaching:
    """The advice to the viewer's own seat; `asks` says whether it is the viewer's turn."""
    rows = [row for row in reversed(match_facts.advice) if row.seat == viewer]
    newest = rows[0] if rows and rows[0].step == match_facts.match.step else None
    waiting = newest is not None and coach.is_pending(newest, match_facts.now)
    again = newest is None or coach.may_ask_again(newest, match_facts.now)
    return Coaching(
        rows,
        waiting=waiting,
        can_ask=asks and match_facts.match.coaching and not waiting and again,
        failed=None if newest is None or newest.text or waiting else newest,
    )


def _asks_ready(seats: Sequence[MatchSeat], yours: MatchSeat | None) -> bool:
    """Whether the viewer can press Ready: every seat is taken or hidden, and they have not pressed it yet."""
    if yours is None or yours.ready or not waiting_room.needs_ready(seats):
        return False
    return yours.match.hides_seats or all(seat.kind != MatchSeat.Kind.OPEN for seat in seats)


def _chair(match_facts: Facts, seat: MatchSeat, viewer: Viewer, acting: frozenset[Seat]) -> Chair:
    is_acting = seat.seat in acting
    cold = any(model.state != Deployment.State.READY for model in seat.deployments)
    return Chair(
        number=seat.seat,
        name=seat.name,
        you=seat.seat == viewer,
        acting=is_acting,
        starting=cold
        and (match_facts.match.state == Match.State.OPEN or (is_acting and match_facts.due.get(seat.seat) is None)),
        back_by=match_facts.back_by(seat),
        seat=seat,
    )


def _deadline(
    match: Match, viewer: Viewer, acting: frozenset[Seat], due: Mapping[Seat, datetime | None]
) -> datetime | None:
    """The viewer's own deadline, or the deadline of the seats that the viewer knows to be acting.

    A viewer who knows of no acting seat sees no clock: its restarts would reveal secret steps of others.
    """
    if match.state != Match.State.RUNNING or match.paused_at is not None or not acting:
        return None
    actor = viewer if viewer in acting else next(iter(acting)) if len(acting) == 1 else None
    return match.step_until if actor is None else due.get(actor, match.step_until)


def rows_after(match: Match, viewer: Viewer, number: int) -> list[ViewerRow]:
    """The viewer's rows that follow `number`, in order."""
    return list(match.rows.filter(viewer=viewer, number__gt=number).order_by("number"))
