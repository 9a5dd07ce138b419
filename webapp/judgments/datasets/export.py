"""Exports judged games as a dataset version: scenarios, conversations and their judgments, each with its provenance.

Games whose people did not all agree are left out, and so are games that were not scored. Games of one scenario are
its conversations; a scenario that was changed since gets a line of its own. People appear under a number of the queue.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC
from itertools import chain, count, groupby, islice
from operator import itemgetter

from django.db import transaction
from django.db.models import Max, Min, Q
from django.utils import timezone

from training.dataset import Conversation, DatasetLine
from training.errors import BadInput
from training.evaluate.behaviours import PERSON
from training.labels.exchange import LabelledScenario
from training.records import Judgment as JudgmentRecord
from training.store import dumps
from webapp.accounts.models import User
from webapp.arena.models import Match
from webapp.judgments import games
from webapp.judgments.models import Judgment, JudgmentQuerySet, Queue, Target, of_same_seat
from webapp.scenarios.models import Dataset, DatasetVersion
from webapp.scenarios.services import add_version, create_dataset

CHUNK = 200
"""Games that are in memory at once."""


class Export:
    """A queue's judged games as scenarios with their conversations, in the order of the queue.

    `by` exports, without the games whose players are not yet revealed to them; None: the site's operator, who may read
    everything. `only`: the games of these targets alone. `left_out` says of each game that is left out why, as far as
    `scenarios` has read. Judgments made after the beginning are not part of it.
    """

    def __init__(self, queue: Queue, by: User | None, only: Collection[int] | None = None) -> None:
        self.left_out: list[str] = []
        self._queue, self._only = queue, only
        self._last = Judgment.objects.aggregate(last=Max("pk"))["last"] or 0
        self._names = _names(queue)  # afterwards, so that every author of a judgment up to the last has one
        self._games = self._plan(by)

    def __bool__(self) -> bool:
        """Whether a game may be exported, as far as is known before it is read."""
        return bool(self._games)

    def scenarios(self) -> Iterator[LabelledScenario]:
        """Yield every scenario with its conversations, which are read before the next scenario is."""
        used: set[str] = set()
        for key, pairs in groupby(self._read(), itemgetter(0)):
            yield _labelled(key, map(itemgetter(1), pairs), used)

    def lines(self) -> list[DatasetLine]:
        """Return all of it as dataset lines."""
        return [
            DatasetLine(scenario=each.scenario, conversations=tuple(each.conversations)) for each in self.scenarios()
        ]

    def _plan(self, by: User | None) -> list[tuple[str, list[int]]]:
        """Return the targets of each game by the hash of its scenario, games of one scenario after each other."""
        queue = self._queue
        matches = Match.objects.filter(targets__queue=queue)
        unrated = set() if by is None else set(matches.unrevealed_to(by).values_list("pk", flat=True))
        scored = set(Judgment.objects.filter(queue=queue).scored().values_list("target", flat=True))
        by_scenario: dict[str, list[list[int]]] = {}
        for targets in _by_game(queue):
            if self._only is not None and not any(target.pk in self._only for target in targets):
                continue
            try:
                if targets[0].match_id in unrated:
                    raise BadInput("rate it first, as you sat there")
                if not any(target.pk in scored for target in targets):
                    raise BadInput("not scored")
                scenario = games.scenario_of(targets[0].game).with_seed(0)
            except BadInput as error:
                self.left_out.append(f"{games.label(targets[0].game)}: {error.why}")
                continue
            key = hashlib.sha256(dumps(scenario.to_dict()).encode()).hexdigest()
            by_scenario.setdefault(key, []).append([target.pk for target in targets])
        return [(key, pks) for key, planned in by_scenario.items() for pks in planned]

    def _read(self) -> Iterator[tuple[str, Conversation]]:
        """Yield the planned games, some at a time, each with the hash of its scenario."""
        planned = iter(self._games)
        while chunk := list(islice(planned, CHUNK)):
            rows = Target.objects.with_games().in_bulk([pk for _, pks in chunk for pk in pks])
            judgments = _judgments(rows.values(), self._last)
            for key, pks in chunk:
                targets = [rows[pk] for pk in pks if pk in rows]
                if not targets:  # the queue was changed meanwhile
                    continue
                try:
                    yield key, self._conversation(targets, judgments)
                except BadInput as error:
                    self.left_out.append(f"{games.label(targets[0].game)}: {error.why}")

    def _conversation(self, targets: list[Target], judgments: Mapping[tuple[str, int], list[Judgment]]) -> Conversation:
        first = targets[0]
        game = games.judgeable(first)
        rows = [row for target in targets for row in judgments.get(("target", target.pk), ())]
        rows.sort(key=lambda row: row.pk)
        if (
            first.match_id is not None or first.conversation_id is not None
        ):  # players' and outside authors' travel along
            kind = "match" if first.match_id is not None else "conversation"
            rows += judgments.get((kind, first.match_id or first.conversation_id or 0), ())
        episode = game.episode()
        digest = hashlib.sha256(dumps(episode.to_dict()).encode()).hexdigest()
        records = tuple(self._record(row, digest) for row in rows)
        return Conversation(source=game.source, episode=episode, judgments=records)

    def _record(self, row: Judgment, digest: str) -> JudgmentRecord:
        return JudgmentRecord(
            codebook=row.codebook_version.codebook.name, codebook_version=row.codebook_version.number, episode=digest,
            seat=row.seat, author=self._names.get(row.author_id or 0, row.by), prompt_sha256=row.prompt_sha256,
            labels=row.records(), reason=row.reason, judged_at=_time(row), seconds=row.seconds,
            suggestions_shown=row.suggestions_shown, unsure=row.unsure, decides=row.decides,
        )  # fmt: skip


def _labelled(key: str, conversations: Iterator[Conversation], used: set[str]) -> LabelledScenario:
    """Return a scenario under an id that is not `used` yet, and becomes it."""
    first = next(conversations)
    scenario = first.episode.scenario
    name = scenario.id if scenario.id not in used else f"{scenario.id[:191]}-{key[:8]}"
    used.add(name)
    return LabelledScenario(scenario.model_copy(update={"id": name}), chain((first,), conversations))


def _judgments(targets: Iterable[Target], last: int) -> dict[tuple[str, int], list[Judgment]]:
    """Return the judgments of targets, by target, and those beside the queue, by match or conversation."""
    rows = list(targets)
    matches = {row.match_id for row in rows if row.match_id is not None}
    conversations = {row.conversation_id for row in rows if row.conversation_id is not None}
    beside = Q(target=None) & (Q(match__in=matches) | Q(conversation__in=conversations))
    rows_to_export = Judgment.objects.with_authors().filter(Q(target__in=rows) | beside, pk__lte=last)
    by_place: dict[tuple[str, int], list[Judgment]] = {}
    for row in rows_to_export:
        kind = "target" if row.target_id is not None else "match" if row.match_id is not None else "conversation"
        by_place.setdefault((kind, row.target_id or row.match_id or row.conversation_id or 0), []).append(row)
    return by_place


def _by_game(queue: Queue) -> Iterator[list[Target]]:
    """Yield the targets of each game; a queue lists the seats of a game consecutively."""
    targets = Target.objects.with_games().filter(queue=queue).order_by("position").iterator(chunk_size=CHUNK)
    for _game, seats in groupby(targets, lambda target: (target.match_id, target.episode_id, target.conversation_id)):
        yield list(seats)


def _travelling(queue: Queue) -> JudgmentQuerySet:
    """Judgments beside the queue's own about its games, also withdrawn ones: players' ratings, outside authors'."""
    targets = Target.everything.filter(queue=queue)
    matches, conversations = (
        targets.filter(**{f"{name}__isnull": False}).values(name) for name in ("match", "conversation")
    )
    beside = Q(match__in=matches) | Q(conversation__in=conversations)
    return Judgment.everything.filter(beside, target=None)


