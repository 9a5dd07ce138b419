"""Seats that no person sits at: claimed by a worker, answered by a model or a scripted player, never late.

A claim is a lease that is renewed while the answer is awaited; whoever holds the newest fence may answer. A reply that
cannot be read or is illegal is shown to the model again, at most twice; then the game's default is played.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import F, Q

from training.engines.base import Sampling
from training.errors import IllegalMove
from training.games import Game
from training.games.actions import TAG, tag, write
from training.records import Move, Observation, Origin, Scenario, Seat
from training.seeding import derive
from training.text.parsing import parse
from training.text.refusals import Refusal, with_refusals
from webapp.arena.models import DueSeat, Match
from webapp.arena.play import services
from webapp.serving import services as serving
from webapp.serving.models import Deployment

LEASE = timedelta(seconds=15)
STARTS_WITHIN = timedelta(minutes=15)
"""A match whose model has not started by then ends without a result."""
RETRIES = 2
SAMPLING = Sampling(temperature=0.8, top_p=0.95, max_tokens=256)
"""How a model is sampled for its moves; no other parameter is ever sent."""


@dataclass(frozen=True)
class Claim:
    """A due seat in one worker's hands, with all that its player may know.

    `fold` is the match as it was at the claim until `answer` has made the move; `seen` is what the seat was shown.
    """

    due_id: int
    fence: int
    match_id: int
    seat: Seat
    step: int
    deadline: datetime
    now: datetime
    not_before: datetime | None
    fold: services.MatchState
    seen: Observation
    deployment: Deployment | None
    scripted: str
    past: tuple[Refusal, ...]
    seed: int

    @property
    def game(self) -> Game:
        """The match's game."""
        return self.fold.game

    @property
    def scenario(self) -> Scenario:
        """What is played."""
        return self.game.scenario

    @property
    def seconds(self) -> float:
        """Time for an answer, seen from the claim; a little is kept back to write the fallback down in time."""
        return (self.deadline - self.now).total_seconds() - 0.5

    @property
    def wait(self) -> float:
        """Seconds from the claim until the move may be made."""
        return 0.0 if self.not_before is None else max(0.0, (self.not_before - self.now).total_seconds())


@transaction.atomic
def claim(*, due_id: int) -> Claim | None:
    """Take a due seat for `LEASE`, or None: it is done, somebody else's, a person's, or its model sleeps."""
    now = services.database_now()
    due = (
        DueSeat.objects.select_for_update(skip_locked=True, of=("self",))
        .filter(Q(claimed_until=None) | Q(claimed_until__lt=now), pk=due_id, deadline__isnull=False)
        .filter(match__paused_at=None)
        .select_related("match")
        .first()
    )
    if due is None or due.deadline is None:
        return None
    sitting = due.match.seats.select_related("deployment__checkpoint", "deployment__remote").get(seat=due.seat)
    if not sitting.by_worker:
        return None
    due.claimed_until, due.fence = now + LEASE, due.fence + 1
    due.save(update_fields=["claimed_until", "fence"])
    fold = services.fold(due.match)
    return Claim(
        due_id=due.pk,
        fence=due.fence,
        match_id=due.match_id,
        seat=due.seat,
        step=due.step,
        deadline=due.deadline,
        now=now,
        not_before=due.not_before,
        fold=fold,
        seen=fold.game.observe(due.seat),
        deployment=sitting.deployment,
        scripted=sitting.scripted,
        past=_past(due.match, due.seat) if sitting.deployment is not None else (),
        seed=derive(fold.game.scenario.seed, "table", due.match_id, due.seat, due.step),
    )


def _past(match: Match, seat: Seat) -> tuple[Refusal, ...]:
    """The seat's refused replies of earlier steps: they are part of what it has seen."""
    stored = match.moves.filter(seat=seat).order_by("number").values_list("attempts", flat=True)
    return tuple(
        Refusal(seat=seat, after=attempt["after"], reply=attempt["reply"], why=attempt["error"])
        for attempts in stored
        for attempt in attempts
        if attempt["reply"]
    )


def can_be_asked(model: Deployment) -> bool:
    """Whether a model answers now; remote ones always count as ready."""
    return model.remote_id is not None or model.state == Deployment.State.READY


def ready_model(deployment_id: int) -> Deployment | None:
    """A model as it is now; None while it cannot be asked."""
    found = Deployment.objects.select_related("checkpoint", "remote").get(pk=deployment_id)
    return found if can_be_asked(found) else None


def renew(*, held: Claim) -> bool:
    """Keep a claim; False if it was lost."""
    mine = DueSeat.objects.filter(pk=held.due_id, fence=held.fence)
    return bool(mine.update(claimed_until=services.database_now() + LEASE))


def _as_people_write(move: Move, seen: Observation) -> Move:
    """The same move with its tag after the words, where a person's form puts it; unchanged if it has none."""
    action = next(action for action in seen.actions if action.name == move.action)
    if not TAG.search(move.text) or action.text == "private":
        return move
    written = tag(action, move.args)
    words = move.text.replace(written, " ", 1)
    try:
        return move.model_copy(update={"text": write(action, move.args, words)})
    except ValueError:  # a tag among the words: it stays as it was read
        return move


