"""Writes of datasets: each function is one transaction, and every change of content makes a new version."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from itertools import islice

from django.db import IntegrityError, connection, transaction
from django.db.models import Exists, OuterRef

from training.dataset import Conversation, DatasetLine, episode_hash
from training.errors import BadInput
from training.records import Scenario
from webapp.accounts.models import User
from webapp.core.deleting import refused_if_used
from webapp.scenarios.importers.reading import check_line
from webapp.scenarios.models import (
    Dataset,
    DatasetVersion,
    StoredConversation,
    StoredScenario,
    Withdrawal,
    WithdrawnEpisode,
)
from webapp.scenarios.signals import version_stored
from webapp.scenarios.titles import title_of

BATCH = 500
SLUG = re.compile(r"[-a-zA-Z0-9_]+")

RESERVED = frozenset({"import", "imports"})
"""Names that are addresses of the site."""


def check_name(name: str) -> None:
    """Raise `BadInput` unless a new dataset may have this name."""
    if not SLUG.fullmatch(name) or len(name) > 80 or name in RESERVED:
        raise BadInput("letters, digits, hyphens and underscores only, at most 80, and not import or imports", "name")
    if Dataset.objects.filter(name=name).exists():
        raise BadInput(f"a dataset named {name!r} exists already; choose another name", "name")


@transaction.atomic
def create_dataset(
    *,
    name: str,
    owner: User,
    lines: Iterable[DatasetLine],
    title: str = "",
    source: str = "",
    licence: str = "",
    note: str = "",
    forked_from: DatasetVersion | None = None,
) -> DatasetVersion:
    """Create a dataset with its first version; raise `BadInput` if the name is taken."""
    check_name(name)
    try:
        with transaction.atomic():
            dataset = Dataset.objects.create(
                name=name, owner=owner, title=title, source=source, licence=licence, forked_from=forked_from
            )
    except IntegrityError as error:
        raise BadInput(f"a dataset named {name!r} exists already; choose another name", "name") from error
    return add_version(dataset=dataset, by=owner, lines=lines, note=note)


@transaction.atomic
def add_version(
    *, dataset: Dataset, by: User, lines: Iterable[DatasetLine], note: str = "", stands_for: int | None = None
) -> DatasetVersion:
    """Add the next version with these lines; its hash is that of its own export.

    Raises `BadInput` if they contain a conversation to whose use consent was withdrawn.
    """
    lock_versions(shared=True)
    Dataset.objects.select_for_update().get(pk=dataset.pk)
    last = dataset.versions.order_by("-number").values_list("number", flat=True).first() or 0
    version = DatasetVersion.objects.create(
        dataset=dataset, number=last + 1, created_by=by, note=note, sha256="", stands_for=stands_for
    )
    digest, games = hashlib.sha256(), set()
    position = 0
    stream = iter(lines)
    while batch := list(islice(stream, BATCH)):
        _store(version, batch, position)
        position += len(batch)
        for line in batch:
            games.add(line.scenario.game)
            digest.update(line.dumps().encode() + b"\n")
            version.conversation_count += len(line.conversations)
    version.scenario_count, version.games, version.sha256 = position, sorted(games), digest.hexdigest()
    version.save()
    _check_consent(version)
    version_stored.send(sender=DatasetVersion, version=version)
    return version


def lock_versions(*, shared: bool) -> None:
    """Hold until the end of the transaction a lock that is shared by all who add a version.

    Who takes it alone sees every version that was begun before, and is seen by every later one.
    """
    lock = "pg_advisory_xact_lock_shared" if shared else "pg_advisory_xact_lock"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {lock}(hashtextextended('dataset versions', 0))")


def _check_consent(version: DatasetVersion) -> None:
    """Raise `BadInput` if a conversation of a new version was withdrawn, on this site or as part of another dataset."""
    rows = StoredConversation.objects.filter(scenario__version=version)
    named = Withdrawal.objects.filter(dataset_name__in=["", version.dataset.name], source=OuterRef("source"))
    copied = WithdrawnEpisode.objects.filter(episode_sha256=OuterRef("episode_sha256"))
    row = rows.filter(Exists(named) | Exists(copied)).select_related("scenario").first()
    if row is not None:
        why = f"consent to the use of the conversation {row.source!r} of {row.scenario.key} was withdrawn: leave it out"
        raise BadInput(why, "conversations")


def check_open(version: DatasetVersion, where: str = "dataset") -> None:
    """Raise `BadInput` for a closed version, with the one to choose instead."""
    if version.closed_at is None:
        return
    instead = version.replacement
    choose = f"choose {instead}" if instead else "a version without the withdrawn conversations is being made"
    raise BadInput(f"{version} is closed: {version.closed_why}; {choose}", where)


def _store(version: DatasetVersion, lines: list[DatasetLine], start: int) -> None:
    scenarios = StoredScenario.objects.bulk_create(
        StoredScenario(
            version=version,
            position=start + offset,
            key=line.scenario.id,
            game=line.scenario.game,
            title=title_of(line.scenario),
            data=line.scenario.to_dict(),
        )
        for offset, line in enumerate(lines)
    )
    StoredConversation.objects.bulk_create(
        StoredConversation(
            scenario=stored,
            position=position,
            source=conversation.source,
            data=(episode := conversation.episode.to_dict()),
            episode_sha256=episode_hash(episode),
            judgments=[judgment.to_dict() for judgment in conversation.judgments],
        )
        for stored, line in zip(scenarios, lines, strict=True)
        for position, conversation in enumerate(line.conversations)
    )


def lines_of(version: DatasetVersion) -> Iterator[DatasetLine]:
    """Yield the version's lines in order, as exports and runs read them."""
    scenarios = version.scenarios.order_by("position").prefetch_related("conversations")
    for stored in scenarios.iterator(chunk_size=BATCH):
        yield line_of(stored)