def _exported(queue: Queue) -> JudgmentQuerySet:
    """Judgments that an export of a queue may hold, and those of withdrawn games, which it does not."""
    return Judgment.everything.filter(Q(queue=queue) | Q(pk__in=_travelling(queue).values("pk")))


def _names(queue: Queue) -> dict[int, str]:
    """Return the pseudonym of every person who judged in this queue or rated one of its games, by account.

    They are numbered by their first judgment: a number identifies the same person in every export of the queue, and
    numbers of different queues are unrelated. Numbers that outside authors already use are skipped.
    """
    people = _exported(queue).exclude(author=None).values("author").annotate(first=Min("pk")).order_by("first")
    used = set(_travelling(queue).outside().values_list("outside_author", flat=True))
    free = (name for number in count(1) if (name := f"{PERSON}{number}") not in used)
    return dict(zip(people.values_list("author", flat=True), free, strict=False))


def _time(row: Judgment) -> str:
    return "" if row.updated_at is None else row.updated_at.astimezone(UTC).isoformat(timespec="seconds")


def check_judged(queue: Queue, by: User) -> None:
    """Raise `BadInput` naming the queue in which `by` has yet to judge a seat of this export."""
    if queue.targets.awaited_by(by).exists():
        raise BadInput("judge your remaining seats first: the export contains the judgments of others", "queue")
    others_judged = of_same_seat(_exported(queue).consented().exclude(author=by))
    waiting = Target.objects.awaited_by(by).filter(others_judged).select_related("queue").first()
    if waiting is not None:
        why = f"judge your remaining seats of queue “{waiting.queue.name}” first: the export contains what others said"
        raise BadInput(f"{why} of the same seats", "queue")


