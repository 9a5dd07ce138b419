"""The one way a move gets into a match, whoever makes it; and what follows from it.

`submit` locks the match, appends the move, folds the game anew, writes each viewer's new rows, writes down who is due
next, and sends hints after commit. It raises `IllegalMove` (with the reason, for the seat) and then changes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db import connection, transaction
from django.db.models import F, Max

from training.errors import IllegalMove
from training.games import Game, advance, make
from training.records import ALL, SPECTATOR, Move, Scenario, Seat, SeatMove, Viewer
from training.seeding import rng
from webapp.arena import hints
from webapp.arena.models import DueSeat, Match, MatchMove, MatchSeat, ViewerRow
from webapp.arena.play import pace
from webapp.core import queue
from webapp.serving import services as serving

HINT_EVERY = timedelta(seconds=5)
"""How long a worker has to claim a due seat before it is told again."""


def database_now() -> datetime:
    """The database's clock: the only one that deadlines and leases are judged by."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        now: datetime = cursor.fetchone()[0]
    return now


@dataclass
class MatchState:
    """A match's game as its `moves` moves have made it, with those of a joint step that is not complete yet.

    `step` counts the complete steps, `turns` each seat's moves. Outside the lock both may be ahead of a match that was
    read before. A seat is told only its own turns: the number of steps would tell what others did in secret.
    """

    game: Game
    pending: dict[Seat, Move] = field(default_factory=dict)
    moves: int = 0
    step: int = 0
    turns: Counter[Seat] = field(default_factory=Counter)

    def due(self) -> frozenset[Seat]:
        """The seats from which a move is still missing."""
        return self.game.to_act() - self.pending.keys()


def scenario_of(match: Match) -> Scenario:
    """The scenario that a match plays."""
    return Scenario.from_dict(match.scenario)


def moves_of(match: Match, *, since: int = 0, steps: int | None = None) -> list[SeatMove]:
    """A match's moves in the order received: from number `since` on, of its first `steps` steps if that is given."""
    chosen = match.moves.filter(number__gte=since)
    chosen = chosen if steps is None else chosen.filter(step__lt=steps)
    rows = chosen.order_by("number").values_list("seat", "move")
    return [SeatMove(seat=seat, move=Move.from_dict(move)) for seat, move in rows]


def fold(match: Match, *, steps: int | None = None) -> MatchState:
    """The match's game as its moves have made it, or those of its first `steps` steps."""
    return catch_up(MatchState(make(scenario_of(match))), moves_of(match, steps=steps))


def catch_up(now: MatchState, moves: Sequence[SeatMove]) -> MatchState:
    """The same fold, advanced by the moves that follow it."""
    for entry in moves:
        now.pending = advance(now.game, now.pending, entry)
        now.moves += 1
        now.step += not now.pending
        now.turns[entry.seat] += 1
    return now


def viewers(scenario: Scenario) -> list[Viewer]:
    """Everybody who has a log of their own: each seat, the public, and the all-seeing view for afterwards."""
    return [*range(len(scenario.seats)), SPECTATOR, ALL]


def viewers_of(match_id: int) -> list[Viewer]:
    """The same for a stored match, whose scenario is not read: it may be what is broken."""
    seats = MatchSeat.objects.filter(match=match_id).order_by("seat").values_list("seat", flat=True)
    return [*seats, SPECTATOR, ALL]


def step_of(*, match_id: int, seat: Seat, turn: int) -> int:
    """The step of the match in which a seat has its own turn number `turn`, from 0; the newest is that of now.

    Raises `IllegalMove` for a turn that has not come yet.
    """
    # the step of now is read first: by the time that the seat's own are, it may be that of a later turn
    now: int = Match.objects.values_list("step", flat=True).get(pk=match_id)
    steps = list(MatchMove.objects.filter(match=match_id, seat=seat).order_by("number").values_list("step", flat=True))
    if turn > len(steps):
        raise IllegalMove("the game has moved on since you saw it: look again, then move")
    return (*steps, now)[turn]


