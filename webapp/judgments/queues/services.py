"""Writes of queues: each function is one transaction; `BadInput` says what is wrong and changes nothing."""

from __future__ import annotations

from collections.abc import Iterable

from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from training.errors import BadInput
from training.labels.codebooks import Codebook as CodebookRecord
from training.rewards.judge import Verdict
from webapp.accounts.models import User
from webapp.arena.models import Match
from webapp.core import queue as hints
from webapp.core import quotas
from webapp.judgments import games
from webapp.judgments.annotating import turns
from webapp.judgments.annotating.services import store_labels
from webapp.judgments.models import (
    LEASE,
    CodebookVersion,
    JudgedGame,
    JudgeModel,
    Judgment,
    Queue,
    Target,
    role_at,
)
from webapp.runs.models import PlayedEpisode
from webapp.scenarios.models import StoredConversation

MOST_TARGETS = 20_000
LEFT_OUT_SHOWN = 20


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
