"""Seats of models and scripted players: claimed by a worker and answered before the deadline.

A claim is a lease that the worker renews while it waits for the answer; only the newest fence may answer. A reply that
cannot be parsed or is illegal is returned to the model at most twice; then the game's default is played.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
from training.run_sections import SpeakerSection
from training.seeding import derive
from training.text.parsing import parse
from training.text.refusals import Refusal, with_refusals
from webapp.arena.models import DueSeat, Match, MatchSeat
from webapp.arena.play import services
from webapp.arena.play.statements import Locked
from webapp.serving import services as serving
from webapp.serving.models import Deployment

LEASE = timedelta(seconds=15)
STARTS_WITHIN = timedelta(minutes=15)
"""A match is aborted if its model has not started within this time."""
RETRIES = 2
SAMPLING = Sampling(temperature=0.8, top_p=0.95, max_tokens=256)
"""The sampling parameters of moves; no others are sent."""


EarlierStrategy = tuple[int, str]
"""How many messages the seat had read, with its refused replies, and the strategy that was written then."""
LONGEST_STRATEGY = 4000
"""Characters of a strategy that are stored."""


@dataclass(frozen=True)
class Claim:
    """A due seat claimed by a worker, with everything that its player may know.

    `state` is the match at the time of the claim; `answer` advances it. `observation` is the seat's view of it. `past`
    are the seat's refused replies of earlier steps, and `earlier` its strategies. `form` is None where none are
    written.
    """

    due_id: int
    fence: int
    match_id: int
    seat: Seat
    step: int
    deadline: datetime
    now: datetime
    not_before: datetime | None
    state: services.MatchState
    observation: Observation
    deployment: Deployment | None
    speaker: Deployment | None
    form: SpeakerSection | None
    scripted: str
    past: tuple[Refusal, ...]
    earlier: tuple[EarlierStrategy, ...]
    seed: int

    @property
    def game(self) -> Game:
        """The match's game."""
        return self.state.game

    @property
    def scenario(self) -> Scenario:
        """The match's scenario."""
        return self.game.scenario

    @property
    def seconds(self) -> float:
        """Seconds for an answer, from the claim on; half a second is reserved for writing the default."""
        return (self.deadline - self.now).total_seconds() - 0.5

    @property
    def wait(self) -> float:
        """Seconds from the claim until the move may be made."""
        return 0.0 if self.not_before is None else max(0.0, (self.not_before - self.now).total_seconds())


def unclaimed(due_id: int, now: datetime) -> DueSeat | None:
    """The locked due seat with its match; None if it is done or claimed, its clock stands, or its model is cold."""
    free = Q(claimed_until=None) | Q(claimed_until__lt=now)
    due = DueSeat.objects.select_for_update(skip_locked=True, of=("self",)).filter(free, pk=due_id)
    return due.filter(deadline__isnull=False, match__paused_at=None).select_related("match").first()


def lease(due: DueSeat, now: datetime) -> None:
    """Claim a locked due seat for `LEASE`; answers to earlier claims are refused from now on."""
    due.claimed_until, due.fence = now + LEASE, due.fence + 1
    due.save(update_fields=["claimed_until", "fence"])


@transaction.atomic
def claim(*, due_id: int) -> Claim | None:
    """Claim a due seat for `LEASE`; None if it is done, claimed by another worker, a person's, or its model is cold."""
    now = services.database_now()
    due = unclaimed(due_id, now)
    if due is None or due.deadline is None:
        return None
    sitting = due.match.seats.named().filter(seat=due.seat).first()
    if sitting is None or not sitting.by_worker:  # the tool seat is claimed by `searches`
        return None
    lease(due, now)
    state = services.fold(due.match)
    past, earlier = _past(due.match, due.seat) if sitting.deployment is not None else ((), ())
    return Claim(
        due_id=due.pk,
        fence=due.fence,
        match_id=due.match_id,
        seat=due.seat,
        step=due.step,
        deadline=due.deadline,
        now=now,
        not_before=due.not_before,
        state=state,
        observation=state.game.observe(due.seat),
        deployment=sitting.deployment,
        speaker=sitting.speaker,
        form=SpeakerSection.from_dict(sitting.form) if sitting.form else None,
        scripted=sitting.scripted,
        past=past,
        earlier=earlier,
        seed=derive(state.game.scenario.seed, "table", due.match_id, due.seat, due.step),
    )