@transaction.atomic
def submit(
    *,
    match_id: int,
    seat: Seat,
    step: int,
    move: Move | Callable[[MatchState], Move],
    private: str = "",
    attempts: Sequence[Mapping[str, object]] = (),
    known: MatchState | None = None,
) -> MatchMove:
    """Make a seat's move in step `step` of the match; return what is stored for it, which may be an earlier one.

    `move` may be what reads the move from the match as it stands under the lock; what it raises changes nothing.
    `known`, an earlier fold of the match, saves folding it anew; it is advanced and not to be used afterwards.
    """
    match = Match.objects.select_for_update().get(pk=match_id)
    now = None
    if step == match.step and match.state == Match.State.RUNNING:
        now = fold(match) if known is None else catch_up(known, moves_of(match, since=known.moves))
    if (now is None or seat in now.pending) and (stored := match.moves.filter(step=step, seat=seat).first()):
        return stored
    if match.state != Match.State.RUNNING:
        raise IllegalMove("this game is not running")
    if match.paused_at is not None:
        raise IllegalMove("the game is paused by its host: move when it goes on")
    if now is None:
        raise IllegalMove("the game has moved on since you saw it: look again, then move")
    if seat not in now.due():
        raise IllegalMove("it is not your turn")
    made = move if isinstance(move, Move) else move(now)
    now.game.check(seat, made)
    stored = _append(match, now, seat, made, private, attempts, _seconds_taken(match, seat, made))
    if now.pending:  # nobody is shown anything before the step is complete
        hints.send(match.pk, [seat])
        match.due.filter(seat=seat).delete()
    else:
        write_rows(match, now.game)
        hints.send(match.pk, viewers(now.game.scenario))  # before the hints to workers: people wait for theirs
        _next_step(match, now)
    return stored


def _append(
    match: Match,
    now: MatchState,
    seat: Seat,
    move: Move,
    private: str = "",
    attempts: Sequence[Mapping[str, object]] = (),
    took_s: float | None = None,
) -> MatchMove:
    """Store one move and advance the fold by it."""
    stored = MatchMove.objects.create(
        match=match,
        number=now.moves,
        step=match.step,
        seat=seat,
        move=move.to_dict(),
        private=private,
        attempts=[dict(attempt) for attempt in attempts],
        took_s=took_s,
    )
    match.step = catch_up(now, [SeatMove(seat=seat, move=move)]).step
    return stored


def _seconds_taken(match: Match, seat: Seat, move: Move) -> float | None:
    """How long a person has taken for a move of their own; None for everybody else's."""
    if move.origin != "seat":
        return None
    since = match.due.filter(seat=seat, hint_at=None).values_list("created_at", flat=True).first()
    return None if since is None else max(0.0, (database_now() - since).total_seconds())


def write_rows(match: Match, game: Game) -> None:
    """Append what each viewer has been shown since."""
    held = dict(match.rows.values_list("viewer").annotate(last=Max("number")))
    new = [
        ViewerRow(match=match, viewer=viewer, number=number, message=message.to_dict(), step=match.step)
        for viewer in viewers(game.scenario)
        for number, message in enumerate(game.observe(viewer).messages, 1)
        if number > held.get(viewer, 0)
    ]
    ViewerRow.objects.bulk_create(new)


def _next_step(match: Match, now: MatchState) -> None:
    """After a complete step: let the tool seat pass, then end the game or write down who is due. Save the match."""
    tool = now.game.scenario.tool_seat
    while tool in now.due():  # no judge sits at the table, so the tool reports what the game takes for granted
        _append(match, now, tool, now.game.default(tool))
        write_rows(match, now.game)
    match.due.all().delete()
    if now.game.to_act():
        _write_due(match, now.due())
    else:
        match.state = Match.State.FINISHED
        match.ended_at = database_now()
        match.returns = {str(seat): value for seat, value in now.game.returns().items()}
        match.metrics = dict(now.game.metrics())
        match.seat_metrics = {str(seat): dict(metrics) for seat, metrics in now.game.seat_metrics().items()}
        match.roles = list(now.game.roles())
    ended = ["ended_at", "returns", "metrics", "seat_metrics", "roles"]
    match.save(update_fields=["step", "state", "step_until", *ended])