def line_of(stored: StoredScenario) -> DatasetLine:
    """Return one stored scenario with its conversations as a dataset line."""
    conversations = sorted(stored.conversations.all(), key=lambda row: row.position)
    return DatasetLine(
        scenario=Scenario.from_dict(stored.data),
        conversations=tuple(
            Conversation.from_dict({"source": row.source, "episode": row.data, "judgments": row.judgments})
            for row in conversations
        ),
    )


def check_exportable(version: DatasetVersion, by: User) -> None:
    """Raise `BadInput` for a closed version, and, naming the queue, for one with judgments of a conversation that `by`
    has yet to judge.
    """
    check_open(version)
    judged = StoredConversation.objects.filter(scenario__version=version).exclude(judgments=[])
    queue = next(iter(judged.awaited_by(by).values()), None)
    if queue is not None:
        why = f"judge your remaining seats of queue “{queue.name}” first: the version contains what others said"
        raise BadInput(f"{why} of the same conversations", "queue")


def check_newest(version: DatasetVersion) -> None:
    """Raise `BadInput` if there is a later version, whose changes would be lost."""
    check_open(version, "version")
    newest = version.dataset.newest()
    if newest.number != version.number:
        raise BadInput(f"{newest} has been created since, and changes start from the newest version", "version")


@transaction.atomic
def change_scenario(*, stored: StoredScenario, scenario: Scenario, by: User, note: str = "") -> DatasetVersion:
    """Return a new version in which one scenario is replaced; its conversations, played on the old one, are left out.

    Raises `BadInput` if the scenario is not playable, its id is another one's, or its version is not the newest.
    """
    Dataset.objects.select_for_update().get(pk=stored.version.dataset_id)
    check_newest(stored.version)
    check_line(DatasetLine(scenario=scenario), stored.key)
    if scenario.id != stored.key and stored.version.scenarios.filter(key=scenario.id).exists():
        raise BadInput(f"another scenario has the id {scenario.id!r}", "id")

    def lines() -> Iterator[DatasetLine]:
        for line in lines_of(stored.version):
            yield DatasetLine(scenario=scenario) if line.scenario.id == stored.key else line

    return add_version(
        dataset=stored.version.dataset, by=by, lines=lines(), note=note or f"changed scenario {stored.key}"
    )


def fork(*, version: DatasetVersion, name: str, by: User) -> DatasetVersion:
    """Copy a version into a new dataset of `by`, which names its origin; raises `BadInput` for a closed version."""
    check_open(version)
    return create_dataset(
        name=name,
        owner=by,
        lines=lines_of(version),
        title=version.dataset.title,
        source=version.dataset.source,
        licence=version.dataset.licence,
        note=f"forked from {version}",
        forked_from=version,
    )


@transaction.atomic
def delete_dataset(*, dataset: Dataset) -> None:
    """Delete a dataset with all versions; raise `BadInput` if a run still names one of them. Matches keep their own
    copy of what they play.
    """
    with refused_if_used(dataset.name):
        dataset.delete()
