"""Sends due deliveries, in a worker. A claimed one is due again later, so that a worker that dies loses none."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta

from django.db import connection, transaction
from django.db.models.functions import Now

from training.errors import BadInput
from webapp.runs.alerts.channels import CHANNELS, NotDelivered
from webapp.runs.alerts.models import Delivery

logger = logging.getLogger(__name__)

TOGETHER = 16
"""Deliveries that are sent at the same time, so that a slow receiver delays no other."""
SENDER = 0x616C657274
"""Key of the lock by which one worker sends at a time: slow receivers keep one thread of the queue, never all."""
CLAIM = timedelta(seconds=60)
"""A claimed delivery that is not done by then is sent again."""
PAUSES = (30, 120, 600, 1800, 7200, 21600)
"""Seconds until the next try after each failure; after the last one the delivery has failed."""


def send_due(limit: int = 100) -> int:
    """Send what is due; return how many deliveries were tried: none while another worker sends."""
    tried = 0
    with _only_sender() as alone:
        while alone and tried < limit and (claimed := _claim()):
            tried += len(claimed)
            _send_together(claimed)
    return tried


@contextmanager
def _only_sender() -> Iterator[bool]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [SENDER])
        alone = bool(cursor.fetchone()[0])
    try:
        yield alone
    finally:
        if alone:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [SENDER])


def _send_together(deliveries: Sequence[Delivery]) -> None:
    """Send deliveries from a thread each, and store what came of them."""
    refused = {delivery.pk: _refused(delivery) for delivery in deliveries}
    with ThreadPoolExecutor(TOGETHER) as pool:
        sent = [pool.submit(_problem, each, refused[each.pk]) for each in deliveries]
    for delivery, outcome in zip(deliveries, sent, strict=True):
        if error := outcome.exception():  # a fault of ours, which must not keep the others from being stored
            logger.error("alert %s was not sent", delivery.pk, exc_info=error)
        if problem := f"internal error: {type(error).__name__}" if error else outcome.result():
            _failed(delivery, problem)
        else:
            Delivery.objects.filter(pk=delivery.pk).update(state=Delivery.State.SENT, sent_at=Now(), error="")


@transaction.atomic
def _claim() -> list[Delivery]:
    waiting = Delivery.objects.due().select_for_update(skip_locked=True, of=("self",))
    deliveries = list(waiting.select_related("rule__user").order_by("next_at")[:TOGETHER])
    for delivery in deliveries:
        delivery.tries += 1
        delivery.next_at = Now() + CLAIM
        delivery.save(update_fields=["tries", "next_at"])
    return deliveries


def _failed(delivery: Delivery, why: str) -> None:
    over = delivery.tries > len(PAUSES)
    pause = timedelta(seconds=0 if over else PAUSES[delivery.tries - 1])
    state = Delivery.State.FAILED if over else Delivery.State.WAITING
    Delivery.objects.filter(pk=delivery.pk).update(state=state, error=why[:300], next_at=Now() + pause)


def _refused(delivery: Delivery) -> str:
    """Why a delivery may not be sent; empty if it may. Reads the database, which the sending threads do not."""
    rule = delivery.rule
    if not rule.user.is_active or not rule.user.is_researcher:
        return "the account may no longer see runs"
    if rule.channel not in CHANNELS:
        return f"this site has no channel {rule.channel!r}"
    return CHANNELS[rule.channel].refused(rule)


def _problem(delivery: Delivery, refused: str) -> str:
    """Send one delivery unless it is refused; return why it did not arrive, empty if it did."""
    if refused:
        return refused
    try:
        CHANNELS[delivery.rule.channel].send(delivery)
    except (NotDelivered, BadInput, OSError) as error:
        return str(error) or type(error).__name__
    return ""
