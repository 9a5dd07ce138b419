"""Services for alerts: rules, and rows for what has happened. `webapp.runs.alerts.sending` sends them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.db.models import CharField, Exists, OuterRef, Q, Value
from django.db.models.functions import Cast, Concat, Now

from training.errors import BadInput
from webapp.accounts.models import User, new_token
from webapp.core import queue, quotas
from webapp.runs.alerts.channels import CHANNELS
from webapp.runs.alerts.models import AlertRule, Delivery

if TYPE_CHECKING:
    from webapp.runs.models import Run

STALE = timedelta(minutes=5)
MOST_RULES = 20
HINT_SECONDS = 10.0


@transaction.atomic
def add_rule(
    *, user: User, events: Sequence[str], channel: str, address: str = "", run: Run | None = None
) -> AlertRule:
    """Store a rule. Raises `BadInput` at `channel` or `address` if this person cannot be reached so."""
    User.objects.select_for_update().get(pk=user.pk)
    if user.alert_rules.count() >= MOST_RULES:
        raise BadInput(f"you have {MOST_RULES} alerts: remove one first", "events")
    if channel not in CHANNELS:
        raise BadInput(f"unknown channel {channel[:40]!r}; known: {', '.join(CHANNELS)}", "channel")
    fields = CHANNELS[channel].fields(user, address)
    return AlertRule.objects.create(user=user, run=run, events=list(events), channel=channel, **fields)


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
    return note(run=run, event=run.state, key=f"end {run.pk} {last} {run.state}", why=run.error)


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
    noted = Delivery.objects.filter(key=Concat(Value("stale "), Cast(OuterRef("pk"), CharField())))
    rules = AlertRule.objects.filter(Q(run=OuterRef("run")) | Q(run=None, user=OuterRef("run__owner")))
    due = attempts.filter(Exists(rules.filter(events__contains=["stale"])), ~Exists(noted))
    count = 0
    for attempt in due.select_related("run").defer("log", "run__config", "run__result")[:200]:
        why = f"no progress since {attempt.progressed_at:%Y-%m-%d %H:%M} UTC, phase {attempt.phase or 'starting'}"
        count += note(run=attempt.run, event="stale", key=f"stale {attempt.pk}", why=why)
    return count


def repeat_hints() -> int:
    """Clock step: tell a worker that deliveries are due."""
    due: Any = Delivery.objects.due().count()
    if due:
        queue.publish(queue.ALERT, expires=HINT_SECONDS)
    return int(due)
