"""Writes of judgments: each function is one transaction; `BadInput` says what is wrong and changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models.functions import Now
from django.utils import timezone
from pydantic import ValidationError

from training.errors import BadInput
from training.reading import explain
from training.rewards.judge import Verdict
from training.rewards.rubrics import RUBRICS
from training.rewards.rubrics import Rubric as RubricRecord
from webapp.accounts.models import User
from webapp.arena.models import Match, MatchSeat
from webapp.arena.play.pace import knows_seats
from webapp.core import queue as hints
from webapp.core import quotas
from webapp.judgments import games
from webapp.judgments.models import (
    LEASE,
    GameRating,
    Guess,
    JudgedGame,
    JudgeModel,
    Judgment,
    Queue,
    Rubric,
    RubricVersion,
    Target,
    role_at,
)
from webapp.runs.models import PlayedEpisode
from webapp.scenarios.models import StoredConversation
from webapp.serving.models import RemoteModel

MOST_TARGETS = 20_000
LEFT_OUT_SHOWN = 20
MOST_CHANGES = 100
"""Changes of one judgment: all of them are stored with it."""


@transaction.atomic
def load_rubrics() -> None:
    """Bring the rubrics that come with Parley into the database, each version once."""
    for record in RUBRICS.values():
        rubric, _ = Rubric.objects.get_or_create(name=record.name, defaults={"title": record.title})
        content = {"title": record.title, "dimensions": [d.to_dict() for d in record.dimensions]}
        RubricVersion.objects.get_or_create(rubric=rubric, number=record.version, defaults=content)


@transaction.atomic
def save_rubric(*, name: str, title: str, dimensions: Sequence[Mapping[str, Any]], by: User) -> RubricVersion:
    """Make the next version of a rubric, or a new rubric; what was judged under older versions stays as it is."""
    rubric = Rubric.objects.select_for_update().filter(name=name).first()
    if rubric is not None and not may_change_rubric(rubric, by):
        raise BadInput("this rubric is somebody else's; choose another name", "name")
    last = rubric.versions.order_by("-number").first() if rubric else None
    number = last.number + 1 if last else 1
    try:
        record = RubricRecord(name=name, version=number, title=title, dimensions=tuple(dimensions))  # type: ignore[arg-type]
    except ValidationError as error:
        where, why = explain(error)
        raise BadInput(why, where) from error
    content = [dimension.to_dict() for dimension in record.dimensions]
    if last is not None and last.record() == record.model_copy(update={"version": last.number}):
        return last
    rubric = rubric or _new_rubric(name, title, by)
    rubric.title = title
    rubric.save(update_fields=["title"])
    return RubricVersion.objects.create(rubric=rubric, number=number, title=title, dimensions=content, created_by=by)


def _new_rubric(name: str, title: str, owner: User) -> Rubric:
    try:
        return Rubric.objects.create(name=name, title=title, owner=owner)
    except IntegrityError as error:
        raise BadInput("a rubric of this name has just been created: view it, or choose another title") from error


def may_change_rubric(rubric: Rubric, user: User) -> bool:
    """Say whether this person may add versions: the owner, and admins."""
    return user.may_change(rubric.owner_id)


@transaction.atomic
def add_judge(*, name: str, remote: RemoteModel, temperature: float) -> JudgeModel:
    """Let a remote model judge."""
    try:
        return JudgeModel.objects.create(name=name, remote=remote, temperature=temperature)
    except IntegrityError as error:
        raise BadInput(f"there is already a judge named {name!r}", "name") from error


@transaction.atomic
def create_queue(
    *,
    name: str,
    owner: User,
    rubric_version: RubricVersion,
    matches: Iterable[Match] = (),
    episodes: Iterable[PlayedEpisode] = (),
    conversations: Iterable[StoredConversation] = (),
    judge: JudgeModel | None = None,
    annotators: Iterable[User] = (),
) -> Queue:
    """Queue every seat of these games that the rubric asks about; `left_out` of the queue names all others."""
    quotas.spend(user=owner, quota="queues_per_hour")
    people, matches = list(annotators), list(matches)
    offered = Match.objects.judgeable_by(owner).filter(pk__in=[match.pk for match in matches])
    judgeable = set(offered.values_list("pk", flat=True))
    if refused := [match.pk for match in matches if match.pk not in judgeable]:
        why = "is not over, a player did not agree to be rated, or its experiment still runs"
        raise BadInput(f"match {refused[0]} {why}", "matches")
    if (judge is None) == (not people):
        raise BadInput("choose either a judge model or at least one annotator", "judge")
    judged_games: list[JudgedGame] = [*matches, *episodes, *conversations]
    if not judged_games:
        raise BadInput("there is no finished game to judge", "games")
    seats, left_out = _asked_seats(rubric_version.record(), judged_games)
    if not seats:
        raise BadInput(f"{rubric_version} asks about roles that nobody had in these games", "rubric_version")
    if len(seats) > MOST_TARGETS:
        raise BadInput(f"{len(seats)} seats are more than the {MOST_TARGETS} of one queue", "games")
    queue = Queue.objects.create(name=name, owner=owner, rubric_version=rubric_version, judge=judge, left_out=left_out)
    queue.annotators.set(people)
    Target.objects.bulk_create(
        Target(queue=queue, seat=seat, position=position, **games.reference(game))
        for position, (game, seat) in enumerate(seats)
    )
    if judge is not None:
        hint(queue)
    return queue


def _asked_seats(
    rubric: RubricRecord, judged_games: Iterable[JudgedGame]
) -> tuple[list[tuple[JudgedGame, int]], list[str]]:
    """Return the seats that the rubric asks about, and a line for each game of which it leaves seats out."""
    seats_asked: list[tuple[JudgedGame, int]] = []
    left_out = []
    for game in judged_games:
        count = games.seat_count(game)
        seats = [seat for seat in range(count) if rubric.asks(role_at(game, seat))]
        seats_asked += [(game, seat) for seat in seats]
        if len(seats) < count:
            others = [seat for seat in range(count) if seat not in seats]
            numbers = ", ".join(f"{seat + 1} ({role_at(game, seat) or 'no role'})" for seat in others)
            left_out.append(f"{games.label(game)}: seat {numbers}")
    if len(left_out) > LEFT_OUT_SHOWN:
        left_out[LEFT_OUT_SHOWN:] = [f"seats of {len(left_out) - LEFT_OUT_SHOWN} more games"]
    return seats_asked, left_out


def hint(queue: Queue) -> None:
    """Send hints for a queue's pending targets after commit; the clock repeats them."""
    for pk in queue.targets.for_models().values_list("pk", flat=True)[:100]:
        hints.send(hints.JUDGE, pk)


