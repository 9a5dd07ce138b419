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
from datetime import timedelta
from smtplib import SMTPException

from django.core.mail import send_mail
from django.db import transaction
from django.db.models.functions import Now

from training.errors import BadInput
from webapp.runs.alerts.models import AlertRule, Delivery
from webapp.runs.alerts.services import allowed_addresses

TIMEOUT_S = 10.0
MAX_BYTES = 64 * 1024
CLAIM = timedelta(seconds=60)
"""A claimed delivery that is not done by then is sent again."""
PAUSES = (30, 120, 600, 1800, 7200, 21600)
"""Seconds until the next try after each failure; after the last one the delivery has failed."""


class NotDelivered(Exception):
    """The receiver did not take a delivery."""


def send_due(limit: int = 100) -> int:
    """Send what is due; return how many deliveries were tried."""
    tried = 0
    while tried < limit and (delivery := _claim()) is not None:
        tried += 1
        try:
            _send(delivery)
        except (NotDelivered, BadInput, OSError, SMTPException) as error:
            _failed(delivery, str(error) or type(error).__name__)
        else:
            Delivery.objects.filter(pk=delivery.pk).update(state=Delivery.State.SENT, sent_at=Now(), error="")
    return tried


@transaction.atomic
def _claim() -> Delivery | None:
    waiting = Delivery.objects.due().select_for_update(skip_locked=True, of=("self",))
    delivery = waiting.select_related("rule__user").order_by("next_at").first()
    if delivery is not None:
        delivery.tries += 1
        delivery.next_at = Now() + CLAIM
        delivery.save(update_fields=["tries", "next_at"])
    return delivery


def _failed(delivery: Delivery, why: str) -> None:
    over = delivery.tries > len(PAUSES)
    pause = timedelta(seconds=0 if over else PAUSES[delivery.tries - 1])
    state = Delivery.State.FAILED if over else Delivery.State.WAITING
    Delivery.objects.filter(pk=delivery.pk).update(state=state, error=why[:300], next_at=Now() + pause)


def _send(delivery: Delivery) -> None:
    rule = delivery.rule
    if not rule.user.is_active or not rule.user.is_researcher:
        raise NotDelivered("the account may no longer see runs")
    if rule.channel == AlertRule.Channel.MAIL:
        _mail(delivery)
    else:
        asyncio.run(_post(rule, json.dumps({**delivery.body, "delivery": delivery.pk}).encode()))


def _mail(delivery: Delivery) -> None:
    body = delivery.body
    title = " ".join(f"Parley: {body['event']}: run {body['run'] or ''} {body['name']}".split())
    lines = [f"{name}: {value}" for name, value in body.items() if value not in ("", None)]
    if not delivery.rule.user.email:
        raise NotDelivered("the account has no mail address")
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
