"""Exports judged games as a dataset version: scenarios, conversations and their judgments, each with its provenance.

Games whose people did not all agree are left out, and so are games that were not scored. Games of one scenario are
its conversations; a scenario that was changed since gets a line of its own. People appear under a number of the queue.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC
from itertools import count, groupby

from django.db import transaction
from django.db.models import Min, Q
from django.utils import timezone

from training.dataset import Conversation, DatasetLine
from training.errors import BadInput
from training.evaluate.behaviours import PERSON
from training.records import Judgment as JudgmentRecord
from training.records import Scenario
from training.store import dumps
from webapp.accounts.models import User
from webapp.arena.models import Match
from webapp.judgments import games
from webapp.judgments.models import Judgment, JudgmentQuerySet, Queue, Target, of_same_seat
from webapp.scenarios.models import Dataset, DatasetVersion
from webapp.scenarios.services import add_version, create_dataset

CHUNK = 200
"""Targets that are in memory at once."""


@dataclass
class Export:
    """The lines of an export and what was left out, with the reason of each."""

    lines: list[DatasetLine] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def collect(queue: Queue, by: User) -> Export:
    """Return a queue's judged games as dataset lines, without those whose players are not yet revealed to `by`."""
    export = Export()
    unrated = set(Match.objects.filter(targets__queue=queue).unrevealed_to(by).values_list("pk", flat=True))
    names = _names(queue)
    by_scenario: dict[str, tuple[Scenario, list[Conversation]]] = {}
    for targets in _by_game(queue):
        try:
            if targets[0].match_id in unrated:
                raise BadInput("rate it first, as you sat there")
            conversation = _conversation(targets, names)
        except BadInput as error:
            export.left_out.append(f"{games.label(targets[0].game)}: {error.why}")
            continue
        scenario = conversation.episode.scenario.with_seed(0)
        key = hashlib.sha256(dumps(scenario.to_dict()).encode()).hexdigest()
        by_scenario.setdefault(key, (conversation.episode.scenario, []))[1].append(conversation)
    used: set[str] = set()
    for key, (scenario, conversations) in by_scenario.items():
        name = scenario.id if scenario.id not in used else f"{scenario.id[:191]}-{key[:8]}"
        used.add(name)
        line = DatasetLine(scenario=scenario.model_copy(update={"id": name}), conversations=tuple(conversations))
        export.lines.append(line)
    return export


def _by_game(queue: Queue) -> Iterator[list[Target]]:
    """Yield the targets of each game; a queue lists the seats of a game consecutively."""
    targets = Target.objects.with_games().filter(queue=queue).order_by("position").iterator(chunk_size=CHUNK)
    for _game, seats in groupby(targets, lambda target: (target.match_id, target.episode_id, target.conversation_id)):
        yield list(seats)


def _travelling(queue: Queue) -> JudgmentQuerySet:
    """Judgments beside the queue's own that an export of its games includes: players' ratings, outside authors'."""
    matches, conversations = (
        queue.targets.filter(**{f"{name}__isnull": False}).values(name) for name in ("match", "conversation")
    )
    beside = Q(match__in=matches) | Q(conversation__in=conversations)
    return Judgment.objects.filter(beside, target=None)


def _exported(queue: Queue) -> JudgmentQuerySet:
    """Judgments that an export of a queue may hold."""
    return Judgment.objects.filter(Q(target__queue=queue) | Q(pk__in=_travelling(queue).values("pk")))


def _names(queue: Queue) -> dict[int, str]:
    """Return the pseudonym of every person who judged in this queue or rated one of its games, by account.

    They are numbered by their first judgment: a number stands for the same person in every export of the queue, and
    says nothing in any other. Numbers that outside authors use already are left out.
    """
    people = _exported(queue).exclude(author=None).values("author").annotate(first=Min("pk")).order_by("first")
    used = set(_travelling(queue).outside().values_list("outside_author", flat=True))
    free = (name for number in count(1) if (name := f"{PERSON}{number}") not in used)
    return dict(zip(people.values_list("author", flat=True), free, strict=False))