def _past(match: Match, seat: Seat) -> tuple[tuple[Refusal, ...], tuple[EarlierStrategy, ...]]:
    """The seat's refused replies and its strategies of earlier steps, which are part of its context."""
    past: list[Refusal] = []
    earlier: list[EarlierStrategy] = []

    def add(after: int, strategy: str) -> None:
        earlier.append((after + sum(len(refusal.messages()) for refusal in past), strategy))

    for move in match.moves.filter(seat=seat).order_by("number").only("attempts", "strategy", "after"):
        for attempt in move.attempts:
            if "strategy" in attempt:
                add(attempt["after"], attempt["strategy"])
            past += refusals(seat, [attempt])
        if move.after is not None:
            add(move.after, move.strategy)
    return tuple(past), tuple(earlier)


def refusals(seat: Seat, attempts: Sequence[Mapping[str, Any]]) -> list[Refusal]:
    """The refused replies among a stored move's attempts; failures outside the model have no reply."""
    return [
        Refusal(seat=seat, after=attempt["after"], reply=attempt["reply"], why=attempt["error"])
        for attempt in attempts
        if attempt["reply"]
    ]


def can_be_asked(model: Deployment) -> bool:
    """Whether a model is ready; remote models always are."""
    return model.remote_id is not None or model.state == Deployment.State.READY


def ready_model(deployment_id: int) -> Deployment | None:
    """The reloaded model; None while it is not ready."""
    model = Deployment.objects.select_related("checkpoint", "remote").get(pk=deployment_id)
    return model if can_be_asked(model) else None


def renew(*, claim: Claim) -> bool:
    """Renew a claim; False if it was lost."""
    claimed = DueSeat.objects.filter(pk=claim.due_id, fence=claim.fence)
    return bool(claimed.update(claimed_until=services.database_now() + LEASE))


def _as_people_write(move: Move, observation: Observation) -> Move:
    """The same move with its tag after the text, as in a person's move; unchanged if it has none."""
    action = next(action for action in observation.actions if action.name == move.action)
    if not TAG.search(move.text) or action.text == "private":
        return move
    action_tag = tag(action, move.args)
    words = move.text.replace(action_tag, " ", 1)
    try:
        return move.model_copy(update={"text": write(action, move.args, words)})
    except ValueError:  # the text contains another tag: keep the move as parsed
        return move


@dataclass(frozen=True)
class Answering:
    """An answer in progress: the refusals and failures so far, and the move once there is one."""

    claim: Claim
    attempts: tuple[dict[str, Any], ...] = ()
    refused: tuple[Refusal, ...] = field(default=())
    strategies: tuple[EarlierStrategy, ...] = ()
    move: Move | None = None
    private: str = ""

    @property
    def done(self) -> bool:
        """Whether there is a move, or no retry is left."""
        return self.move is not None or len(self.attempts) > RETRIES

    def observation(self) -> Observation:
        """The observation sent to the player; as in training, it includes the player's refused replies."""
        return with_refusals(self.claim.observation, [*self.claim.past, *self.refused])

    @property
    def earlier(self) -> list[EarlierStrategy]:
        """The seat's strategies so far."""
        return [*self.claim.earlier, *self.strategies]

    def answered(self, reply: str, strategy: str = "") -> Answering:
        """Process a reply: a move, or one more refusal. NUL characters, which the database rejects, are replaced."""
        observation, reply = self.claim.observation, reply.replace("\x00", "\ufffd")
        advice = {} if self.claim.form is None else {"strategy": strategy.replace("\x00", "\ufffd")[:LONGEST_STRATEGY]}
        written = tuple((len(self.observation().messages), text) for text in advice.values())
        advised = replace(self, strategies=(*self.strategies, *written))
        try:
            move, private = parse(reply, observation)
            move = _as_people_write(move, observation)
            self.claim.game.check(self.claim.seat, move)
        except IllegalMove as error:
            refusal = Refusal(seat=self.claim.seat, after=len(observation.messages), reply=reply, why=str(error))
            attempt = {"reply": reply, "error": str(error), "after": refusal.after, **advice}
            return replace(advised, attempts=(*self.attempts, attempt), refused=(*self.refused, refusal))
        return replace(advised, move=move, private=private)

    @property
    def aside(self) -> services.Aside:
        """What is stored with the move."""
        if self.move is None or self.claim.form is None:
            return services.Aside(private=self.private, attempts=self.attempts)
        read = len(self.claim.observation.messages)
        return services.Aside(self.private, self.strategies[-1][1], read, self.attempts)

    def failed(self, why: str) -> Answering:
        """Record a failure outside the model."""
        attempt = {"reply": "", "error": why, "after": len(self.claim.observation.messages)}
        return replace(self, attempts=(*self.attempts, attempt))


