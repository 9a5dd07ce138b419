"""The coach: a strategist whose advice a person asks for at their turn.

It reads what the person's seat has been shown, and its own earlier advice to the seat. A request is a row that a worker
answers. A match with advice is on no ladder. Until the players are revealed, only the person who asked
reads the advice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import F, QuerySet

from training.errors import BadInput, IllegalMove
from training.games import lookup
from training.records import Observation, Scenario, Seat, Viewer
from training.run_sections import SpeakerSection
from training.seeding import derive
from webapp.accounts.models import User
from webapp.arena import hints, opponents
from webapp.arena.models import Advice, Match
from webapp.arena.play import hosting, moves, services, statements
from webapp.arena.setup import speakers
from webapp.core import queue, quotas
from webapp.runs.models import Checkpoint
from webapp.serving import services as serving
from webapp.serving.models import Deployment

SECONDS = 60
"""How long a coach has for an answer, its start included."""
LAPSES = serving.ADVISES
"""A request without an answer for this long has failed: its worker has died, or there is none."""
MOST_TRIES = 3
"""How often a coach is asked at one turn."""
LONGEST = 2000
"""Characters of an advice that are stored."""
OFFERED = 20
"""The newest models of each kind that are offered as coaches."""
NO_ANSWER, TURN_OVER = "no answer came in time", "the turn was over before it answered"
UNUSABLE, TOO_LONG = "its server gave no usable answer", "the game is too long for it"


@dataclass(frozen=True)
class Question:
    """A request that a worker has claimed, with everything that the coach may know."""

    advice_id: int
    tries: int
    seat: Seat
    scenario: Scenario
    observation: Observation
    deployment: Deployment | None
    scripted: str
    earlier: Sequence[tuple[int, str]]
    seed: int

    @property
    def form(self) -> SpeakerSection:
        """The form in which the coach writes: that of the run which trained it, if it is a strategist."""
        return SpeakerSection() if self.deployment is None else speakers.section_of(self.deployment)


def coaches(user: User, game: str) -> list[tuple[str, str]]:
    """The coaches that this user may ask in a game, as (value, label): models open to them, and the game's players
    without a model. Strategists come first.
    """
    checkpoints = list(Checkpoint.objects.visible_to(user).select_related("run").order_by("-created_at")[:OFFERED])
    checkpoints.sort(key=lambda checkpoint: not speakers.section_of_run(checkpoint.run).source)
    remotes = Deployment.objects.visible_to(user).filter(remote__isnull=False).select_related("remote")[:OFFERED]
    return [
        *((f"checkpoint:{checkpoint.pk}", checkpoint.name) for checkpoint in checkpoints),
        *((f"deployment:{remote.pk}", str(remote)) for remote in remotes),
        *((name, opponents.title(name)) for name in _scripted(game)),
    ]


def _scripted(game: str) -> list[str]:
    """The players without a model that can advise in a game: chance has no advice."""
    return [name for name in opponents.names(lookup(game)) if name != opponents.CHANCE]


def _chosen(user: User, game: str, value: str) -> Deployment | str:
    """The model of a coach's value, or the name of a player without a model.

    Raises `BadInput` unless this user may ask it.
    """
    if value in _scripted(game):
        return value
    if model := serving.find(value, user=user):
        return model
    raise BadInput("there is no such coach: choose one of the list", "coach")


def ask_by_form(*, match_id: int, user: User, data: Mapping[str, Any]) -> Advice:
    """Request advice with the fields `turn` and `coach` of a form; raises what `ask` raises."""
    hosting.note_presence(match_id=match_id, user=user)
    coach = data.get("coach")
    return ask(match_id=match_id, user=user, turn=moves.turn_of(data), coach=coach if isinstance(coach, str) else "")


def explain(error: BadInput | IllegalMove) -> str:
    """The refusal as a sentence for the person."""
    return f"No coach was asked: {error.why if isinstance(error, BadInput) else error}."


@transaction.atomic
def ask(*, match_id: int, user: User, turn: int, coach: str) -> Advice:
    """Request advice for the turn `turn` of this user's seat, from 0; return the stored advice if there is some.

    Raises `BadInput` or `IllegalMove`, and changes nothing, if the user may not ask now.
    """
    match = Match.objects.select_for_update().get(pk=match_id)
    seat = statements.sitting_of(match_id, user.pk, hosting.NOTED_EVERY)
    if seat is None:
        raise BadInput("you do not sit at this table")
    if not match.coaching:
        raise BadInput("coaches are not allowed at this table")
    step, current_time = seat.step_of(turn), services.database_now()
    if stored := match.advice.filter(step=step, seat=seat.seat).first():
        if is_pending(stored, current_time) or stored.text:
            return stored
        if stored.tries >= MOST_TRIES:
            raise BadInput("the coach has failed too often at this turn: move without advice")
    if match.state != Match.State.RUNNING or match.paused_at is not None or seat.stand_in:
        raise BadInput("you can ask a coach when it is your turn")
    state = services.fold(match)
    if step != match.step or seat.seat not in state.due():
        raise BadInput("you can ask a coach when it is your turn")
    chosen = _chosen(user, match.game, coach)
    deployment = chosen if isinstance(chosen, Deployment) else None
    quotas.check(user=user, quota="advice_per_hour", used=quotas.within_hour(_asked_by(user), "asked_at"))
    if deployment is not None:
        serving.request(deployment=deployment, by=user)
    advice, _ = match.advice.update_or_create(
        step=step,
        seat=seat.seat,
        defaults={
            "turn": turn,
            "after": len(state.game.observe(seat.seat).messages),
            "deployment": deployment,
            "scripted": chosen if isinstance(chosen, str) else "",
            "coach": (opponents.title(chosen) if isinstance(chosen, str) else str(chosen))[:200],
            "why": "",
            "tries": 1 if stored is None else stored.tries + 1,
            "asked_at": current_time,
            "claimed": False,
        },
    )
    hints.send(match.pk, [seat.seat])
    queue.send(queue.ADVISE, advice.pk)
    return advice


def _asked_by(user: User) -> QuerySet[Advice]:
    """The advice that this user has asked for; a repeated request at one turn counts once."""
    return Advice.objects.filter(match__seats__user=user, match__seats__seat=F("seat"))


def visible(match: Match, viewer: Viewer, *, revealed: bool) -> QuerySet[Advice]:
    """The advice to the viewer's own seat or, once the players are revealed, to every seat; the newest first."""
    advice = match.advice.order_by("-step", "seat")
    return advice if revealed else advice.filter(seat=viewer)


