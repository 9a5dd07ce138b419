"""Moves of a match: `submit` is the only function that adds one.

`submit` locks the match, appends the move, folds the game, writes each viewer's new rows and the seats that are due
next, and sends hints after commit. It raises `IllegalMove` (with a reason for the player) without changing anything.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from threading import Lock

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper
from django.db.models import F

from training.errors import BadInput, IllegalMove
from training.games import Game, Search, SearchingGame, advance, make
from training.records import ALL, SPECTATOR, Move, Scenario, Seat, SeatMove, Viewer
from training.seeding import rng
from webapp.arena import hints
from webapp.arena.models import DueSeat, Match, MatchMove, MatchSeat
from webapp.arena.play import pace, statements
from webapp.arena.play.statements import Locked
from webapp.core import queue
from webapp.core.statements import execute, pipelined
from webapp.serving import services as serving

HINT_EVERY = timedelta(seconds=5)
"""How long a worker has to claim a due seat before the hint is sent again."""
SEARCH_SECONDS = 30
"""The time of a search, whatever the time of a move is."""


def database_now() -> datetime:
    """The database's clock, which decides all deadlines and leases."""
    now: datetime = execute("SELECT clock_timestamp()", ()).fetchone()[0]
    return now


@dataclass(frozen=True)
class Aside:
    """What is stored with a worker's move and shown to nobody while the game runs: see `MatchMove`."""

    private: str = ""
    strategy: str = ""
    after: int | None = None
    attempts: Sequence[Mapping[str, object]] = ()


@dataclass
class MatchState:
    """A match's game after `moves` moves, with the pending moves of an incomplete joint step.

    `step` counts the complete steps, `turns` each seat's moves. Outside the lock both may be ahead of a match that was
    read earlier. A seat sees only its own turns: the number of steps would reveal secret moves of others.
    """

    game: Game
    pending: dict[Seat, Move] = field(default_factory=dict)
    moves: int = 0
    step: int = 0
    turns: Counter[Seat] = field(default_factory=Counter)

    def due(self) -> frozenset[Seat]:
        """The seats that have yet to move in this step."""
        return self.game.to_act() - self.pending.keys()


def scenario_of(match: Match) -> Scenario:
    """The scenario that a match plays."""
    return Scenario.from_dict(match.scenario)


def moves_of(match: Match, *, since: int = 0, steps: int | None = None) -> list[SeatMove]:
    """A match's moves in the order received: from number `since` on, and only of the first `steps` steps if set."""
    moves = match.moves.filter(number__gte=since)
    moves = moves if steps is None else moves.filter(step__lt=steps)
    rows = moves.order_by("number").values_list("seat", "move")
    return [SeatMove(seat=seat, move=Move.from_dict(move)) for seat, move in rows]


def fold(match: Match, *, steps: int | None = None) -> MatchState:
    """The state after all moves of the match, or after those of its first `steps` steps."""
    return catch_up(MatchState(make(scenario_of(match))), moves_of(match, steps=steps))


def catch_up(state: MatchState, moves: Sequence[SeatMove]) -> MatchState:
    """Advance a state by the moves that follow it."""
    for entry in moves:
        state.pending = advance(state.game, state.pending, entry)
        state.moves += 1
        state.step += not state.pending
        state.turns[entry.seat] += 1
    return state


class RecentStates:
    """The states of running matches after their last committed move in this process, so that the next move need not
    replay the game. Whoever takes a state owns it: it is kept again once the move has been committed or refused.
    """

    MOST = 256

    def __init__(self) -> None:
        self._states: OrderedDict[int, tuple[datetime, MatchState]] = OrderedDict()
        self._lock = Lock()

    def take(self, match_id: int) -> tuple[datetime | None, MatchState | None]:
        """Remove and return the state of a match, which may lack its newest moves, with the time at which the match was
        made: in a restored database the number may be that of another match.
        """
        with self._lock:
            return self._states.pop(match_id, (None, None))

    def keep(self, match: Match, state: MatchState) -> None:
        """Keep a state that nobody else will advance; the one unused for longest goes if there are too many."""
        with self._lock:
            self._states[match.pk] = match.created_at, state
            while len(self._states) > self.MOST:
                self._states.popitem(last=False)


