"""Withdrawing consent to the use of a game that datasets contain already.

`withdraw` closes, in one transaction, every version that contains the game or a copy of it. The rest is the work of the
`Withdrawal` row, which a worker does and the clock repeats until it is done: `work` makes a version without the game in
the place of each closed one, and erases the conversation in the closed ones. Every function may be called again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import timedelta

from django.db import transaction
from django.db.models import Exists, OuterRef, Prefetch, Q
from django.db.models.functions import Now

from training.dataset import DatasetLine
from training.errors import BadInput
from webapp.accounts.models import User
from webapp.core import queue
from webapp.scenarios.models import (
    Dataset,
    DatasetVersion,
    DatasetVersionQuerySet,
    StoredConversation,
    StoredConversationQuerySet,
    StoredScenario,
    Withdrawal,
    WithdrawnEpisode,
)
from webapp.scenarios.services import add_version, line_of, lock_versions
from webapp.scenarios.signals import version_closed

LEASE = timedelta(minutes=30)
"""How long a worker may take before another one continues."""
WHY = "consent to the use of a conversation was withdrawn"


@transaction.atomic
def withdraw(
    *, source: str, hashes: Collection[str] = (), dataset_name: str = "", by: User | None = None
) -> Withdrawal:
    """Withdraw a game of this site, or a conversation of a dataset, from every dataset; return the row of the work.

    `hashes` are the episodes' hashes that are known. Twice is the same as once.
    """
    withdrawal, _ = Withdrawal.objects.get_or_create(source=source, dataset_name=dataset_name, defaults={"by": by})
    _remember(withdrawal, hashes)
    close_versions(withdrawal=withdrawal)
    queue.send(queue.WITHDRAW, withdrawal.pk)
    return withdrawal


@transaction.atomic
def withdraw_conversation(*, conversation: StoredConversation, by: User) -> Withdrawal:
    """Withdraw one conversation of a dataset, and every copy of it, because the person behind it asks for it."""
    version = conversation.scenario.version
    same = StoredConversation.objects.filter(scenario__version=version, source=conversation.source)
    digest = conversation.episode_sha256
    source = conversation.source if same.count() == 1 and conversation.source else f"episode:{digest}"
    return withdraw(source=source, hashes=[digest], dataset_name=version.dataset.name, by=by)


def _remember(withdrawal: Withdrawal, hashes: Collection[str]) -> None:
    WithdrawnEpisode.objects.bulk_create(
        [WithdrawnEpisode(withdrawal=withdrawal, episode_sha256=digest) for digest in sorted(set(hashes))],
        ignore_conflicts=True,
    )


def copies_of(withdrawal: Withdrawal) -> StoredConversationQuerySet:
    """The conversations that are the game: by their source, and all that have the scenario and moves of such a one."""
    named = StoredConversation.objects.filter(source=withdrawal.source)
    if withdrawal.dataset_name:
        named = named.filter(scenario__version__dataset__name=withdrawal.dataset_name)
    _remember(withdrawal, named.values_list("episode_sha256", flat=True))
    hashes = withdrawal.episodes.values("episode_sha256")
    return StoredConversation.objects.filter(Q(pk__in=named.values("pk")) | Q(episode_sha256__in=hashes))


@transaction.atomic
def close_versions(*, withdrawal: Withdrawal) -> int:
    """Mark every copy of a game as withdrawn and close the versions that contain one; return how many were closed."""
    copies_of(withdrawal).filter(withdrawn_at=None).update(withdrawn_at=Now())
    versions = containing(withdrawal).readable().select_for_update(of=("self",)).order_by("pk")
    closed = list(versions.select_related("dataset"))
    for version in closed:
        DatasetVersion.objects.filter(pk=version.pk).update(closed_at=Now(), closed_why=WHY)
        version.refresh_from_db()
        version_closed.send(sender=DatasetVersion, version=version)
    return len(closed)


def containing(withdrawal: Withdrawal) -> DatasetVersionQuerySet:
    """The versions that contain a copy of the game."""
    scenarios = StoredScenario.objects.filter(conversations__in=copies_of(withdrawal).values("pk"))
    return DatasetVersion.objects.filter(pk__in=scenarios.values("version"))


def work(*, pk: int) -> bool:
    """Do what a withdrawal still asks for; return whether it is done. Nothing is done while another worker does it."""
    withdrawal = _claim(pk)
    if withdrawal is None:
        return False
    with transaction.atomic():
        lock_versions(shared=False)  # a version that was begun before the withdrawal is complete after this
        close_versions(withdrawal=withdrawal)
    try:
        for version in _unreplaced(withdrawal):
            replace(version=version)
    except BadInput:  # another conversation of the version was withdrawn meanwhile: the clock begins again
        Withdrawal.objects.filter(pk=pk).update(claimed_until=None)
        return False
    versions = containing(withdrawal).select_related("dataset").order_by("pk")
    report = {"versions": [str(version) for version in versions], "erased": erase(withdrawal=withdrawal)}
    Withdrawal.objects.filter(pk=pk).update(done_at=Now(), report=report, claimed_until=None)
    return True


@transaction.atomic
def _claim(pk: int) -> Withdrawal | None:
    rows = Withdrawal.objects.unfinished().select_for_update(skip_locked=True, of=("self",))
    claimed = rows.filter(pk=pk).first()
    if claimed is not None:
        Withdrawal.objects.filter(pk=pk).update(claimed_until=Now() + LEASE)
    return claimed


def _unreplaced(withdrawal: Withdrawal) -> list[DatasetVersion]:
    """The closed versions without one in their place, oldest first."""
    closed = containing(withdrawal).filter(closed_at__isnull=False).select_related("dataset", "created_by")
    return [version for version in closed.order_by("dataset", "number") if version.replacement is None]


@transaction.atomic
def replace(*, version: DatasetVersion) -> DatasetVersion | None:
    """Add the version that stands in the place of a closed one; None if there is one already.

    A scenario of which every conversation was withdrawn is left out, as it may say who the person is.
    """
    Dataset.objects.select_for_update().get(pk=version.dataset_id)
    if version.replacement is not None:
        return None
    return add_version(
        dataset=version.dataset,
        by=version.created_by,
        lines=_kept(version),
        note=f"{version} without what was withdrawn: {WHY}",
        stands_for=version.stands_for or version.number,
    )


def _kept(version: DatasetVersion) -> Iterator[DatasetLine]:
    withdrawn = StoredConversation.objects.withdrawn().filter(scenario=OuterRef("pk"))
    kept = StoredConversation.objects.filter(scenario=OuterRef("pk"), withdrawn_at=None)
    scenarios = version.scenarios.exclude(Exists(withdrawn) & ~Exists(kept)).order_by("position")
    conversations = Prefetch("conversations", StoredConversation.objects.filter(withdrawn_at=None))
    for stored in scenarios.prefetch_related(conversations).iterator(chunk_size=500):
        yield line_of(stored)


@transaction.atomic
def erase(*, withdrawal: Withdrawal) -> int:
    """Erase what the copies of a game say, and scenarios that are theirs alone; return how many copies there are."""
    rows = copies_of(withdrawal).withdrawn()
    kept = StoredConversation.objects.filter(scenario=OuterRef("pk"), withdrawn_at=None)
    scenarios = StoredScenario.objects.filter(conversations__in=rows.values("pk")).exclude(Exists(kept))
    scenarios.filter(pk__in=list(scenarios.values_list("pk", flat=True))).update(data={}, title="")
    return rows.update(data={}, judgments=[])
