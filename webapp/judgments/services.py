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
from training.labels.codebooks import CODEBOOKS, check_turns
from training.labels.codebooks import Codebook as CodebookRecord
from training.reading import explain
from training.records import Label as LabelRecord
from training.rewards.judge import Verdict
from webapp.accounts.models import User
from webapp.arena.models import Match, MatchSeat
from webapp.arena.play.pace import knows_seats
from webapp.core import queue as hints
from webapp.core import quotas
from webapp.judgments import games, turns
from webapp.judgments.models import (
    LEASE,
    Codebook,
    CodebookVersion,
    GameRating,
    Guess,
    JudgedGame,
    JudgeModel,
    Judgment,
    Label,
    Queue,
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
def load_codebooks() -> None:
    """Bring the codebooks that come with Parley into the database, each version once."""
    for record in CODEBOOKS.values():
        codebook, _ = Codebook.objects.get_or_create(name=record.name, defaults={"title": record.title})
        CodebookVersion.objects.get_or_create(codebook=codebook, number=record.version, defaults=content_of(record))


def content_of(record: CodebookRecord) -> dict[str, Any]:
    """Return the fields of the version that stores a codebook."""
    labels = [label_type.to_dict() for label_type in record.labels]
    return {"title": record.title, "guideline": record.guideline, "labels": labels}


@transaction.atomic
def save_codebook(
    *, name: str, title: str, labels: Sequence[Mapping[str, Any]], by: User, guideline: str = ""
) -> CodebookVersion:
    """Make the next version of a codebook, or a new codebook; what was judged under older versions stays as it is."""
    codebook = Codebook.objects.select_for_update().filter(name=name).first()
    if codebook is not None and not may_change_codebook(codebook, by):
        raise BadInput("this codebook is somebody else's; choose another name", "name")
    last = codebook.versions.order_by("-number").first() if codebook else None
    number = last.number + 1 if last else 1
    try:
        record = CodebookRecord(
            name=name,
            version=number,
            title=title,
            guideline=guideline,
            labels=tuple(labels),  # type: ignore[arg-type]
        )
    except ValidationError as error:
        where, why = explain(error)
        raise BadInput(why, where) from error
    if last is not None and last.record() == record.model_copy(update={"version": last.number}):
        return last
    codebook = codebook or _new_codebook(name, title, by)
    codebook.title = title
    codebook.save(update_fields=["title"])
    return CodebookVersion.objects.create(codebook=codebook, number=number, created_by=by, **content_of(record))


def _new_codebook(name: str, title: str, owner: User) -> Codebook:
    try:
        return Codebook.objects.create(name=name, title=title, owner=owner)
    except IntegrityError as error:
        raise BadInput("a codebook of this name has just been created: view it, or choose another title") from error


def may_change_codebook(codebook: Codebook, user: User) -> bool:
    """Say whether this person may add versions: the owner, and admins."""
    return user.may_change(codebook.owner_id)


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
    codebook_version: CodebookVersion,
    matches: Iterable[Match] = (),
    episodes: Iterable[PlayedEpisode] = (),
    conversations: Iterable[StoredConversation] = (),
    judge: JudgeModel | None = None,
    annotators: Iterable[User] = (),
) -> Queue:
    """Queue every seat of these games that the codebook asks about; `left_out` of the queue names all others.

    Under a codebook that asks about more than seats, whole games are queued.
    """
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
    if judge is not None and not codebook_version.record().scores_seats:
        raise BadInput(
            "a judge model scores seats by numbers, of which this codebook has others too", "codebook_version"
        )
    if people:
        _check_markable(codebook_version.record())
    seats, left_out = _asked_seats(codebook_version.record(), judged_games)
    if not seats:
        raise BadInput(f"{codebook_version} asks about roles that nobody had in these games", "codebook_version")
    if len(seats) > MOST_TARGETS:
        raise BadInput(f"{len(seats)} seats or games are more than the {MOST_TARGETS} of one queue", "games")
    queue = Queue.objects.create(
        name=name, owner=owner, codebook_version=codebook_version, judge=judge, left_out=left_out
    )
    queue.annotators.set(people)
    Target.objects.bulk_create(
        Target(queue=queue, seat=seat, position=position, **games.reference(game))
        for position, (game, seat) in enumerate(seats)
    )
    if judge is not None:
        hint(queue)
    return queue