@transaction.atomic
def claim(*, pk: int) -> Target | None:
    """Claim a target that waits for its judge model; None if there is nothing to do."""
    claimed = Target.objects.for_models().select_for_update(skip_locked=True, of=("self",)).filter(pk=pk).first()
    if claimed is not None:
        claimed.claimed_until = Now() + LEASE
        claimed.save(update_fields=["claimed_until"])
    return claimed


@transaction.atomic
def record_verdict(*, target: Target, verdict: Verdict | None, why: str = "") -> None:
    """Store a judge model's verdict, or that it could not score; replaces an earlier failure of the same target."""
    locked = Target.objects.select_for_update().filter(pk=target.pk).first()
    if locked is None or locked.state != Target.State.PENDING:  # it was cancelled or judged meanwhile
        return
    judge = target.queue.judge
    locked.judgments.filter(judge=judge, values__isnull=True).delete()
    judgment = Judgment(
        rubric_version=target.queue.rubric_version,
        target=locked,
        seat=target.seat,
        judge=judge,
        reason=why,
        updated_at=timezone.now(),
        **games.reference(target.game),
    )
    if verdict is not None:
        judgment.values, judgment.reasons, judgment.prompt_sha256 = (
            verdict.values,
            verdict.reasons,
            verdict.prompt_sha256,
        )
        cost = verdict.cost
        judgment.cost = {
            "calls": cost.calls, "prompt_tokens": cost.prompt_tokens, "completion_tokens": cost.completion_tokens,
        }  # fmt: skip
    judgment.save()
    locked.state = Target.State.UNSCORED if verdict is None else Target.State.SCORED
    locked.claimed_until = None
    locked.save(update_fields=["state", "claimed_until"])