def _write_due(match: Match, due: frozenset[Seat]) -> None:
    """Write down the seats that must move now, start their clocks, and tell the workers of those that are no people.

    A model that sleeps has no deadline until it is ready; where somebody must not know that a model sits there, it has
    everybody's. The match is the caller's to save.
    """
    seats = {seat.seat: seat for seat in match.seats.select_related("deployment")}
    models = [model for number in due if (model := seats[number].deployment) is not None]
    ready = serving.request_all(deployments=models) if models else set()
    blind = pace.blind(match, list(seats.values()))
    seconds = _paces(match, [seats[number] for number in due], blind=blind)
    now = database_now()
    match.step_until = now + timedelta(seconds=match.deadline_s)
    rows, waits = [], []
    for number in sorted(due):
        sitting = seats[number]
        sleeps = sitting.deployment_id is not None and sitting.deployment_id not in ready
        deadline = None if sleeps and not blind else match.step_until
        by_worker = sitting.by_worker and deadline is not None
        until = now + timedelta(seconds=seconds[number]) if by_worker and number in seconds else None
        waits.append(timedelta(0) if until is None else max(timedelta(0), until - pace.AHEAD - now))
        hint_at = now + waits[-1] + HINT_EVERY if by_worker else None
        row = DueSeat(match=match, seat=number, step=match.step, deadline=deadline, hint_at=hint_at, not_before=until)
        rows.append(row)
    for row, wait in zip(DueSeat.objects.bulk_create(rows), waits, strict=True):
        if row.hint_at is not None:
            queue.send(queue.PLAY, row.pk, delay=wait.total_seconds())


def _paces(match: Match, due: Sequence[MatchSeat], *, blind: bool) -> dict[Seat, float]:
    """The seconds that each worker's seat among those due takes for its move; empty where none has to wait."""
    workers = [seat.seat for seat in due if seat.by_worker]
    if blind and workers:
        known = pace.times_of_people(match.game)
        return {seat: pace.draw(match, seat, known) for seat in workers}
    many = len(match.scenario["seats"]) > 2
    return {seat: pace.reading_time(match, seat) for seat in workers} if many else {}


def _draw_seats(match: Match) -> None:
    """Give everybody another seat, drawn from the match's secret seed: who came when, and to which, tells nothing."""
    seats = list(match.seats.order_by("seat"))
    names = match.scenario["seats"]
    match.seats.update(seat=F("seat") + len(seats))  # out of the way: nobody sits where another still does
    for number, seat in enumerate(rng(match.scenario["seed"], "seats").sample(seats, len(seats))):
        seat.seat, seat.name = number, names[number]
    MatchSeat.objects.bulk_update(seats, ["seat", "name"])


def begin(match: Match) -> None:
    """Start a locked match whose seats are all taken: first rows, first clocks.

    Where seats are drawn by chance, they are drawn now: before the game it can be seen who comes when.
    """
    if match.shuffled:
        _draw_seats(match)
    match.state = Match.State.RUNNING
    match.started_at = database_now()
    match.save(update_fields=["state", "started_at"])
    match.seats.filter(kind=MatchSeat.Kind.PERSON).update(seen_at=match.started_at)
    start = fold(match)
    write_rows(match, start.game)
    hints.send(match.pk, viewers(start.game.scenario))
    _next_step(match, start)


@transaction.atomic
def time_out(*, due_id: int) -> MatchMove | None:
    """Play the default of a seat whose deadline has passed, as a time-out; None if it is not (or no longer) due."""
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
    """End a match without a result; one that is over stays as it is."""
    match = Match.objects.select_for_update().get(pk=match_id)
    if match.over:
        return
    match.state, match.aborted_why, match.ended_at = Match.State.ABORTED, why[:400], database_now()
    match.save(update_fields=["state", "aborted_why", "ended_at"])
    match.due.all().delete()
    hints.send(match.pk, viewers_of(match.pk))