def _asked_seats(
    codebook: CodebookRecord, judged_games: Iterable[JudgedGame]
) -> tuple[list[tuple[JudgedGame, int | None]], list[str]]:
    """Return the seats that the codebook asks about, and a line for each game of which it leaves seats out.

    None instead of a seat stands for the whole game.
    """
    if not codebook.about_seats:
        return [(game, None) for game in judged_games], []
    seats_asked: list[tuple[JudgedGame, int | None]] = []
    left_out = []
    for game in judged_games:
        count = games.seat_count(game)
        seats = [seat for seat in range(count) if codebook.asks(role_at(game, seat))]
        seats_asked += [(game, seat) for seat in seats]
        if len(seats) < count:
            others = [seat for seat in range(count) if seat not in seats]
            numbers = ", ".join(f"{seat + 1} ({role_at(game, seat) or 'no role'})" for seat in others)
            left_out.append(f"{games.label(game)}: seat {numbers}")
    if len(left_out) > LEFT_OUT_SHOWN:
        left_out[LEFT_OUT_SHOWN:] = [f"seats of {len(left_out) - LEFT_OUT_SHOWN} more games"]
    return seats_asked, left_out


def _check_markable(codebook: CodebookRecord) -> None:
    """Raise `BadInput` for a label type that the page of a judgment cannot ask for."""
    for label_type in codebook.labels:
        in_form = label_type.about in ("seat", "game") and label_type.kind != "ranking"
        if not in_form and not turns.markable(label_type):
            why = (
                "people cannot mark it yet: of turns, pages ask for yes or no, of words and pairs for their place alone"
            )
            raise BadInput(f"“{label_type.title}”: {why}", "codebook_version")


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
    locked.judgments.filter(judge=judge, unscored=True).delete()
    judgment = Judgment(
        codebook_version=target.queue.codebook_version,
        target=locked,
        seat=target.seat,
        judge=judge,
        unscored=verdict is None,
        reason=why,
        updated_at=timezone.now(),
        **games.reference(target.game),
    )
    if verdict is not None:
        judgment.prompt_sha256, cost = verdict.prompt_sha256, verdict.cost
        judgment.cost = {
            "calls": cost.calls, "prompt_tokens": cost.prompt_tokens, "completion_tokens": cost.completion_tokens,
        }  # fmt: skip
    judgment.save()
    store_labels(judgment, () if verdict is None else verdict.labels)
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


def labels_of(codebook: CodebookRecord, values: Mapping[str, Any], seat: int | None) -> tuple[LabelRecord, ...]:
    """Return labels without a turn, for values by label type; those that are None are left out.

    They are about the `seat`, or about the game where their type is.
    """
    return tuple(
        LabelRecord(label=name, value=value, seat=seat if codebook.type_of(name).about == "seat" else None)
        for name, value in values.items()
        if value is not None
    )


def store_labels(judgment: Judgment, labels: Iterable[LabelRecord]) -> None:
    """Store the labels of a saved judgment in the place of those before."""
    judgment.labels.all().delete()
    kinds = {label_type.name: label_type.kind for label_type in judgment.codebook_version.record().labels}
    Label.objects.bulk_create(Label.of(judgment, record, kinds[record.label]) for record in labels)