def _conversation(targets: list[Target], names: Mapping[int, str]) -> Conversation:
    first = targets[0]
    rows = list(Judgment.objects.with_authors().filter(target__in=targets))
    if all(row.unscored for row in rows):
        raise BadInput("not scored")
    game = games.judgeable(first)
    if first.episode_id is None:  # what players or outside authors said of it travels along
        rows += Judgment.objects.with_authors().filter(target=None, **games.reference(first.game))
    episode = game.episode()
    digest = hashlib.sha256(dumps(episode.to_dict()).encode()).hexdigest()
    records = tuple(
        JudgmentRecord(
            codebook=row.codebook_version.codebook.name, codebook_version=row.codebook_version.number, episode=digest,
            seat=row.seat, author=names.get(row.author_id or 0, row.by), prompt_sha256=row.prompt_sha256,
            labels=row.records(), reason=row.reason, judged_at=_time(row), decides=row.decides,
        )
        for row in rows
    )  # fmt: skip
    return Conversation(source=game.source, episode=episode, judgments=records)


def _time(row: Judgment) -> str:
    return "" if row.updated_at is None else row.updated_at.astimezone(UTC).isoformat(timespec="seconds")


def _check_judged(queue: Queue, by: User) -> None:
    """Raise `BadInput` naming the queue in which `by` has yet to judge a seat of this export."""
    if queue.targets.open_for(by).exists():
        raise BadInput("judge your remaining seats first: the export contains the judgments of others", "queue")
    others_judged = of_same_seat(_exported(queue).exclude(author=by))
    waiting = Target.objects.open_for(by).filter(others_judged).select_related("queue").first()
    if waiting is not None:
        why = f"judge your remaining seats of queue “{waiting.queue.name}” first: the export contains what others said"
        raise BadInput(f"{why} of the same seats", "queue")


@transaction.atomic
def store(*, queue: Queue, name: str, by: User) -> tuple[DatasetVersion, list[str]]:
    """Store the export as a new dataset, or as the next version of one's own dataset of that name.

    Returns the version and what was left out. From then on the judgments of the queue do not change, if `by` may change
    the queue: no other export takes the annotators' corrections from them. Raises `BadInput` if nothing can be
    exported, the name is taken, or `by` has yet to judge seats of the queue, in it or in another one, whose other
    judgments the export would tell.
    """
    list(queue.targets.select_for_update().values_list("pk"))  # a judgment that is being saved is complete after this
    _check_judged(queue, by)
    if by.may_change(queue.owner_id):
        Queue.objects.filter(pk=queue.pk).update(exported_at=timezone.now())
    export = collect(queue, by)
    if not export.lines:
        why = "; ".join(export.left_out[:3]) or "the queue is empty"
        raise BadInput(f"no judged game may be exported ({why})", "queue")
    note = f"judged games of queue “{queue.name}” under {queue.codebook_version}"
    existing = Dataset.objects.filter(name=name).first()
    if existing is not None:
        if not by.may_change(existing.owner_id):
            raise BadInput("this dataset is somebody else's; choose another name", "name")
        return add_version(dataset=existing, by=by, lines=export.lines, note=note), export.left_out
    source, licence = _origin(queue)
    version = create_dataset(name=name, owner=by, lines=export.lines, source=source, licence=licence, note=note)
    return version, export.left_out


def _origin(queue: Queue) -> tuple[str, str]:
    """Return source and licence of an export: those of the datasets whose conversations were judged go with them."""
    datasets = Dataset.objects.filter(versions__scenarios__conversations__targets__queue=queue).distinct()
    rows = list(datasets.order_by("name").values_list("name", "licence"))
    names = "".join(f", {name}" for name, _ in rows)
    licences = sorted({licence for _, licence in rows if licence})
    return f"judged games of queue {queue.pk}{names}"[:400], "; ".join(licences)[:120]
