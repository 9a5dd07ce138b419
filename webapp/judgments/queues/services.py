"""Writes of queues: each function is one transaction; `BadInput` says what is wrong and changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from random import SystemRandom

from django.db import transaction
from django.db.models import Max
from django.db.models.functions import Now
from django.utils import timezone

from training.errors import BadInput
from training.labels.codebooks import Codebook as CodebookRecord
from training.rewards.judge import Labelled, Verdict
from webapp.accounts.models import User
from webapp.arena.models import Match
from webapp.core import queue as hints
from webapp.core import quotas
from webapp.judgments import games
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
from webapp.judgments.queues.selection import EVERYTHING, Selection
from webapp.judgments.queues.sharing import share_out
from webapp.runs.models import PlayedEpisode
from webapp.scenarios.models import StoredConversation

MOST_TARGETS = 20_000
MOST_OVERLAP = 50
MOST_MINUTES = 24 * 60
MOST_GOLD = 200
EXCLUDED_SHOWN = 20


@dataclass(frozen=True)
class QueueSettings:
    """How a queue of people works; see the fields of `Queue`. `selection` is the filter that chose the games."""

    overlap: int | None = None
    max_overlap: int | None = None
    assignment: str = Queue.Assignment.FIRST_COME
    reserve_minutes: int = 30
    order: str = Queue.Order.RANDOM
    batch_size: int | None = None
    qualification_items: int = 0
    qualification_threshold: float = 0.8
    gold_feedback: bool = True
    shows_hidden: bool = False
    shows_suggestions: bool = False
    selection: Selection = EVERYTHING

    def check(self, annotators: int) -> None:
        """Raise `BadInput` for values that are impossible or do not fit each other, or that many annotators."""
        if self.assignment not in Queue.Assignment.values or self.order not in Queue.Order.values:
            raise BadInput("there is no such way to assign or to order", "assignment")
        if self.overlap is not None and not 1 <= self.overlap <= MOST_OVERLAP:
            raise BadInput(f"between 1 and {MOST_OVERLAP} annotators can judge each", "overlap")
        if self.max_overlap is not None and self.overlap is None:
            raise BadInput("without a number of annotators, all judge each already", "max_overlap")
        if self.max_overlap is not None and not (self.overlap or 0) < self.max_overlap <= MOST_OVERLAP:
            raise BadInput(f"it must be above {self.overlap} and at most {MOST_OVERLAP}", "max_overlap")
        if self.assignment == Queue.Assignment.PREASSIGNED:
            if self.overlap is None:
                raise BadInput("say how many annotators judge each, to share them out", "overlap")
            if max(self.overlap, self.max_overlap or 0) > annotators:
                raise BadInput(f"to be judged by so many, choose more annotators than {annotators}", "annotators")
        if not 1 <= self.reserve_minutes <= MOST_MINUTES:
            raise BadInput(f"between 1 and {MOST_MINUTES} minutes", "reserve_minutes")
        if self.batch_size is not None and not 1 <= self.batch_size <= MOST_TARGETS:
            raise BadInput(f"between 1 and {MOST_TARGETS}", "batch_size")
        if not 0 <= self.qualification_items <= MOST_GOLD or not 0 < self.qualification_threshold <= 1:
            raise BadInput(
                f"at most {MOST_GOLD} gold targets, of which a share up to 1 must be right", "qualification_items"
            )


@transaction.atomic
def create_queue(  # noqa: PLR0913  # the three kinds of games
    *,
    name: str,
    owner: User,
    codebook_version: CodebookVersion,
    matches: Iterable[Match] = (),
    episodes: Iterable[PlayedEpisode] = (),
    conversations: Iterable[StoredConversation] = (),
    judge: JudgeModel | None = None,
    annotators: Iterable[User] = (),
    how: QueueSettings = QueueSettings(),
) -> Queue:
    """Queue every seat of these games that the codebook asks about; `excluded` of the queue names all others.

    Under a codebook that asks about more than seats, whole games are queued. Games that the selection of `how` leaves
    out, and seats that it does not ask for, are not.
    """
    quotas.spend(user=owner, quota="queues_per_hour")
    people, matches = list(annotators), list(matches)
    _check_judgeable(owner, matches)
    if (judge is None) == (not people):
        raise BadInput("choose either a judge model or at least one annotator", "judge")
    judged_games: list[JudgedGame] = [*matches, *episodes, *conversations]
    if not judged_games:
        raise BadInput("there is no finished game to judge", "games")
    if people:
        how.check(len(people))
    settings = {each.name: getattr(how, each.name) for each in fields(how)}
    queue = Queue.objects.create(
        name=name,
        owner=owner,
        codebook_version=codebook_version,
        judge=judge,
        batches_open=1 if how.batch_size is not None else None,
        **settings | {"selection": how.selection.to_dict()},
    )
    queue.annotators.set(people)
    _add_targets(queue, judged_games, how.selection)
    if judge is not None:
        hint(queue)
    return queue


def _check_judgeable(owner: User, matches: Iterable[Match]) -> None:
    """Raise `BadInput` for a match that this person may not have judged."""
    keys = [match.pk for match in matches]
    judgeable = set(Match.objects.judgeable_by(owner).filter(pk__in=keys).values_list("pk", flat=True))
    if refused := [pk for pk in keys if pk not in judgeable]:
        why = "is not over, a player did not agree to be rated, or its experiment still runs"
        raise BadInput(f"match {refused[0]} {why}", "matches")


def _add_targets(queue: Queue, judged_games: Sequence[JudgedGame], selection: Selection) -> list[Target]:
    """Append the targets of these games, in the batches that follow the last one; share them out if the queue does."""
    codebook = queue.codebook_version.record()
    chosen = [(game, seats) for game in judged_games if (seats := selection.seats(game)) is not None]
    if not chosen:
        raise BadInput("no game matches the filter", "selection")
    asked, excluded = _asked_seats(codebook, [game for game, _ in chosen])
    wanted = {id(game): seats for game, seats in chosen}
    asked = [(game, seat) for game, seat in asked if seat is None or seat in wanted[id(game)]]
    if not asked:
        raise BadInput(f"{queue.codebook_version} asks about roles that nobody had in these games", "codebook_version")
    last = queue.targets.aggregate(position=Max("position"), batch=Max("batch"))
    first = 0 if last["position"] is None else last["position"] + 1
    if first + len(asked) > MOST_TARGETS:
        raise BadInput(f"{first + len(asked)} seats or games are more than the {MOST_TARGETS} of one queue", "games")
    size, batch = queue.batch_size or len(asked), (last["batch"] or 0) + 1
    targets = [
        Target(
            queue=queue, seat=seat, position=first + number, batch=batch + number // size,
            required=queue.overlap, **games.reference(game),
        )
        for number, (game, seat) in enumerate(asked)
    ]  # fmt: skip
    shuffled = list(targets)
    SystemRandom().shuffle(shuffled)  # annotators read keys: in the order of the games they would tell the step
    Target.objects.bulk_create(shuffled, batch_size=1000)
    queue.excluded = [*queue.excluded, *excluded][:EXCLUDED_SHOWN]
    queue.save(update_fields=["excluded"])
    if queue.assignment == Queue.Assignment.PREASSIGNED:
        share_out(queue, targets)
    return targets


@transaction.atomic
def add_games(
    *,
    queue: Queue,
    by: User,
    matches: Iterable[Match] = (),
    episodes: Iterable[PlayedEpisode] = (),
    conversations: Iterable[StoredConversation] = (),
    selection: Selection = EVERYTHING,
) -> int:
    """Append games to a queue as its next batch; return how many targets they make. Games that it has are left out.

    In a queue of batches the new ones wait until they are opened.
    """
    locked = _locked(queue)
    if locked.rule:
        raise BadInput("a rule judges this queue, which is complete", "queue")
    if locked.state == Queue.State.CLOSED:
        raise BadInput("the queue is closed", "queue")
    matches = list(matches)
    _check_judgeable(by, matches)
    present = {
        name: set(locked.targets.exclude(**{name: None}).values_list(name, flat=True))
        for name in ("match", "episode", "conversation")
    }
    judged_games: list[JudgedGame] = [
        game
        for name, rows in (("match", matches), ("episode", episodes), ("conversation", conversations))
        for game in rows
        if game.pk not in present[name]
    ]
    if not judged_games:
        raise BadInput("the queue has these games already, or none was chosen", "games")
    targets = _add_targets(locked, judged_games, selection)
    if locked.judge is not None:
        hint(locked)
    return len(targets)


def _locked(queue: Queue) -> Queue:
    return Queue.objects.select_for_update(of=("self",)).select_related("codebook_version__codebook").get(pk=queue.pk)


def _of_people(queue: Queue) -> Queue:
    """The queue, locked; `BadInput` unless people judge it and it is not closed."""
    locked = _locked(queue)
    if locked.judge_id is not None or locked.rule:
        raise BadInput("no person judges this queue", "queue")
    if locked.state == Queue.State.CLOSED:
        raise BadInput("the queue is closed for good", "queue")
    return locked


def _to_state(queue: Queue, state: Queue.State) -> None:
    locked = _of_people(queue)
    if locked.state == state:
        raise BadInput(f"the queue is {locked.get_state_display().lower()} already", "queue")
    Queue.objects.filter(pk=locked.pk).update(state=state)


@transaction.atomic
def pause(*, queue: Queue) -> None:
    """Offer nothing of a queue until it is resumed; judgments that are under way are still stored."""
    _to_state(queue, Queue.State.PAUSED)


@transaction.atomic
def resume(*, queue: Queue) -> None:
    """Offer the targets of a paused queue again."""
    _to_state(queue, Queue.State.OPEN)


@transaction.atomic
def close(*, queue: Queue) -> None:
    """End a queue for good: it takes no more judgments, and its annotators read what others said."""
    _to_state(queue, Queue.State.CLOSED)
    queue.invitations.filter(accepted_by=None).delete()


@transaction.atomic
def open_batch(*, queue: Queue) -> int:
    """Open the next batch of a queue; return its number."""
    locked = _of_people(queue)
    last = locked.targets.aggregate(last=Max("batch"))["last"] or 0
    if locked.batches_open is None or locked.batches_open >= last:
        raise BadInput("all batches are open", "queue")
    locked.batches_open += 1
    locked.save(update_fields=["batches_open"])
    return locked.batches_open


def _asked_seats(
    codebook: CodebookRecord, judged_games: Iterable[JudgedGame]
) -> tuple[list[tuple[JudgedGame, int | None]], list[str]]:
    """Return the seats that the codebook asks about, and a line for each game of which it leaves seats out.

    None instead of a seat stands for the whole game.
    """
    if not codebook.about_seats:
        return [(game, None) for game in judged_games], []
    seats_asked: list[tuple[JudgedGame, int | None]] = []
    excluded = []
    for game in judged_games:
        count = games.seat_count(game)
        seats = [seat for seat in range(count) if codebook.asks(role_at(game, seat))]
        seats_asked += [(game, seat) for seat in seats]
        if len(seats) < count:
            others = [seat for seat in range(count) if seat not in seats]
            numbers = ", ".join(f"{seat + 1} ({role_at(game, seat) or 'no role'})" for seat in others)
            excluded.append(f"{games.label(game)}: seat {numbers}")
    if len(excluded) > EXCLUDED_SHOWN:
        excluded[EXCLUDED_SHOWN:] = [f"seats of {len(excluded) - EXCLUDED_SHOWN} more games"]
    return seats_asked, excluded


def hint(queue: Queue) -> None:
    """Send hints for a queue's pending targets after commit; the clock repeats them."""
    for pk in queue.targets.for_models().order_by("pk").values_list("pk", flat=True)[:100]:
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
def record_verdict(*, target: Target, verdict: Verdict | Labelled | None, why: str = "") -> None:
    """Store a judge model's verdict, or that it could not score; replaces an earlier failure of the same target."""
    locked = Target.objects.locked(target.pk)
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
    if verdict is not None and locked.seat is None and locked.turns is None:
        locked.turns = games.game_of(target).turns_shown(hidden=True)
    locked.claimed_until = None
    locked.save(update_fields=["state", "claimed_until", "turns"])


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
    """Delete a queue in which nothing was judged; raise `BadInput` for any other, whose judgments would be lost.

    Those of withdrawn games count: nobody reads them, but they are part of their authors' data and of their work.
    """
    targets = Target.everything.filter(queue=queue)
    list(targets.select_for_update().values_list("pk"))  # a judgment of one of them waits until this is done
    if Judgment.everything.filter(queue=queue).exists():
        raise BadInput("it has judgments, so it cannot be deleted", queue.name)
    Queue.objects.filter(pk=queue.pk).delete()
