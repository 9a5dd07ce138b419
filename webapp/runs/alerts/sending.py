"""Sends due deliveries, in a worker. A claimed one is due again later, so that a worker that dies loses none.

A webhook gets a POST with JSON. Its header `Authorization: Parley-HMAC-SHA256 t=SECONDS,v=HEX` signs the body: HEX is
the HMAC of `SECONDS.BODY` with the rule's secret. Redirects are not followed, and only addresses that were checked
against the list and the forbidden networks are connected to.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from smtplib import SMTPException

from django.core.mail import send_mail
from django.db import connection, transaction
from django.db.models.functions import Now

from training.errors import BadInput
from webapp.runs.alerts.models import AlertRule, Delivery
from webapp.runs.alerts.services import allowed_addresses, verified

TIMEOUT_S = 5.0
"""How long a webhook may take to answer. Whatever takes longer is tried again later, from its row."""
TOGETHER = 16
"""Deliveries that are sent at the same time, so that a slow receiver delays no other."""
SENDER = 0x616C657274
"""Key of the lock by which one worker sends at a time: slow receivers keep one thread of the queue, never all."""
MAX_BYTES = 64 * 1024
CLAIM = timedelta(seconds=60)
"""A claimed delivery that is not done by then is sent again."""
PAUSES = (30, 120, 600, 1800, 7200, 21600)
"""Seconds until the next try after each failure; after the last one the delivery has failed."""


class NotDelivered(Exception):
    """The receiver did not take a delivery."""


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
        if problem := outcome.result():
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
    if rule.channel == AlertRule.Channel.EMAIL and not verified(rule.user):
        return "the email address of the account is not confirmed"
    return ""


def _problem(delivery: Delivery, refused: str) -> str:
    """Send one delivery unless it is refused; return why it did not arrive, empty if it did."""
    if refused:
        return refused
    rule = delivery.rule
    try:
        if rule.channel == AlertRule.Channel.EMAIL:
            _email(delivery)
        else:
            asyncio.run(_post(rule, json.dumps({**delivery.body, "delivery": delivery.pk}).encode()))
    except (NotDelivered, BadInput, OSError, SMTPException, ValueError) as error:
        return str(error) or type(error).__name__
    return ""


def _email(delivery: Delivery) -> None:
    body = delivery.body
    title = " ".join(f"Parley: {body['event']}: run {body['run'] or ''} {body['name']}".split())
    lines = [f"{name}: {value}" for name, value in body.items() if value not in ("", None)]
    send_mail(title, "\n".join(lines), None, [delivery.rule.user.email])


def signature(secret: str, body: bytes, seconds: int) -> str:
    """The value of the header `Authorization` for a body that is sent at this Unix time."""
    digest = hmac.new(secret.encode(), f"{seconds}.".encode() + body, hashlib.sha256).hexdigest()
    return f"Parley-HMAC-SHA256 t={seconds},v={digest}"


async def _post(rule: AlertRule, body: bytes) -> None:
    import httpx2
    from openai import OpenAIError

    from training.engines.remote.transport import GuardedTransport

    allowed = allowed_addresses()
    allowed.check(rule.address)
    headers = {"authorization": signature(rule.secret, body, int(time.time())), "content-type": "application/json"}
    transport = GuardedTransport(allowed, TIMEOUT_S, MAX_BYTES)
    try:
        async with httpx2.AsyncClient(transport=transport, follow_redirects=False, trust_env=False) as client:
            answer = await client.post(rule.address, content=body, headers=headers)
    except (httpx2.HTTPError, OpenAIError) as error:
        raise NotDelivered(str(error) or type(error).__name__) from error
    if not 200 <= answer.status_code < 300:
        raise NotDelivered(f"the address answered {answer.status_code}")
