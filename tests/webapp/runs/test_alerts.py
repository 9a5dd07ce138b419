"""Alerts: a row for each thing that happens, sent at least once, signed, to addresses of the list alone."""

import hashlib
import hmac
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from django.core import mail
from django.db import connection
from django.db.models.functions import Now
from django.test import Client
from django.urls import reverse

from tests.webapp.runs.making import make_run
from training.errors import BadInput
from webapp.accounts.models import User
from webapp.runs import attempts, batches, services
from webapp.runs.alerts import channels, sending
from webapp.runs.alerts import services as alerts
from webapp.runs.alerts.models import AlertRule, Delivery
from webapp.runs.models import Attempt, Run

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).parents[3]


class Receiver(ThreadingHTTPServer):
    """A local server that keeps what was posted, and answers with `status`."""

    def __init__(self) -> None:
        self.got: list[tuple[str, bytes, str]] = []
        self.status = 204
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                receiver.got.append((self.path, body, self.headers["authorization"]))
                self.send_response(receiver.status)
                if receiver.status == 302:
                    self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Stay silent."""

        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_port}/hooks"


@pytest.fixture
def receiver(settings: Any) -> Iterator[Receiver]:
    server = Receiver()
    settings.WEBHOOK_ADDRESSES = [f"http://127.0.0.1:{server.server_port}/"]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def client(researcher: Any, client_of: Callable[..., Client]) -> Client:
    return client_of(researcher)


def claimed(run: Run) -> Attempt:
    attempt = attempts.claim(run_id=run.pk, worker="w", host="h")
    assert attempt is not None
    attempts.started(attempt=attempt, pid=1, pid_started=1.0, start_step=0, code_version="c")
    return attempt


def hook(user: Any, receiver: Receiver, *events: str, run: Run | None = None) -> AlertRule:
    return alerts.add_rule(user=user, events=events, channel="webhook", address=receiver.address, run=run)


def test_the_end_of_a_run_is_posted_once_and_signed(researcher: Any, receiver: Receiver) -> None:
    run = make_run(researcher, name="long", state="queued")
    rule = hook(researcher, receiver, "failed")
    attempts.finish(attempt=claimed(run), state="failed", exit_code=1, error="out of memory")
    run.refresh_from_db()
    alerts.note_end(run)  # as a second time
    assert sending.send_due() == 1
    assert sending.send_due() == 0
    ((path, body, header),) = receiver.got
    assert path == "/hooks"
    facts = {"event": "failed", "run": run.pk, "name": "long", "state": "failed", "step": 0, "why": "out of memory"}
    assert json.loads(body) == {**facts, "delivery": Delivery.objects.get().pk}
    seconds, digest = header.removeprefix("Parley-HMAC-SHA256 t=").split(",v=")
    signed = hmac.new(rule.secret.encode(), seconds.encode() + b"." + body, hashlib.sha256).hexdigest()
    assert digest == signed
    assert Delivery.objects.get().state == "sent"


def test_each_kind_of_event_reaches_whoever_asked_for_it(
    researcher: Any, other_researcher: Any, receiver: Receiver
) -> None:
    run = make_run(researcher, state="queued")
    hook(researcher, receiver, "watchdog", "succeeded")
    hook(other_researcher, receiver, "stopped", "succeeded")  # all of their own: not this one
    hook(other_researcher, receiver, "succeeded", run=run)
    attempt = claimed(run)
    event = {"kind": "watchdog", "at": 1.0, "why": "KL is too large"}
    for _ in range(2):  # the same lines may be read twice
        attempts.record(attempt=attempt, batch=batches.Batch(events=[dict(event)], offsets={"events.jsonl": 1}))
    attempts.finish(attempt=attempt, state="succeeded", exit_code=0)
    stored = Delivery.objects.order_by("pk").values_list("event", "rule__user__username")
    assert sorted(stored) == [("succeeded", "otto"), ("succeeded", "rosa"), ("watchdog", "rosa")]


def test_a_queued_run_that_is_stopped_and_a_silent_one_are_reported(researcher: Any, receiver: Receiver) -> None:
    hook(researcher, receiver, "stopped", "stale")
    services.stop_run(run=make_run(researcher, state="queued"))
    run = make_run(researcher, state="queued")
    attempt = claimed(run)
    Run.objects.filter(pk=run.pk).update(state="running")
    Attempt.objects.filter(pk=attempt.pk).update(progressed_at=Now() - timedelta(minutes=4))
    assert alerts.note_stale() == 0
    Attempt.objects.filter(pk=attempt.pk).update(progressed_at=Now() - timedelta(minutes=6))
    assert alerts.note_stale() == 1
    assert alerts.note_stale() == 0, "once for each attempt"
    assert sorted(Delivery.objects.values_list("event", flat=True)) == ["stale", "stopped"]


@pytest.mark.parametrize("status", [302, 404, 500])
def test_a_refused_delivery_is_tried_again_later_and_given_up_at_last(
    researcher: Any, receiver: Receiver, status: int
) -> None:
    receiver.status = status
    alerts.test(rule=hook(researcher, receiver, "failed"))
    for tries in range(1, len(sending.PAUSES) + 2):
        assert sending.send_due() == 1
        delivery = Delivery.objects.get()
        assert (delivery.tries, delivery.error) == (tries, f"the address answered {status}")
        assert sending.send_due() == 0, "its pause is not over"
        Delivery.objects.update(next_at=Now())
    assert delivery.state == "failed"
    assert {path for path, _, _ in receiver.got} == {"/hooks"}, "a redirect is not followed"


def test_a_worker_that_dies_loses_no_delivery(researcher: Any, receiver: Receiver) -> None:
    alerts.test(rule=hook(researcher, receiver, "failed"))
    assert sending._claim()  # and dies
    assert sending.send_due() == 0
    Delivery.objects.update(next_at=Now())
    assert sending.send_due() == 1
    assert len(receiver.got) == 1


def test_addresses_are_those_of_the_list_when_set_and_when_sent(
    researcher: Any, receiver: Receiver, settings: Any
) -> None:
    for address in ("http://169.254.169.254/latest", "https://example.org/", "ftp://127.0.0.1/", "nonsense"):
        with pytest.raises(BadInput) as refused:
            alerts.add_rule(user=researcher, events=["failed"], channel="webhook", address=address)
        assert refused.value.where == "address"
    alerts.test(rule=hook(researcher, receiver, "failed"))
    settings.WEBHOOK_ADDRESSES = []
    sending.send_due()
    assert not receiver.got
    assert "not on the list" in Delivery.objects.get().error


def test_metadata_is_not_reached_even_if_the_list_names_it(researcher: Any, settings: Any) -> None:
    settings.WEBHOOK_ADDRESSES = ["http://169.254.169.254/"]
    rule = alerts.add_rule(user=researcher, events=["failed"], channel="webhook", address="http://169.254.169.254/x")
    alerts.test(rule=rule)
    sending.send_due()
    assert "a link-local or metadata address" in Delivery.objects.get().error


def test_mail_goes_to_the_address_of_the_account(researcher: Any, settings: Any) -> None:
    with pytest.raises(BadInput, match="sends no email"):
        alerts.add_rule(user=researcher, events=["failed"], channel="email")
    settings.MAIL_READY = True
    researcher.email = "rosa@example.org"
    researcher.save()
    address = EmailAddress.objects.create(user=researcher, email=researcher.email, verified=True)
    alerts.add_rule(user=researcher, events=["failed"], channel="email")
    run = make_run(researcher, state="queued", name="a\nb")
    attempts.finish(attempt=claimed(run), state="failed", exit_code=1, error="why")
    assert sending.send_due() == 1
    (sent,) = mail.outbox
    assert sent.to == ["rosa@example.org"]
    assert sent.subject == f"Parley: failed: run {run.pk} a b"
    assert "why: why" in sent.body
    address.delete()  # as when the account has another address by now
    alerts.test(rule=AlertRule.objects.get())
    sending.send_due()
    assert len(mail.outbox) == 1
    assert Delivery.objects.get(event="test").error == "the email address of the account is not confirmed"


def test_email_needs_an_address_that_its_owner_has_confirmed(client: Client, researcher: Any, settings: Any) -> None:
    settings.MAIL_READY = True
    researcher.email = "rosa@example.org"
    researcher.save()
    data = {"events": ["failed"], "channel": "email"}
    refused = client.post(reverse("runs:alerts"), data)
    assert "rosa@example.org is not confirmed" in refused.content.decode()
    client.post(reverse("accounts:confirm-email"))
    (sent,) = mail.outbox
    assert sent.to == ["rosa@example.org"]
    (link,) = re.findall(r"/accounts/confirm-email/\S+", str(sent.body))
    assert "belong to the account rosa?" in client.get(link).content.decode()
    assert not EmailAddress.objects.get().verified, "opening the link is not enough: scanners open links, too"
    client.post(link)
    assert client.post(reverse("runs:alerts"), data).status_code == 302


@pytest.mark.parametrize("mail, addresses, warned", [(False, [], True), (True, [], False), (False, ["x"], False)])
def test_a_site_that_reaches_nobody_says_so_before_a_rule_is_refused(
    client: Client, settings: Any, mail: bool, addresses: list[str], warned: bool
) -> None:
    settings.MAIL_READY, settings.WEBHOOK_ADDRESSES = mail, addresses
    text = client.get(reverse("runs:alerts")).content.decode()
    assert ("Neither email nor webhooks are set up" in text) == warned


def test_slow_receivers_delay_no_others_and_only_one_worker_sends(
    researcher: Any, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        alerts.test(rule=hook(researcher, receiver, "failed"))
    together = threading.Barrier(3, timeout=20)

    async def post(self: channels.Webhook, rule: AlertRule, body: bytes) -> None:
        together.wait()  # passes only if all three are sent at the same time

    monkeypatch.setattr(channels.Webhook, "post", post)
    assert sending.send_due() == 3
    assert set(Delivery.objects.values_list("state", flat=True)) == {"sent"}
    alerts.test(rule=AlertRule.objects.first())
    other = connection.copy()
    with other.cursor() as cursor:  # another worker sends
        cursor.execute("SELECT pg_advisory_lock(%s)", [sending.SENDER])
        assert sending.send_due() == 0
        cursor.execute("SELECT pg_advisory_unlock(%s)", [sending.SENDER])
    other.close()
    monkeypatch.undo()
    assert sending.send_due() == 1


def test_silent_runs_without_a_rule_or_with_a_note_cost_one_query(
    researcher: Any, receiver: Receiver, django_assert_num_queries: Any
) -> None:
    for _ in range(3):
        attempt = claimed(make_run(researcher, state="queued"))
        Run.objects.filter(pk=attempt.run_id).update(state="running")
    Attempt.objects.update(progressed_at=Now() - timedelta(minutes=6))
    with django_assert_num_queries(1):
        assert alerts.note_stale() == 0
    hook(researcher, receiver, "stale")
    assert alerts.note_stale() == 3
    with django_assert_num_queries(1):
        assert alerts.note_stale() == 0


def test_an_alert_is_set_tested_and_removed_on_its_page(client: Client, researcher: Any, receiver: Receiver) -> None:
    page = reverse("runs:alerts")
    assert "You have no alerts yet" in client.get(page).content.decode()
    data = {"events": ["failed", "watchdog"], "channel": "webhook", "address": "https://example.org/"}
    refused = client.post(page, data)
    assert refused.status_code == 400
    assert "not on the list of allowed webhook addresses" in refused.content.decode()
    client.post(page, {**data, "address": receiver.address})
    rule = AlertRule.objects.get()
    client.post(reverse("runs:act-on-alert", args=[rule.pk]), {"action": "test"})
    sending.send_due()
    text = client.get(page).content.decode()
    assert "<li>a run has failed</li>" in text
    assert ">a test</td>" in text
    assert "sent</span></td>" in text
    client.post(reverse("runs:act-on-alert", args=[rule.pk]), {"action": "remove"})
    assert not Delivery.objects.exists()


class Board(channels.Channel):
    """A notice board on the wall, which fills up."""

    label = "notice board"

    def __init__(self) -> None:
        self.notes: list[str] = []

    def fields(self, user: User, address: str) -> dict[str, str]:
        return {"address": "the corridor"}

    def destination(self, rule: AlertRule) -> str:
        return f"board in {rule.address}"

    def refused(self, rule: AlertRule) -> str:
        return "the board is full" if len(self.notes) == 1 else ""

    def send(self, delivery: Delivery) -> None:
        self.notes.append(delivery.body["event"])


def test_a_fault_in_one_channel_keeps_no_other_alert_from_being_stored(
    researcher: User, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(Board):
        def send(self, delivery: Delivery) -> None:
            raise RuntimeError("no such wall")

    monkeypatch.setitem(channels.CHANNELS, "board", Broken())
    alerts.test(rule=alerts.add_rule(user=researcher, events=["failed"], channel="board"))
    alerts.test(rule=hook(researcher, receiver, "failed"))
    assert sending.send_due() == 2
    outcomes = Delivery.objects.order_by("pk").values_list("state", "tries", "error")
    assert list(outcomes) == [("waiting", 1, "internal error: RuntimeError"), ("sent", 1, "")]


def test_a_new_channel_is_its_class_and_a_line(
    client: Client, researcher: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    board = Board()
    monkeypatch.setitem(channels.CHANNELS, "board", board)
    rule = alerts.add_rule(user=researcher, events=["failed"], channel="board")
    for sent in (1, 1):  # the second one is refused
        alerts.test(rule=rule)
        sending.send_due()
        assert len(board.notes) == sent
    text = client.get(reverse("runs:alerts")).content.decode()
    assert text.count("board in the corridor") == 3, "the rule, and two deliveries"
    assert "the board is full" in text
    monkeypatch.delitem(channels.CHANNELS, "board")  # a rule outlives its channel
    Delivery.objects.update(next_at=Now())
    sending.send_due()
    assert Delivery.objects.get(state="waiting").error == "this site has no channel 'board'"
    assert client.get(reverse("runs:alerts")).status_code == 200
    with pytest.raises(BadInput, match="unknown channel 'board'; known: email, webhook"):
        alerts.add_rule(user=researcher, events=["failed"], channel="board")


def test_the_receiver_of_the_documentation_recognises_the_site() -> None:
    page = (ROOT / "docs" / "alerts.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(code, "docs/alerts.md", "exec"), names)  # noqa: S102 (the example of our documentation)
    is_genuine, body = names["is_genuine"], b'{"event": "failed"}'
    sent = int(time.time())
    header = channels.signature("whsec_a", body, sent)
    assert is_genuine(header, body, "whsec_a")
    assert not is_genuine(header, body, "whsec_b")
    assert not is_genuine(header, body + b" ", "whsec_a")
    assert not is_genuine(header.replace(str(sent), str(sent + 1)), body, "whsec_a")
    assert not is_genuine(channels.signature("whsec_a", body, sent - 301), body, "whsec_a"), "too old"
    assert not is_genuine("Bearer x", body, "whsec_a")