STATES = RecentStates()


def viewers(scenario: Scenario) -> list[Viewer]:
    """All viewpoints with a log of their own: each seat, the spectators, and the all-seeing view for replays."""
    return [*range(len(scenario.seats)), SPECTATOR, ALL]


def viewers_of(match_id: int) -> list[Viewer]:
    """The same for a stored match, without reading its scenario, which may be invalid."""
    seats = MatchSeat.objects.filter(match=match_id).order_by("seat").values_list("seat", flat=True)
    return [*seats, SPECTATOR, ALL]


@transaction.atomic
def submit(
    *,
    match_id: int,
    seat: Seat,
    step: int,
    move: Move | Callable[[MatchState, Locked], Move],
    aside: Aside = Aside(),
    known: MatchState | None = None,
) -> MatchMove:
    """Make a seat's move in step `step` of the match; return the stored move, which may be an earlier one.

    `move` may be a function that returns the move for what is found under the lock; if it raises, nothing changes.
    `known`, an earlier state of the match, saves a full fold; it is advanced in place.
    """
    created_at, state = (None, known) if known else STATES.take(match_id)
    locked = statements.lock(match_id, seat, 0 if state is None else state.moves, database_now)
    if created_at is not None and created_at != locked.match.created_at:
        state, locked = None, statements.lock(match_id, seat, 0, database_now)
    match, moves = locked.match, locked.moves
    current = step == match.step and match.state == Match.State.RUNNING
    if state is None and current:  # whoever moved while this waited for the lock may have kept it since
        created_at, state = STATES.take(match_id)
        state = state if created_at == match.created_at else None
        moves = moves[0 if state is None else state.moves :]
    if current:
        state = catch_up(state or MatchState(make(scenario_of(match))), moves)
    pending = state is not None and current and seat in state.pending
    if (not current or pending) and (stored := match.moves.filter(step=step, seat=seat).first()):
        _keep_unchanged(match, None if known else state)
        return stored
    try:
        checked_move = _checked(match, state, seat, step, move, locked)
    except (BadInput, IllegalMove):
        _keep_unchanged(match, None if known else state)
        raise
    assert state is not None
    if known is None:  # before the hints: others who move in the same step may wait for the lock
        transaction.on_commit(partial(_keep_if_running, match, state))
    since = locked.due_since if checked_move.origin == "seat" else None
    took_s = None if since is None else max(0.0, (locked.now - since).total_seconds())
    with pipelined():
        stored, key = _append(match, state, seat, checked_move, locked.now, aside, took_s)
        whole = not state.pending  # observations change only once the step is complete
        last_rows = write_rows(match, state.game, locked.last_rows, locked.now) if whole else {}
        (stored.pk,) = key.fetchone()
    if whole:
        others_first = sorted(viewers(state.game.scenario), key=lambda viewer: viewer == seat)
        hints.send(match.pk, others_first)  # before the workers' hints: people come first
        _next_step(match, state, locked.seats, last_rows, locked.now)
    else:
        hints.send(match.pk, [seat])
        match.due.filter(seat=seat).delete()
    return stored


def _checked(
    match: Match,
    state: MatchState | None,
    seat: Seat,
    step: int,
    move: Move | Callable[[MatchState, Locked], Move],
    locked: Locked,
) -> Move:
    """The move, if the seat may make it now; else raises `IllegalMove`, or `BadInput` if it cannot be read."""
    if match.state != Match.State.RUNNING:
        raise IllegalMove("this game is not running")
    if match.paused_at is not None:
        raise IllegalMove("the game is paused by its host: move when it resumes")
    if state is None or step != match.step:
        raise IllegalMove("the game has moved on since you saw it: look again, then move")
    if seat not in state.due():
        raise IllegalMove("it is not your turn")
    checked = move if isinstance(move, Move) else move(state, locked)
    state.game.check(seat, checked)
    return checked


def _keep_unchanged(match: Match, state: MatchState | None) -> None:
    """Keep a state, if there is one, where no move is made; the match's lock must be held.

    Within another transaction it is not kept: it may contain moves that this transaction takes back.
    """
    if state is not None and not connection.savepoint_ids:
        _keep_if_running(match, state)