def while_claimed(due_id: int, fence: int, move: Move) -> Callable[[services.MatchState, Locked], Move]:
    """For `services.submit`: the move, or `IllegalMove` if the claim does not hold any more under the match's lock."""

    def still_ours(state: services.MatchState, locked: Locked) -> Move:
        if not DueSeat.objects.filter(pk=due_id, fence=fence).exists():
            raise IllegalMove("another worker has claimed this seat")
        return move

    return still_ours


def answer(*, answering: Answering, late: bool = False) -> None:
    """Make the move, or the game's default if there is none: as a time-out if `late`.

    Raises `IllegalMove` and changes nothing if the claim was lost or the match has moved on.
    """
    claim = answering.claim
    origin: Origin = "timeout" if late else "default"
    move = answering.move or claim.game.default(claim.seat).model_copy(update={"origin": origin})
    services.submit(
        match_id=claim.match_id,
        seat=claim.seat,
        step=claim.step,
        move=while_claimed(claim.due_id, claim.fence, move),
        aside=answering.aside,
        known=claim.state,
    )


def tell_workers(*, limit: int = 200) -> list[int]:
    """Return the ids of due seats whose hint was lost or whose worker died, and postpone their next hint."""
    now = services.database_now()
    with transaction.atomic():
        due_ids = list(
            DueSeat.objects.select_for_update(skip_locked=True, of=("self",))
            .filter(Q(claimed_until=None) | Q(claimed_until__lt=now), hint_at__lte=now, match__paused_at=None)
            .order_by("hint_at")
            .values_list("pk", flat=True)[:limit]
        )
        DueSeat.objects.filter(pk__in=due_ids).update(hint_at=now + services.HINT_EVERY)
    return due_ids


def start_clocks(*, limit: int = 200) -> tuple[list[tuple[int, int]], list[tuple[int, str]]]:
    """Start the clocks of seats whose model has become ready.

    Return their (due seat, match) ids, and (match, reason) for models that could not be started.
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
            "match__seats__speaker__state",
            "created_at",
        )[:limit]
        ready, broken = [], []
        for due_id, match_id, seconds, state, state_of_speaker, since in states:
            both = {state, state_of_speaker} - {None}
            if both == {Deployment.State.READY}:
                ready.append((due_id, match_id))
                DueSeat.objects.filter(pk=due_id, deadline=None).update(
                    deadline=now + timedelta(seconds=seconds), hint_at=now + services.HINT_EVERY
                )
            elif Deployment.State.FAILED in both:
                broken.append((match_id, "a model could not be started"))
            elif since < now - STARTS_WITHIN:
                broken.append((match_id, f"a model did not start within {STARTS_WITHIN.seconds // 60} minutes"))
    return ready, broken


def request_stopped() -> int:
    """Request cold models again if a seat waits for them: they may have lost their slot."""
    waiting = MatchSeat.objects.filter(match__due__deadline=None, match__due__seat=F("seat"))
    needed = Q(match_seats__in=waiting) | Q(spoken_seats__in=waiting)
    cold = Deployment.objects.filter(needed, state=Deployment.State.COLD, requested_at=None).distinct()
    for deployment in cold:
        serving.request(deployment=deployment)
    return len(cold)
