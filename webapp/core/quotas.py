"""Quotas of a user by role: how much they may have at once or start per hour. The limits are `settings.QUOTAS`.

`check` and `spend` are called inside the transaction that writes what is counted: they hold a lock of that person and
quota until the transaction ends, so that requests which arrive at the same time are counted one after the other.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import connection
from django.db.models import QuerySet
from django.db.models.functions import Now

from training.errors import BadInput
from webapp.core.models import QuotaUse

if TYPE_CHECKING:
    from webapp.accounts.models import User

HOUR = timedelta(hours=1)
WORDS: dict[str, tuple[str, str]] = {
    "active_runs": ("runs that are queued or running", "stop one, or wait until one has ended"),
    "runs_per_hour": ("runs that were started or resumed within the last hour", "wait a while"),
    "games_per_run": (
        "games in one run: steps × scenarios × games and those of its head-to-heads and league, or those of a suite",
        "lower learn.steps, rollout.games, evaluate.conversations or league.games; or suite.games",
    ),
    "open_tables": ("tables that are open or being played", "close one, or wait until a game is over"),
    "tables_per_hour": ("tables that were set up within the last hour", "wait a while"),
    "experiment_tables": ("tables of experiments that are being played", "wait until a game is over"),
    "experiments": ("experiments", "delete a draft"),
    "alert_tests_per_hour": ("tests of alerts within the last hour", "wait a while"),
    "participants_per_hour": ("participants of experiments within the last hour", "wait a while"),
    "open_imports": ("imports that are not stored or dropped yet", "accept or drop one"),
    "imports_per_hour": ("imports that were begun within the last hour", "wait a while"),
    "corpora": ("corpora", "delete one"),
    "corpora_per_hour": ("corpora that were uploaded within the last hour", "wait a while"),
    "corpus_mebibytes": ("MiB of corpora in all", "delete a corpus"),
    "requested_models": ("models that wait to be started", "wait until one has started, or stop a running one"),
    "advice_per_hour": ("turns with advice of a coach within the last hour", "wait a while, or move without advice"),
    "chat_messages_per_hour": ("messages that you wrote beside games within the last hour", "wait a while"),
    "chat_reports_per_hour": ("messages that you reported within the last hour", "wait a while"),
    "codebook_versions_per_hour": ("versions of codebooks that were saved within the last hour", "wait a while"),
    "queues_per_hour": ("queues of judgments that were made within the last hour", "wait a while"),
    "data_copies_per_hour": ("copies of your data within the last hour", "wait a while"),
    "open_invitations": ("invitations to queues that nobody has accepted", "revoke one"),
    "api_keys": ("API keys", "revoke one"),
}
"""What each quota counts, and what to do when it is used up."""


def limit(user: User, quota: str) -> int:
    """Return how many this person may have. Permissions decide who may do a thing at all: a role that is not listed has
    the lowest limit that is.
    """
    limits: dict[str, int] = settings.QUOTAS[quota]
    return limits.get(user.role, min(limits.values()))


def check(*, user: User, quota: str, used: QuerySet[Any], wait: bool = True) -> None:
    """Raise `BadInput` naming quota and limit if no more of `used`, counted under the lock, may be added.

    `wait`: whether to wait for another request of this person that holds the lock, or to refuse this one.
    """
    lock = "pg_advisory_xact_lock" if wait else "pg_try_advisory_xact_lock"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {lock}(hashtextextended(%s, 0))", [f"quota {quota} of {user.pk}"])
        if not wait and not cursor.fetchone()[0]:
            raise BadInput("another request of yours of this kind is not done yet: wait for it", quota)
    refuse_above(user=user, quota=quota, count=used.count() + 1)


def spend(*, user: User, quota: str, wait: bool = True) -> None:
    """Use an hourly quota once: as `check`, for what can be deleted again. It counts unless the transaction fails."""
    uses = QuotaUse.objects.filter(user=user, quota=quota)
    check(user=user, quota=quota, used=within_hour(uses, "at"), wait=wait)
    uses.filter(at__lte=Now() - HOUR).delete()
    QuotaUse.objects.create(user=user, quota=quota)


def refuse_above(*, user: User, quota: str, count: int) -> None:
    """Raise `BadInput` naming quota and limit if `count` is more than this person may have."""
    most = limit(user, quota)
    if count > most:
        what, advice = WORDS[quota]
        role = user.get_role_display().lower()
        raise BadInput(f"{count} would be more than the limit of {most} {what} for the role {role}: {advice}", quota)


def within_hour(rows: QuerySet[Any], field: str = "created_at") -> QuerySet[Any]:
    """Return the rows whose time `field` lies within the last hour, by the database's clock."""
    return rows.filter(**{f"{field}__gt": Now() - HOUR})