@transaction.atomic
def retry(*, queue: Queue) -> int:
    """Put every target that a judge model could not score back; return how many.

    What a person said they could not score is their judgment: only they change it.
    """
    if queue.judge is None:
        return 0
    count = queue.targets.filter(state=Target.State.UNSCORED).update(state=Target.State.PENDING, claimed_until=None)
    hint(queue)
    return count


@transaction.atomic
def cancel(*, queue: Queue) -> int:
    """Take what nobody has judged out of a queue; return how many seats no longer wait. What was judged stays.

    A seat that a judge model could not score and was to try again goes back to that.
    """
    waiting = queue.targets.select_for_update().filter(state=Target.State.PENDING)
    pending = Target.objects.filter(pk__in=list(waiting.values_list("pk", flat=True)))
    tried = pending.filter(judgments__isnull=False).update(state=Target.State.UNSCORED, claimed_until=None)
    _, removed = pending.filter(judgments=None).delete()
    return tried + removed.get(Target._meta.label, 0)


@transaction.atomic
def delete_queue(*, queue: Queue) -> None:
    """Delete a queue in which nothing was judged; raise `BadInput` for any other, whose judgments would be lost."""
    list(queue.targets.select_for_update().values_list("pk"))  # a judgment of one of them waits until this is done
    if Judgment.objects.filter(target__queue=queue).exists():
        raise BadInput("it has judgments, so it cannot be deleted", queue.name)
    Queue.objects.filter(pk=queue.pk).delete()


@transaction.atomic
def remove_judge(*, judge: JudgeModel) -> None:
    """Let a remote model judge no longer; raise `BadInput` if a queue is judged by it."""
    if used := judge.queues.order_by("-created_at").values_list("name", flat=True).first():
        raise BadInput(f"queue “{used}” is judged by it", judge.name)
    judge.delete()


def check_values(rubric: RubricRecord, values: Mapping[str, Any], *, whole: bool = True) -> dict[str, float]:
    """Return values within their scales; raise `BadInput` naming the dimension.

    `whole`: every dimension needs a value. Otherwise those without one (missing or None) are left out.
    """
    checked = {}
    for dimension in rubric.dimensions:
        value = values.get(dimension.name)
        if value is None and not whole:
            continue
        if value is None or not dimension.takes(float(value)):
            raise BadInput(f"choose a value: {dimension.scale}", dimension.name)
        checked[dimension.name] = float(value)
    if extra := set(values) - {dimension.name for dimension in rubric.dimensions}:
        raise BadInput("not a dimension of this rubric", min(extra))
    return checked


@transaction.atomic
def annotate(*, target: Target, by: User, values: Mapping[str, Any] | None, reason: str = "") -> Judgment:
    """Store a person's judgment of a target, or that it could not be scored; sent twice it is the same row.

    Another answer of the same person takes the place of the first, which stays in `history`; `BadInput` once the
    queue was exported with it.
    """
    checked = None if values is None else check_values(target.rubric(), values)
    comment = reason.strip()[:2000]
    if checked is None and not comment:
        raise BadInput("state briefly why it cannot be scored", "reason")
    if checked is not None and target.match_id and not Match.objects.exportable().filter(pk=target.match_id).exists():
        raise BadInput("a player has withdrawn consent: the game is no longer judged", "target")
    locked = Target.objects.select_for_update().filter(pk=target.pk).first()  # its state depends on all its judgments
    if locked is None:
        raise BadInput("it was removed from the queue", "target")
    judgment = locked.judgments.filter(author=by).first()
    if judgment is None:
        judgment = Judgment(
            target=locked, author=by, rubric_version=target.queue.rubric_version, seat=target.seat,
            **games.reference(target.game),
        )  # fmt: skip
    elif (judgment.values, judgment.reason) == (checked, comment):
        return judgment
    else:
        check_changeable(judgment, locked.queue)
        saved_at = judgment.updated_at or judgment.created_at
        judgment.history.append({"values": judgment.values, "reason": judgment.reason, "at": saved_at.isoformat()})
    judgment.values, judgment.reason, judgment.updated_at = checked, comment, timezone.now()
    judgment.save()
    scored = locked.judgments.filter(values__isnull=False).exists()
    locked.state = Target.State.SCORED if scored else Target.State.UNSCORED
    locked.save(update_fields=["state"])
    return judgment


