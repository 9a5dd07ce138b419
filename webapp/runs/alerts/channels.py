"""The channels by which alerts are sent, by name in `CHANNELS`: what a rule needs, and how a delivery leaves.

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
"""How long a webhook may take to answer. Whatever takes longer is tried again later, from its row."""
MAX_BYTES = 64 * 1024


class NotDelivered(Exception):
    """The receiver did not take a delivery."""


class Channel(ABC):
    """One way to send alerts. `label` is its name in the form, `help` what the form says about its address."""

    label: ClassVar[str]
    help: ClassVar[str] = ""

    @abstractmethod
    def fields(self, user: User, address: str) -> Mapping[str, str]:
        """Return the `address` and `secret` of a new rule, as far as it has any.

        Raises `BadInput` at `channel` or `address` where this person cannot be reached by it.
        """

    @abstractmethod
    def destination(self, rule: AlertRule) -> str:
        """Return where alerts of a rule go, for its owner."""

    def refused(self, rule: AlertRule) -> str:
        """Return why nothing may be sent now; empty if it may. Runs before `send`, and may read the database."""
        return ""

    @abstractmethod
    def send(self, delivery: Delivery) -> None:
        """Send a delivery. Runs in a thread of its own, and does not read the database.

        Raises `NotDelivered`, `BadInput` or `OSError` if it has not arrived.
        """


class Email(Channel):
    """Mail to the address of the account, which its owner has confirmed."""

    label = "email to your account's address"

    def fields(self, user: User, address: str) -> Mapping[str, str]:
        """Return nothing: the address is that of the account."""
        if not settings.MAIL_READY:
            raise BadInput("this site sends no email; an administrator sets PARLEY_MAIL", "channel")
        if not user.email:
            raise BadInput("your account has no email address", "channel")
        if not verified(user):
            raise BadInput(f"{user.email} is not confirmed: have a link sent to it below, and open it first", "channel")
        return {}

    def destination(self, rule: AlertRule) -> str:
        """Return the address of the account."""
        return f"email to {rule.user.email}"

    def refused(self, rule: AlertRule) -> str:
        """Refuse an address that is not confirmed, such as a new one."""
        return "" if verified(rule.user) else "the email address of the account is not confirmed"

    def send(self, delivery: Delivery) -> None:
        """Send a mail with a line for each fact."""
        body = delivery.body
        title = " ".join(f"Parley: {body['event']}: run {body['run'] or ''} {body['name']}".split())
        lines = [f"{name}: {value}" for name, value in body.items() if value not in ("", None)]
        try:
            send_mail(title, "\n".join(lines), None, [delivery.rule.user.email])
        except (SMTPException, ValueError) as error:
            raise NotDelivered(str(error) or type(error).__name__) from error


class Webhook(Channel):
    """A signed POST to an address of the list."""

    label = "webhook"
    help = "Of a webhook; it must be on the list in WEBHOOK_ADDRESSES."

    def fields(self, user: User, address: str) -> Mapping[str, str]:
        """Return an address of the list, and a key of its signatures."""
        try:
            allowed_addresses().check(address)
        except BadInput as error:
            raise BadInput(error.why, "address") from error
        return {"address": address, "secret": new_token("whsec_")}

    def destination(self, rule: AlertRule) -> str:
        """Return the address."""
        return rule.address

    def send(self, delivery: Delivery) -> None:
        """Post what has happened."""
        body = json.dumps({**delivery.body, "delivery": delivery.pk}).encode()
        asyncio.run(self.post(delivery.rule, body))

    async def post(self, rule: AlertRule, body: bytes) -> None:
        """Post a signed body. Raises `NotDelivered` unless it is answered with 2xx in time."""
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
        except (httpx2.HTTPError, OpenAIError, ValueError) as error:
            raise NotDelivered(str(error) or type(error).__name__) from error
        if not 200 <= answer.status_code < 300:
            raise NotDelivered(f"the address answered {answer.status_code}")


CHANNELS: dict[str, Channel] = {"email": Email(), "webhook": Webhook()}
"""All channels by the name that a rule stores."""


def allowed_addresses() -> AllowList:
    """The list of webhook addresses; without entries none is allowed."""
    return AllowList.of(settings.WEBHOOK_ADDRESSES, noun="webhook", variable="WEBHOOK_ADDRESSES")


def verified(user: User) -> bool:
    """Whether this person has confirmed the email address of their account."""
    return bool(user.email) and EmailAddress.objects.filter(user=user, email__iexact=user.email, verified=True).exists()


def signature(secret: str, body: bytes, seconds: int) -> str:
    """The value of the header `Authorization` for a body that is sent at this Unix time."""
    digest = hmac.new(secret.encode(), f"{seconds}.".encode() + body, hashlib.sha256).hexdigest()
    return f"Parley-HMAC-SHA256 t={seconds},v={digest}"
