"""How the client waits, repeats, pages and reports, against a server that answers as a script says."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from unittest.mock import Mock

import httpx2
import pytest

from parley_client import Client, Conflict, Invalid, NotFound, ParleyError, Unauthorised, Unavailable
from parley_client import transport as transports


class Script:
    """Answers with the given (status, headers, JSON) in turn, or raises; keeps the requests and the seconds slept."""

    def __init__(self, monkeypatch, *answers):
        self.answers, self.requests, self.slept = list(answers), [], []
        monkeypatch.setattr(transports, "time", Mock(sleep=self.slept.append))  # not that of other threads

    def client(self, **options):
        client = Client("http://site.example/", "parley_key", **options)
        client._transport._http = httpx2.Client(
            base_url=client._transport._http.base_url,
            headers=client._transport._http.headers,
            transport=httpx2.MockTransport(self._answer),
        )
        return client

    def _answer(self, request):
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        status, headers, body = answer
        return httpx2.Response(status, headers=headers, json=body)


RUN = {
    "id": 1, "kind": "train", "name": "a", "owner": "rosa", "state": "running", "queue": "train-cpu", "config": {},
    "method": "", "game": "", "base": "tiny", "step": 0, "steps": 2, "key_metric": None, "result": None, "error": "",
    "code_version": "", "created_at": "2026-01-01T00:00:00Z", "started_at": None, "ended_at": None,
    "aliases": {}, "withdrawn_data": [],
}  # fmt: skip


def test_a_busy_site_is_asked_again_after_as_long_as_it_says(monkeypatch):
    script = Script(monkeypatch, (429, {"Retry-After": "7"}, {}), (503, {}, {}), (200, {}, RUN))
    assert script.client().runs.get(1).name == "a"
    assert script.slept == [7.0, 2.0]
    assert script.requests[0].headers["Authorization"] == "Bearer parley_key"
    assert str(script.requests[0].url) == "http://site.example/api/v1/runs/1"


def test_a_site_that_stays_busy_is_reported_with_its_own_sentence(monkeypatch):
    script = Script(monkeypatch, *[(429, {}, {"where": "", "why": "too many runs within an hour"})] * 3)
    with pytest.raises(Unavailable, match="too many runs within an hour") as error:
        script.client(retries=2).runs.start({"name": "a"})
    assert (error.value.status, script.slept) == (429, [1.0, 2.0])


def test_nobody_waits_longer_than_they_want(monkeypatch):
    script = Script(monkeypatch, (503, {"Retry-After": "3600"}, {}))
    with pytest.raises(Unavailable, match="3600 seconds"):
        script.client().runs.get(1)
    assert script.slept == []


def test_what_broke_off_is_repeated_only_where_that_changes_nothing(monkeypatch):
    broken = httpx2.ReadError("gone")
    assert Script(monkeypatch, broken, (200, {}, RUN)).client().runs.get(1).id == 1
    script = Script(monkeypatch, broken)
    with pytest.raises(Unavailable, match="could not be reached"):
        script.client().runs.stop(1)
    assert len(script.requests) == 1


@pytest.mark.parametrize(
    "status, kind", [(401, Unauthorised), (404, NotFound), (409, Conflict), (422, Invalid), (500, ParleyError)]
)
def test_a_refusal_says_what_the_site_says(monkeypatch, status, kind):
    script = Script(monkeypatch, (status, {}, {"where": "learn.lr", "why": "must be positive"}))
    with pytest.raises(kind, match=r"^learn\.lr: must be positive$") as error:
        script.client().runs.get(1)
    assert (error.value.status, error.value.where, error.value.why) == (status, "learn.lr", "must be positive")


def test_a_list_is_fetched_page_after_page(monkeypatch):
    monkeypatch.setattr(transports, "PAGE", 2)
    pages = [[RUN | {"id": number} for number in numbers] for numbers in ((5, 4), (3,))]
    script = Script(monkeypatch, *[(200, {}, {"items": items, "count": 3}) for items in pages])
    assert [run.id for run in script.client().runs.list(state="running")] == [5, 4, 3]
    assert [dict(request.url.params) for request in script.requests] == [
        {"state": "running", "limit": "2", "offset": "0"},
        {"state": "running", "limit": "2", "offset": "2"},
    ]


def test_a_download_that_breaks_off_leaves_no_file(monkeypatch, tmp_path):
    script = Script(monkeypatch, httpx2.ReadError("gone"))
    with pytest.raises(Unavailable, match="broke off"):
        script.client().checkpoints.download(1, tmp_path / "a.zip")
    assert list(tmp_path.iterdir()) == []


def test_a_retry_after_is_seconds_or_a_date():
    assert transports.wait_of(" 12 ", default=1) == 12
    assert transports.wait_of("soon", default=3) == 3
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    assert 25 < transports.wait_of(later, default=1) <= 30


def test_address_and_key_come_from_arguments_or_the_environment(monkeypatch):
    monkeypatch.delenv("PARLEY_URL", raising=False)
    monkeypatch.delenv("PARLEY_KEY", raising=False)
    with pytest.raises(ParleyError, match="PARLEY_URL"):
        Client()
    monkeypatch.setenv("PARLEY_URL", "http://a.example")
    with pytest.raises(ParleyError, match="PARLEY_KEY"):
        Client()
    monkeypatch.setenv("PARLEY_KEY", "parley_x")
    with Client() as client:
        assert client._transport._http.headers["Authorization"] == "Bearer parley_x"
    with Client("http://b.example", "parley_y") as client:
        assert str(client._transport._http.base_url) == "http://b.example/api/v1/"