def _keep_if_running(match: Match, state: MatchState) -> None:
    if match.state == Match.State.RUNNING:
        STATES.keep(match, state)


def _append(
    match: Match,
    state: MatchState,
    seat: Seat,
    move: Move,
    now: datetime,
    aside: Aside = Aside(),
    took_s: float | None = None,
) -> tuple[MatchMove, CursorWrapper]:
    """Store one move, and advance the state by it; return the move, and the cursor that has its key."""
    appended = MatchMove(
        match=match,
        number=state.moves,
        step=match.step,
        seat=seat,
        move=move.to_dict(),
        private=aside.private,
        strategy=aside.strategy,
        after=aside.after,
        attempts=[dict(attempt) for attempt in aside.attempts],
        took_s=took_s,
        received_at=now,
    )
    key = statements.append(appended)
    match.step = catch_up(state, [SeatMove(seat=seat, move=move)]).step
    return appended, key


def write_rows(match: Match, game: Game, last_rows: Mapping[Viewer, int], now: datetime) -> Mapping[Viewer, int]:
    """Append each viewer's messages after the last one; return the number of each viewer's last row."""
    messages = {viewer: game.observe(viewer).messages for viewer in viewers(game.scenario)}
    new = [
        (viewer, number, message)
        for viewer, observed in messages.items()
        for number, message in enumerate(observed, 1)
        if number > last_rows.get(viewer, 0)
    ]
    statements.write_rows(match, new, now)
    return {viewer: len(observed) for viewer, observed in messages.items()}


def _next_step(
    match: Match, state: MatchState, seats: Sequence[MatchSeat], last_rows: Mapping[Viewer, int], now: datetime
) -> None:
    """Finish a complete step: let the tool seat move, end the game or write the due seats, save the match."""
    tool = state.game.scenario.tool_seat
    searching = pending_search(state.game) is not None
    while tool in state.due() and not searching:  # there is no judge at the table: the tool seat plays its default
        _append(match, state, tool, state.game.default(tool), now)
        last_rows = write_rows(match, state.game, last_rows, now)
    due: list[DueSeat] = []
    if searching:
        due = [_due_search(match, tool, now)]
    elif state.game.to_act():
        due = _due_seats(match, seats, state.due(), now)
    else:
        _finish(match, seats, state.game, now)
    statements.save_step(match, due)
    for row in due:
        if row.hint_at is not None:
            queue.send(queue.PLAY, row.pk, delay=(row.hint_at - HINT_EVERY - now).total_seconds())


def _finish(match: Match, seats: Sequence[MatchSeat], game: Game, now: datetime) -> None:
    """Store the result of a game that is over."""
    match.state = Match.State.FINISHED
    match.ended_at = now
    match.returns = {str(seat): value for seat, value in game.returns().items()}
    match.metrics = dict(game.metrics())
    match.seat_metrics = {str(seat): dict(metrics) for seat, metrics in game.seat_metrics().items()}
    match.roles = list(game.roles())
    if any(seat.deployment_id is not None for seat in seats):
        queue.send(queue.PROBE, match.pk)
    match.save(update_fields=["state", "ended_at", "returns", "metrics", "seat_metrics", "roles"])


def pending_search(game: Game) -> Search | None:
    """The search whose result the game waits for; None if there is none."""
    return game.pending_search() if isinstance(game, SearchingGame) else None


def _due_search(match: Match, tool: Seat, now: datetime) -> DueSeat:
    """The tool seat, for which a worker searches. Without a result in time, the clock plays a failed search."""
    until = now + timedelta(seconds=SEARCH_SECONDS)
    return DueSeat(match=match, seat=tool, step=match.step, deadline=until, hint_at=now + HINT_EVERY, created_at=now)