def check_changeable(judgment: Judgment, queue: Queue) -> None:
    """Raise `BadInput` if a judgment does not change any more: it was exported, or changed too often."""
    if queue.exported_at is not None and (judgment.updated_at or judgment.created_at) <= queue.exported_at:
        raise BadInput("it was exported as part of a dataset and stays as it is", "target")
    if len(judgment.history) >= MOST_CHANGES:
        raise BadInput(f"it was changed {MOST_CHANGES} times and stays as it is", "target")


@dataclass(frozen=True)
class Answer:
    """A guess whether a person sat at a seat, and whether the player is sure."""

    person: bool
    sure: bool = True


@transaction.atomic
def rate(
    *,
    by: MatchSeat,
    version: RubricVersion | None,
    values: Mapping[int, Mapping[str, Any]],
    guesses: Mapping[int, Answer],
) -> None:
    """Store a player's vote after the game, once: what they took every other seat for, and any values they gave.

    A host who chose the players may leave the guesses out. `values` of a seat may leave dimensions out; `version` is
    the rubric that they belong to.
    """
    others = {seat.seat: seat for seat in by.match.seats.exclude(pk=by.pk)}
    left_out = not guesses and knows_seats(by.match, by.user_id)
    if (set(guesses) != set(others) and not left_out) or not set(values) <= set(others):
        raise BadInput("guess for every other seat whether it was a person or a model", "guess")
    _close_rating(by, voted=True)
    for number, seat_values in values.items():
        if version is None or not (checked := check_values(_asked_of(by, version, number), seat_values, whole=False)):
            continue
        Judgment.objects.create(
            rubric_version=version, match=by.match, seat=number, author=by.user, author_seat=by, values=checked,
            updated_at=timezone.now(),
        )  # fmt: skip
    Guess.objects.bulk_create(
        Guess(by=by, about=others[number], person=answer.person, sure=answer.sure) for number, answer in guesses.items()
    )


def _asked_of(by: MatchSeat, version: RubricVersion, seat: int) -> RubricRecord:
    return version.record().of(role_at(by.match, seat))


@transaction.atomic
def reveal_unrated(*, by: MatchSeat) -> None:
    """Reveal the other players to a player without a vote; a later vote is refused."""
    _close_rating(by, voted=False)


def is_rated(by: MatchSeat) -> bool:
    """Whether this player has voted after the game, or seen without a vote who the others were."""
    kinds = GameRating.objects.filter(by=by), Guess.objects.filter(by=by), Judgment.objects.filter(author_seat=by)
    return any(rows.exists() for rows in kinds)


def check_rateable(by: MatchSeat) -> None:
    """Raise `BadInput` if the game is not over, or this player's rating of it is closed."""
    if by.match.state != Match.State.FINISHED:
        raise BadInput("the game is not over yet")
    if GameRating.objects.filter(by=by, voted=False).exists():
        raise BadInput("you have seen who it was without rating, so a guess does not count any more")
    if is_rated(by):
        raise BadInput("you have rated this game already")


def _close_rating(by: MatchSeat, *, voted: bool) -> None:
    """Close a player's rating of a game; raise `BadInput` if that was done before, or the game is not over."""
    check_rateable(by)
    try:
        with transaction.atomic():
            GameRating.objects.create(by=by, voted=voted)
    except IntegrityError:  # somebody closed it in the same moment
        check_rateable(by)
        raise
