"""The channels by which alerts are sent, by name in `CHANNELS`: what a rule stores, and how a delivery is sent.

A webhook gets a POST with JSON. Its header `Authorization: Parley-HMAC-SHA256 t=SECONDS,v=HEX` signs the body: HEX is
the HMAC of `SECONDS.BODY` with the rule's secret. Redirects are not followed, and only addresses that
were checked against the list and the forbidden networks are contacted.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from smtplib import SMTPException
from typing import TYPE_CHECKING, ClassVar

from allauth.account.models import EmailAddress
from django.conf import settings
from django.core.mail import send_mail

from training.engines.remote.addresses import AllowList
from training.errors import BadInput
from webapp.accounts.models import User, new_token

if TYPE_CHECKING:
    from webapp.runs.alerts.models import AlertRule, Delivery

TIMEOUT_S = 5.0
"""Time limit for a webhook's response; a delivery that takes longer is retried later."""
MAX_BYTES = 64 * 1024


class NotDelivered(Exception):
    """The receiver did not accept a delivery."""


class Channel(ABC):
    """One way to send alerts. `label` is its name in the form, `help` what the form says about its address."""

    label: ClassVar[str]
    help: ClassVar[str] = ""

    @abstractmethod
    def fields(self, user: User, address: str) -> Mapping[str, str]:
        """Return the `address` and `secret` of a new rule, if the channel uses them.

        Raises `BadInput` at `channel` or `address` if the channel cannot reach this user.
        """

    @abstractmethod
    def destination(self, rule: AlertRule) -> str:
        """Return the destination of a rule's alerts, as its owner reads it."""

    def refused(self, rule: AlertRule) -> str:
        """Return why nothing may be sent now, or an empty string. Runs before `send`; may read the database."""
        return ""

    @abstractmethod
    def send(self, delivery: Delivery) -> None:
        """Send a delivery. Runs in a separate thread; must not read the database.

        Raises `NotDelivered`, `BadInput` or `OSError` on failure.
        """


class Email(Channel):
    """Email to the account's confirmed address."""

    label = "email to your account's address"

    def fields(self, user: User, address: str) -> Mapping[str, str]:
        """Return nothing: the address is that of the account."""
        if not settings.MAIL_READY:
            raise BadInput("this site sends no email; an administrator must set PARLEY_MAIL", "channel")
        if not user.email:
            raise BadInput("your account has no email address", "channel")
        if not verified(user):
            raise BadInput(f"{user.email} is not confirmed: request a link below and open it first", "channel")
        return {}

    def destination(self, rule: AlertRule) -> str:
        """Return the address of the account."""
        return f"email to {rule.user.email}"

    def refused(self, rule: AlertRule) -> str:
        """Refuse an address that is not confirmed, such as a new one."""
        return "" if verified(rule.user) else "the email address of the account is not confirmed"

    def send(self, delivery: Delivery) -> None:
        """Send an email with one line per field."""
        body = delivery.body
        title = " ".join(f"Parley: {body['event']}: run {body['run'] or ''} {body['name']}".split())
        lines = [f"{name}: {value}" for name, value in body.items() if value not in ("", None)]
        try:
            send_mail(title, "\n".join(lines), None, [delivery.rule.user.email])
        except (SMTPException, ValueError) as error:
            raise NotDelivered(str(error) or type(error).__name__) from error


class Webhook(Channel):
    """A signed POST to an allowed address."""

    label = "webhook"
    help = "Webhooks only; it must be listed in WEBHOOK_ADDRESSES."

    def fields(self, user: User, address: str) -> Mapping[str, str]:
        """Return the address, if it is allowed, and a new signing secret."""
        try:
            allowed_addresses().check(address)
        except BadInput as error:
            raise BadInput(error.why, "address") from error
        return {"address": address, "secret": new_token("whsec_")}

    def destination(self, rule: AlertRule) -> str:
        """Return the address."""
        return rule.address

    def send(self, delivery: Delivery) -> None:
        """Post the alert."""
        body = json.dumps({**delivery.body, "delivery": delivery.pk}).encode()
        asyncio.run(self.post(delivery.rule, body))

    async def post(self, rule: AlertRule, body: bytes) -> None:
        """Post a signed body. Raises `NotDelivered` unless the response has status 2xx and arrives in time."""
        import httpx2
        from openai import OpenAIError

        from training.engines.remote.transport import GuardedTransport

        allowed = allowed_addresses()
        allowed.check(rule.address)
        headers = {"authorization": signature(rule.secret, body, int(time.time())), "content-type": "application/json"}
        transport = GuardedTransport(allowed, TIMEOUT_S, MAX_BYTES)
        try:
            async with httpx2.AsyncClient(transport=transport, follow_redirects=False, trust_env=False) as client:
                response = await client.post(rule.address, content=body, headers=headers)
        except (httpx2.HTTPError, OpenAIError, ValueError) as error:
            raise NotDelivered(str(error) or type(error).__name__) from error
        if not 200 <= response.status_code < 300:
            raise NotDelivered(f"the address answered {response.status_code}")


CHANNELS: dict[str, Channel] = {"email": Email(), "webhook": Webhook()}
"""The channels, by the name that a rule stores."""


def allowed_addresses() -> AllowList:
    """The allowed webhook addresses; none by default."""
    return AllowList.of(settings.WEBHOOK_ADDRESSES, noun="webhook", variable="WEBHOOK_ADDRESSES")


def verified(user: User) -> bool:
    """Whether this user has confirmed the account's email address."""
    return bool(user.email) and EmailAddress.objects.filter(user=user, email__iexact=user.email, verified=True).exists()


def signature(secret: str, body: bytes, seconds: int) -> str:
    """The value of the header `Authorization` for a body sent at this Unix time."""
    digest = hmac.new(secret.encode(), f"{seconds}.".encode() + body, hashlib.sha256).hexdigest()
    return f"Parley-HMAC-SHA256 t={seconds},v={digest}"