@transaction.atomic
def store(
    *, queue: Queue, name: str, by: User, only: Collection[int] | None = None, which: str = "judged games"
) -> tuple[DatasetVersion, list[str]]:
    """Store the export as a new dataset, or as the next version of one's own dataset of that name.

    `only`: the games of these targets alone; `which` says in the version's note what games they are.

    Returns the version and what was left out. From then on the judgments of the queue do not change, if `by` may change
    the queue: no other export takes the annotators' corrections from them. Raises `BadInput` if nothing can be
    exported, the name is taken, or `by` has yet to judge seats of the queue, in it or in another one, whose other
    judgments the export would tell.
    """
    list(queue.targets.select_for_update().values_list("pk"))  # a judgment that is being saved is complete after this
    check_judged(queue, by)
    if by.may_change(queue.owner_id):
        Queue.objects.filter(pk=queue.pk).update(exported_at=timezone.now())
    export = Export(queue, by, only)
    lines = export.lines()
    if not lines:
        raise nothing(export)
    note = f"{which} of queue “{queue.name}” under {queue.codebook_version}"
    existing = Dataset.objects.filter(name=name).first()
    if existing is not None:
        if not by.may_change(existing.owner_id):
            raise BadInput("this dataset is somebody else's; choose another name", "name")
        return add_version(dataset=existing, by=by, lines=lines, note=note), export.left_out
    source, licence = _origin(queue)
    version = create_dataset(name=name, owner=by, lines=lines, source=source, licence=licence, note=note)
    return version, export.left_out


def nothing(export: Export) -> BadInput:
    """Return the error of an export without a game."""
    why = "; ".join(export.left_out[:3]) or "the queue is empty"
    return BadInput(f"no judged game may be exported ({why})", "queue")


def _origin(queue: Queue) -> tuple[str, str]:
    """Return source and licence of an export: those of the datasets whose conversations were judged go with them."""
    datasets = Dataset.objects.filter(versions__scenarios__conversations__targets__queue=queue).distinct()
    rows = list(datasets.order_by("name").values_list("name", "licence"))
    names = "".join(f", {name}" for name, _ in rows)
    licences = sorted({licence for _, licence in rows if licence})
    return f"judged games of queue {queue.pk}{names}"[:400], "; ".join(licences)[:120]