def at_step(match: Match, step: int) -> dict[Seat, Advice]:
    """What coaches advised before the moves of a step, by seat; for those who may know the players."""
    return {row.seat: row for row in match.advice.filter(step=step).exclude(text="")}


def is_pending(advice: Advice, current_time: datetime) -> bool:
    """Whether an answer may still come."""
    return not advice.text and not advice.why and current_time < advice.asked_at + LAPSES


def may_ask_again(advice: Advice, current_time: datetime) -> bool:
    """Whether the coach has failed and can be asked once more at the same turn."""
    return not advice.text and not is_pending(advice, current_time) and advice.tries < MOST_TRIES


@transaction.atomic
def claim(*, advice_id: int) -> Question | None:
    """Claim a request for a worker; None if it is answered, has lapsed, or another worker has it."""
    advice = (
        Advice.objects.select_for_update(skip_locked=True, of=("self",))
        .filter(pk=advice_id, claimed=False)
        .select_related("match", "deployment__checkpoint__run", "deployment__remote")
        .first()
    )
    if advice is None or not is_pending(advice, services.database_now()):
        return None
    advice.claimed = True
    advice.save(update_fields=["claimed"])
    match, seat = advice.match, advice.seat
    game = services.fold(match, steps=advice.step).game
    same = match.advice.filter(seat=seat, step__lt=advice.step, coach=advice.coach).exclude(text="").order_by("step")
    return Question(
        advice_id=advice.pk,
        tries=advice.tries,
        seat=seat,
        scenario=game.scenario,
        observation=game.observe(seat),
        deployment=advice.deployment,
        scripted=advice.scripted,
        earlier=tuple(same.values_list("after", "text")),
        seed=derive(game.scenario.seed, "coach", match.pk, seat, advice.step, advice.tries),
    )


def keep(*, question: Question, text: str) -> None:
    """Store the answer; without a word in it, and once the turn is over, there is none."""
    written = text.replace("\x00", "\ufffd").strip()[:LONGEST]
    _finish(question, text=written) if written else fail(question=question, why="the coach wrote nothing")


def fail(*, question: Question, why: str) -> None:
    """Store why there is no answer."""
    _finish(question, why=why[:400])


@transaction.atomic
def _finish(question: Question, *, text: str = "", why: str = "") -> None:
    """Store an answer, unless the coach has been asked again in the meantime; advice for a past turn is dropped."""
    match = Match.objects.select_for_update(of=("self",)).get(advice=question.advice_id)
    advice = match.advice.filter(pk=question.advice_id, tries=question.tries, text="", why="").first()
    if advice is None:
        return
    if text and not _lasts(match, advice):
        text, why = "", TURN_OVER
    advice.text, advice.why = text, why
    advice.took_s = (services.database_now() - advice.asked_at).total_seconds()
    advice.save(update_fields=["text", "why", "took_s"])
    hints.send(match.pk, [advice.seat])


def _lasts(match: Match, advice: Advice) -> bool:
    """Whether the turn lasts for which the advice was asked."""
    running = match.state == Match.State.RUNNING and match.step == advice.step
    return running and not match.moves.filter(step=advice.step, seat=advice.seat).exists()