def _due_seats(match: Match, sittings: Sequence[MatchSeat], due: frozenset[Seat], now: datetime) -> list[DueSeat]:
    """The seats that must move, with their clocks started and the time of the workers' next hint.

    A model that is not ready has no deadline until it is; where players must stay hidden, it has the same deadline as
    people. A person at a table with one seat has none.
    """
    seats = {seat.seat: seat for seat in sittings}
    models = [model for number in due for model in seats[number].deployments]
    ready = serving.request_all(deployments=models) if models else set()
    blind = pace.blind(match, sittings)
    seconds = _paces(match, [seats[number] for number in due], blind=blind)
    match.step_until = now + timedelta(seconds=match.deadline_s)
    rows = []
    for number in sorted(due):
        sitting = seats[number]
        sleeps = any(model.pk not in ready for model in sitting.deployments)
        alone = match.task and not sitting.by_worker  # nobody waits for them
        deadline = None if alone or (sleeps and not blind) else match.step_until
        by_worker = sitting.by_worker and deadline is not None
        until = now + timedelta(seconds=seconds[number]) if by_worker and number in seconds else None
        wait = timedelta(0) if until is None else max(timedelta(0), until - pace.AHEAD - now)
        row = DueSeat(
            match=match,
            seat=number,
            step=match.step,
            deadline=deadline,
            hint_at=now + wait + HINT_EVERY if by_worker else None,
            not_before=until,
            created_at=now,
        )
        rows.append(row)
    return rows


def _paces(match: Match, due: Sequence[MatchSeat], *, blind: bool) -> dict[Seat, float]:
    """The delay in seconds of each due seat that a worker plays; empty if none has to wait."""
    workers = [seat.seat for seat in due if seat.by_worker]
    if blind and workers:
        times = pace.times_of_people(match.game)
        return {seat: pace.draw(match, seat, times) for seat in workers}
    watched = match.task and match.beside_id is None
    many = len(match.scenario["seats"]) > 2
    return {seat: pace.reading_time(match, seat) for seat in workers} if many or watched else {}


def _draw_seats(match: Match) -> None:
    """Shuffle the seats by the match's secret seed, so that the order of arrival reveals nothing."""
    seats = list(match.seats.order_by("seat"))
    names = match.scenario["seats"]
    match.seats.update(seat=F("seat") + len(seats))  # avoids conflicts with the unique constraint
    for number, seat in enumerate(rng(match.scenario["seed"], "seats").sample(seats, len(seats))):
        seat.seat, seat.name = number, names[number]
    MatchSeat.objects.bulk_update(seats, ["seat", "name"])


def begin(match: Match) -> None:
    """Start a locked match whose seats are all taken: write its first rows and due seats.

    Shuffled seats are drawn at this point: before the game everybody can see who arrives.
    """
    if match.shuffled:
        _draw_seats(match)
    match.state = Match.State.RUNNING
    match.started_at = database_now()
    match.save(update_fields=["state", "started_at"])
    match.seats.filter(kind=MatchSeat.Kind.PERSON).update(seen_at=match.started_at)
    start = fold(match)
    last_rows = write_rows(match, start.game, {}, match.started_at)
    hints.send(match.pk, viewers(start.game.scenario))
    _next_step(match, start, statements.seats_of(match), last_rows, match.started_at)


@transaction.atomic
def time_out(*, due_id: int) -> MatchMove | None:
    """Play the default of a seat whose deadline has passed, as a time-out; None if it is not due."""
    due = DueSeat.objects.filter(pk=due_id).first()
    if due is None:
        return None
    match = Match.objects.select_for_update().get(pk=due.match_id)
    due = match.due.filter(pk=due_id, deadline__lte=database_now()).first()
    if due is None or match.state != Match.State.RUNNING or match.paused_at is not None:
        return None
    move = fold(match).game.default(due.seat).model_copy(update={"origin": "timeout"})
    return submit(match_id=match.pk, seat=due.seat, step=due.step, move=move)


@transaction.atomic
def abort(*, match_id: int, why: str) -> None:
    """End a match without a result; does nothing if it is over."""
    match = Match.objects.select_for_update().get(pk=match_id)
    if match.over:
        return
    match.state, match.aborted_why, match.ended_at = Match.State.ABORTED, why[:400], database_now()
    match.save(update_fields=["state", "aborted_why", "ended_at"])
    match.due.all().delete()
    hints.send(match.pk, viewers_of(match.pk))