@dataclass(frozen=True)
class Answering:
    """How far an answer has come: what was refused or went wrong so far, and the move once there is one."""

    held: Claim
    attempts: tuple[dict[str, Any], ...] = ()
    refused: tuple[Refusal, ...] = field(default=())
    move: Move | None = None
    private: str = ""

    @property
    def done(self) -> bool:
        """Whether nobody is asked any more."""
        return self.move is not None or len(self.attempts) > RETRIES

    def observation(self) -> Observation:
        """What its player is shown: as in training, its own refused replies are part of it."""
        return with_refusals(self.held.seen, [*self.held.past, *self.refused])

    def heard(self, reply: str) -> Answering:
        """After a reply: a move, or one more refusal. A NUL character, which no row can hold, is replaced."""
        seen, reply = self.held.seen, reply.replace("\x00", "\ufffd")
        try:
            move, private = parse(reply, seen)
            move = _as_people_write(move, seen)
            self.held.game.check(self.held.seat, move)
        except IllegalMove as error:
            refusal = Refusal(seat=self.held.seat, after=len(seen.messages), reply=reply, why=str(error))
            noted = {"reply": reply, "error": str(error), "after": refusal.after}
            return replace(self, attempts=(*self.attempts, noted), refused=(*self.refused, refusal))
        return replace(self, move=move, private=private)

    def failed(self, why: str) -> Answering:
        """After a failure that is not the model's."""
        noted = {"reply": "", "error": why, "after": len(self.held.seen.messages)}
        return replace(self, attempts=(*self.attempts, noted))


def answer(*, answering: Answering, late: bool = False) -> None:
    """Make the move, or the game's default if there is none: as a time-out if it came too late.

    Raises `IllegalMove`, and changes nothing, if somebody else holds the claim by now or the match has moved on.
    """
    held = answering.held
    origin: Origin = "timeout" if late else "default"
    move = answering.move or held.game.default(held.seat).model_copy(update={"origin": origin})

    def still_ours(
        now: services.MatchState,
    ) -> Move:  # asked under the match's lock, as whoever takes the seat holds it
        if not DueSeat.objects.filter(pk=held.due_id, fence=held.fence).exists():
            raise IllegalMove("somebody else answers for this seat by now")
        return move

    services.submit(
        match_id=held.match_id,
        seat=held.seat,
        step=held.step,
        move=still_ours,
        private=answering.private,
        attempts=answering.attempts,
        known=held.fold,
    )


def tell_workers(*, limit: int = 200) -> list[int]:
    """Due seats whose hint was lost, or whose worker died: put off their next hint, return their ids."""
    now = services.database_now()
    with transaction.atomic():
        found = list(
            DueSeat.objects.select_for_update(skip_locked=True, of=("self",))
            .filter(Q(claimed_until=None) | Q(claimed_until__lt=now), hint_at__lte=now, match__paused_at=None)
            .order_by("hint_at")
            .values_list("pk", flat=True)[:limit]
        )
        DueSeat.objects.filter(pk__in=found).update(hint_at=now + services.HINT_EVERY)
    return found


def start_clocks(*, limit: int = 200) -> tuple[list[tuple[int, int]], list[tuple[int, str]]]:
    """Seats that waited for a model: start the clocks of those that are ready and return them, each with its match;
    with them, the (match, reason) pairs of those whose model could not be started.
    """
    now = services.database_now()
    with transaction.atomic():
        waiting = DueSeat.objects.filter(
            deadline=None,
            match__state=Match.State.RUNNING,
            match__paused_at=None,
            match__seats__seat=F("seat"),
            match__seats__deployment__isnull=False,
        )
        states = waiting.values_list(
            "pk",
            "match_id",
            "match__deadline_s",
            "match__seats__deployment__state",
            "created_at",
        )[:limit]
        ready, broken = [], []
        for due_id, match_id, seconds, state, since in states:
            if state == Deployment.State.READY:
                ready.append((due_id, match_id))
                DueSeat.objects.filter(pk=due_id, deadline=None).update(
                    deadline=now + timedelta(seconds=seconds), hint_at=now + services.HINT_EVERY
                )
            elif state == Deployment.State.FAILED:
                broken.append((match_id, "a model could not be started"))
            elif since < now - STARTS_WITHIN:
                broken.append((match_id, f"a model did not start within {STARTS_WITHIN.seconds // 60} minutes"))
    return ready, broken


def request_stopped() -> int:
    """Request models again that are cold although a seat waits for them: they yielded their slot meanwhile."""
    cold = Deployment.objects.filter(
        state=Deployment.State.COLD,
        requested_at=None,
        match_seats__match__due__deadline=None,
        match_seats__match__due__seat=F("match_seats__seat"),
    ).distinct()
    for deployment in cold:
        serving.request(deployment=deployment)
    return len(cold)
