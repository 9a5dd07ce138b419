"""Services for alerts: rules, and rows for what has happened. `webapp.runs.alerts.sending` sends them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from training.engines.remote.addresses import AllowList
from training.errors import BadInput
from webapp.accounts.models import User, new_token
from webapp.core import queue, quotas
from webapp.runs.alerts.models import AlertRule, Delivery

if TYPE_CHECKING:
    from webapp.runs.models import Run

EVENTS = {
    "finished": "a run has succeeded",
    "failed": "a run has failed",
    "stopped": "a run was stopped",
    "stale": "a running run shows no progress for five minutes",
    "watchdog": "the watchdog of a run reports something",
}
OF_STATE = {"succeeded": "finished", "failed": "failed", "stopped": "stopped"}
STALE = timedelta(minutes=5)
MOST_RULES = 20
HINT_SECONDS = 10.0


def allowed_addresses() -> AllowList:
    """The list of webhook addresses; without entries none is allowed."""
    return AllowList.of(settings.WEBHOOK_ADDRESSES)


@transaction.atomic
def add_rule(
    *, user: User, events: Sequence[str], channel: str, address: str = "", run: Run | None = None
) -> AlertRule:
    """Store a rule. Raises `BadInput` at its field if its address is not on the list or mail cannot be sent."""
    User.objects.select_for_update().get(pk=user.pk)
    if user.alert_rules.count() >= MOST_RULES:
        raise BadInput(f"you have {MOST_RULES} alerts: remove one first", "events")
    if channel == AlertRule.Channel.MAIL:
        if not settings.MAIL_READY:
            raise BadInput("this site has no mail server; an administrator sets PARLEY_MAIL", "channel")
        if not user.email:
            raise BadInput("your account has no mail address", "channel")
        return AlertRule.objects.create(user=user, run=run, events=list(events), channel=channel)
    try:
        allowed_addresses().check(address)
    except BadInput as error:
        why = error.why.replace("model addresses", "webhook addresses").replace("MODEL_ADDRESSES", "WEBHOOK_ADDRESSES")
        raise BadInput(why, "address") from error
    secret = new_token("whsec_")
    return AlertRule.objects.create(
        user=user, run=run, events=list(events), channel=channel, address=address, secret=secret
    )


def note(*, run: Run, event: str, key: str, why: str = "") -> int:
    """Write a delivery for everybody who wants to hear of this; in the transaction of what has happened.

    `key` names what has happened: a second note with the same key writes nothing. Returns the number of rules.
    """
    if run.kind == "serve":
        return 0
    rules = AlertRule.objects.filter(Q(run=run) | Q(run=None, user=run.owner_id), events__contains=[event])
    body = {"event": event, "run": run.pk, "name": run.name, "state": run.state, "step": run.step, "why": why[:500]}
    made = [Delivery(rule=rule, key=key[:120], event=event, body=body) for rule in rules]
    if made:
        Delivery.objects.bulk_create(made, ignore_conflicts=True)
        queue.send(queue.ALERT)
    return len(made)


def note_end(run: Run) -> int:
    """Write the deliveries for a run that has just ended, once for each of its attempts."""
    last = run.attempts.order_by("-number").values_list("number", flat=True).first()
    return note(run=run, event=OF_STATE[run.state], key=f"end {run.pk} {last} {run.state}", why=run.error)


@transaction.atomic
def test(*, rule: AlertRule) -> None:
    """Queue a delivery that says that the rule works. Raises `BadInput` after too many of them."""
    quotas.spend(user=rule.user, quota="alert_tests_per_hour")
    body = {"event": "test", "run": rule.run_id, "name": "", "state": "", "step": 0, "why": "This is a test."}
    Delivery.objects.create(rule=rule, key=new_token("test "), event="test", body=body)
    queue.send(queue.ALERT)


def note_stale() -> int:
    """Clock step: write deliveries for runs without progress, once for each attempt."""
    from webapp.runs.models import Attempt

    attempts = Attempt.objects.filter(state="running", run__state="running", progressed_at__lt=Now() - STALE)
    count = 0
    for attempt in attempts.select_related("run").defer("log", "run__config", "run__result")[:200]:
        if not Delivery.objects.filter(key=f"stale {attempt.pk}").exists():
            why = f"no progress since {attempt.progressed_at:%Y-%m-%d %H:%M} UTC, phase {attempt.phase or 'starting'}"
            count += note(run=attempt.run, event="stale", key=f"stale {attempt.pk}", why=why)
    return count


def repeat_hints() -> int:
    """Clock step: tell a worker that deliveries are due."""
    due: Any = Delivery.objects.due().count()
    if due:
        queue.publish(queue.ALERT, expires=HINT_SECONDS)
    return int(due)