@transaction.atomic
def annotate(*, target: Target, by: User, labels: Sequence[LabelRecord] | None, reason: str = "") -> Judgment:
    """Store a person's judgment of a target, or that it could not be scored; sent twice it is the same row.

    Another answer of the same person takes the place of the first, which stays in `history`; `BadInput` once the
    queue was exported with it.
    """
    comment = reason.strip()[:2000]
    if labels is None and not comment:
        raise BadInput("state briefly why it cannot be scored", "reason")
    if labels is not None:
        check_labels(target, labels)
    if labels is not None and target.match_id and not Match.objects.exportable().filter(pk=target.match_id).exists():
        raise BadInput("a player has withdrawn consent: the game is no longer judged", "target")
    locked = Target.objects.select_for_update().filter(pk=target.pk).first()  # its state depends on all its judgments
    if locked is None:
        raise BadInput("it was removed from the queue", "target")
    judgment = locked.judgments.filter(author=by).first()
    if judgment is None:
        judgment = Judgment(
            target=locked, author=by, codebook_version=target.queue.codebook_version, seat=target.seat,
            **games.reference(target.game),
        )  # fmt: skip
    else:
        before = judgment.records()
        if (_as_set(before), judgment.reason) == (_as_set(labels), comment):
            return judgment
        check_changeable(judgment, locked.queue)
        saved_at = judgment.updated_at or judgment.created_at
        earlier = None if before is None else [label.to_dict() for label in before]
        judgment.history.append({"labels": earlier, "reason": judgment.reason, "at": saved_at.isoformat()})
    judgment.unscored, judgment.reason, judgment.updated_at = labels is None, comment, timezone.now()
    judgment.save()
    store_labels(judgment, labels or ())
    scored = locked.judgments.filter(unscored=False).exists()
    locked.state = Target.State.SCORED if scored else Target.State.UNSCORED
    if scored and locked.seat is None and locked.turns is None:
        locked.turns = [line.turn for line in games.game_of(target).turn_lines() if line.turn is not None]
    locked.save(update_fields=["state", "turns"])
    return judgment


def check_labels(target: Target, labels: Sequence[LabelRecord]) -> None:
    """Raise `BadInput` unless the labels fit what is asked about the target, and are about its seat or game.

    Of a whole game, each seat is asked by its role.
    """
    codebook = target.codebook()
    if target.seat is not None:
        codebook.check(labels)
        for label in labels:
            if label.seat is not None and label.seat != target.seat:
                why = f"the label is about seat {label.seat + 1}, not about seat {target.seat + 1}"
                raise BadInput(why, label.label)
        return
    record = games.game_of(target)
    check_turns(labels, [entry.move.text for entry in record.moves], len(record.scenario.seats))
    for seat, role in enumerate(games.roles(target.game)):
        about_seat = [label for label in labels if label.seat in (None, seat)]
        codebook.asking(role).check(about_seat)


def _as_set(labels: Sequence[LabelRecord] | None) -> frozenset[LabelRecord] | None:
    return None if labels is None else frozenset(labels)


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
    version: CodebookVersion | None,
    values: Mapping[int, Mapping[str, Any]],
    guesses: Mapping[int, Answer],
) -> None:
    """Store a player's vote after the game, once: what they took every other seat for, and any values they gave.

    A host who chose the players may leave the guesses out. `values` of a seat may leave label types out; `version` is
    the codebook that they belong to.
    """
    others = {seat.seat: seat for seat in by.match.seats.exclude(pk=by.pk)}
    left_out = not guesses and knows_seats(by.match, by.user_id)
    if (set(guesses) != set(others) and not left_out) or not set(values) <= set(others):
        raise BadInput("guess for every other seat whether it was a person or a model", "guess")
    _close_rating(by, voted=True)
    for number, seat_values in values.items():
        if version is None:
            continue
        asked = _asked_of(by, version, number)
        if not (labels := labels_of(asked, seat_values, number)):
            continue
        asked.check(labels, whole=False)
        judgment = Judgment.objects.create(
            codebook_version=version, match=by.match, seat=number, author=by.user, author_seat=by,
            updated_at=timezone.now(),
        )  # fmt: skip
        store_labels(judgment, labels)
    Guess.objects.bulk_create(
        Guess(by=by, about=others[number], person=answer.person, sure=answer.sure) for number, answer in guesses.items()
    )


def _asked_of(by: MatchSeat, version: CodebookVersion, seat: int) -> CodebookRecord:
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
