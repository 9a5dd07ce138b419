"""Nobody fills the installation: every field has a bound, every person a quota, also under fifty requests at once."""

import json
import threading
from datetime import timedelta

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connections
from django.db.models.functions import Now
from django.test import Client
from django.urls import reverse

from tests.bounds import unbounded
from tests.trust.matrix.api import TABLE
from tests.trust.matrix.scenarios import SCENARIO
from tests.webapp.judgments.make import finished_match, people_queue
from training import config as configs
from training.dataset import DatasetLine
from training.errors import BadInput
from training.records import Scenario
from webapp import settings as site_settings
from webapp.accounts.models import ApiKey
from webapp.accounts.services import create_key
from webapp.arena.models import Match
from webapp.arena.setup import tables, waiting_room
from webapp.core import queue, quotas
from webapp.core.models import QuotaUse
from webapp.judgments.codebooks import services as codebooks
from webapp.judgments.models import Codebook, CodebookVersion
from webapp.judgments.queues.services import delete_queue
from webapp.runs import services
from webapp.runs.models import Checkpoint, Run
from webapp.scenarios import imports
from webapp.scenarios.models import Dataset, Import
from webapp.scenarios.services import create_dataset, delete_dataset
from webapp.serving import services as serving

AT_ONCE = 50


def bearer(user):
    return {"Authorization": f"Bearer {create_key(user=user, name='k')[1]}"}


def post(client, path, body, key):
    return client.post(f"/api/v1/{path}", json.dumps(body), "application/json", headers=key)


def test_every_field_of_a_run_has_a_bound():
    schema = configs.schema()
    assert set(unbounded(schema, schema["$defs"])) == set()


def test_every_field_of_a_scenario_has_a_bound():
    """Those of its settings: `tests/contract/test_games.py`."""
    schema = Scenario.model_json_schema()
    assert set(unbounded(schema, schema.get("$defs", {}))) == set()


TOO_MUCH = [
    ("learn.steps", {"learn": {"steps": 10**6}}),
    ("evaluate.conversations", {"kind": "eval", "evaluate": {"conversations": 10**9}}),
    ("rollout.games", {"rollout": {"scenarios": 4096, "games": 256}}),
    ("engine.cache_gib", {"engine": {"cache_gib": 1e9}}),
    ("learn.threads", {"learn": {"threads": 100_000}}),
    ("game.settings", {"game": {"name": "negotiation", "settings": {f"unknown{n}": "x" * 1000 for n in range(50)}}}),
    ("config", {"game": {"name": "negotiation", "settings": {f"unknown{n}": "x" * 1000 for n in range(3000)}}}),
    ("mixture.0.settings", {"mixture": [{"game": "werewolf", "settings": {"unknown": 1}}]}),
    ("config", {"kind": "eval", "game": {"name": "dialogue", "settings": {"constraints": {"a": "x" * 70_000}}}}),
    ("games_per_run", {"learn": {"steps": 100_000}, "rollout": {"scenarios": 64, "games": 16}}),
    ("games_per_run", {"learn": {"steps": 100}, "evaluate": {"every": 1, "conversations": 100_000}}),
]


@pytest.mark.parametrize("where, config", TOO_MUCH, ids=[where for where, _ in TOO_MUCH])
def test_a_run_that_asks_for_too_much_is_refused_by_its_field(where, config, researcher, client):
    response = post(client, "runs", {"config": {"model": {"base": "tiny"}, **config}}, bearer(researcher))
    assert (response.status_code, response.json()["where"]) == (422, where)
    assert len(response.json()["why"]) < 600
    assert not Run.objects.exists()


@pytest.fixture
def few(settings):
    """Small limits, so that they are soon reached."""
    settings.QUOTAS = {name: dict.fromkeys(limits, 3) for name, limits in settings.QUOTAS.items()}
    settings.QUOTAS["games_per_run"] = {"researcher": 10**6}
    settings.QUOTAS["runs_per_hour"] = {"researcher": 6}
    settings.QUOTAS["tables_per_hour"] = {"player": 6}
    settings.QUOTAS["api_keys"] = dict.fromkeys(settings.QUOTAS["api_keys"], 5)
    return settings


@pytest.mark.parametrize("conversations, allowed", [(100, True), (102, False)])
def test_the_conversations_of_a_head_to_head_count_as_games(conversations, allowed, researcher, few):
    few.QUOTAS["games_per_run"] = {"researcher": 100}
    config = configs.RunConfig(kind="eval", model={"base": "tiny"}, evaluate={"conversations": conversations})
    if allowed:
        assert services.create_run(owner=researcher, config=config)
        return
    with pytest.raises(BadInput, match="102 would be more than the limit of 100 games in one run"):
        services.create_run(owner=researcher, config=config)


def test_a_head_to_head_counts_the_whole_rounds_that_it_plays(researcher, few):
    few.QUOTAS["games_per_run"] = {"researcher": 103}
    lines = [DatasetLine(scenario=SCENARIO.model_copy(update={"id": f"start {n}"})) for n in range(26)]
    version = create_dataset(name="starts", owner=researcher, lines=lines)
    config = configs.RunConfig(kind="eval", model={"base": "tiny"}, evaluate={"conversations": 53})
    with pytest.raises(BadInput, match="104 would be more than the limit of 103 games"):  # two rounds of 26 starts
        services.create_run(owner=researcher, config=config, dataset_version=version)
    few.QUOTAS["games_per_run"] = {"researcher": 59}
    limited = config.model_copy(update={"data": config.data.model_copy(update={"limit": 10})})
    with pytest.raises(BadInput, match="60 would be more than the limit of 59 games"):  # three rounds of 10
        services.create_run(owner=researcher, config=limited, dataset_version=version)


def start(owner):
    return services.create_run(owner=owner, config=configs.RunConfig(model={"base": "tiny"}))


def test_active_runs_are_counted_until_they_end_and_a_resumed_one_again(researcher, other_researcher, few):
    runs = [start(researcher) for _ in range(3)]
    with pytest.raises(BadInput, match="active_runs: 4 would be more than the limit of 3 runs that are queued"):
        start(researcher)
    assert start(other_researcher)
    services.stop_run(run=runs[0])
    assert start(researcher)
    with pytest.raises(BadInput, match="active_runs"):
        services.resume_run(run=runs[0])


def test_runs_within_an_hour_are_counted_though_they_were_stopped_and_deleted(researcher, few):
    for _ in range(5):
        run = start(researcher)
        services.stop_run(run=run)
    services.resume_run(run=run)
    services.stop_run(run=run)
    for run in Run.objects.all():
        services.delete_run(run=run)
    with pytest.raises(BadInput, match="runs_per_hour: 7 would be more than the limit of 6"):
        start(researcher)
    QuotaUse.objects.update(at=Now() - timedelta(minutes=61))
    assert start(researcher)


def test_queues_within_an_hour_are_counted_though_they_were_deleted(researcher, annotator, few):
    match = finished_match(researcher)
    for _ in range(3):
        delete_queue(queue=people_queue(researcher, match, [annotator]))
    with pytest.raises(BadInput, match="queues_per_hour: 4 would be more than the limit of 3"):
        people_queue(researcher, match, [annotator])
    QuotaUse.objects.update(at=Now() - timedelta(minutes=61))
    assert people_queue(researcher, match, [annotator])


def test_versions_of_codebooks_within_an_hour_are_counted(researcher, other_researcher, few):
    def save(text, by=researcher, name="moves"):
        types = [{"name": "fair", "title": "Fair", "kind": "yes_no", "about": "game", "definition": text}]
        return codebooks.save_codebook(name=name, title="Moves", labels=types, by=by)

    versions = [save(f"Was it fair? {number}") for number in range(3)]
    assert save("Was it fair? 2") == versions[-1], "what is saved again unchanged makes no version"
    for name in ("moves", "others"):
        with pytest.raises(BadInput, match="codebook_versions_per_hour: 4 would be more than the limit of 3"):
            save("Was it?", name=name)
    assert not Codebook.objects.filter(name="others").exists()
    assert save("Was it?", by=other_researcher, name="theirs")
    CodebookVersion.objects.update(created_at=Now() - timedelta(minutes=61))
    assert save("Was it?").number == 4


def test_tables_keys_models_and_imports_have_quotas(researcher, few):
    for _ in range(3):
        tables.create(host=researcher, start=tables.Start(SCENARIO), places=[tables.Place()] * 2)
    with pytest.raises(BadInput, match=r"open_tables.*close one"):
        tables.create(host=researcher, start=tables.Start(SCENARIO), places=[tables.Place()] * 2)
    Match.objects.filter(host=researcher).first().delete()
    assert tables.create(host=researcher, start=tables.Start(SCENARIO), places=[tables.Place()] * 2)

    keys = [create_key(user=researcher, name="k")[0] for _ in range(5)]
    with pytest.raises(BadInput, match=r"api_keys.*revoke one"):
        create_key(user=researcher, name="k")
    ApiKey.objects.filter(pk=keys[0].pk).update(revoked_at=Now())
    assert create_key(user=researcher, name="k")

    models = [Checkpoint.objects.create(name=f"m{n}", kind="base", base="x", path="x") for n in range(4)]
    for checkpoint in models[:3]:
        serving.request(deployment=serving.of_checkpoint(checkpoint), by=researcher)
        serving.request(deployment=serving.of_checkpoint(checkpoint), by=researcher)
    with pytest.raises(BadInput, match="requested_models"):
        serving.request(deployment=serving.of_checkpoint(models[3]), by=researcher)
    assert serving.request(deployment=serving.of_checkpoint(models[3])) is False, "a table has no such quota"

    def upload(name):
        text = SimpleUploadedFile("a.jsonl", b"{}\n")
        return imports.upload(owner=researcher, format="jsonl", name=name, files=[text])

    first, _, _ = (upload(f"name{n}") for n in range(3))
    with pytest.raises(BadInput, match="open_imports"):
        upload("name4")
    imports.drop_import(pk=first.pk)
    with pytest.raises(BadInput, match="imports_per_hour"):
        upload("name4")
    Import.objects.filter(pk=first.pk).update(created_at=Now() - timedelta(minutes=61))
    assert upload("name4")


def test_tables_within_an_hour_are_counted_though_their_games_are_over(researcher, few):
    def table():
        return tables.create(host=researcher, start=tables.Start(SCENARIO), places=[tables.Place()] * 2)

    for _ in range(6):
        waiting_room.close(match=table())
    with pytest.raises(BadInput, match="7 would be more than the limit of 6 tables that were set up") as raised:
        table()
    assert raised.value.where == "tables_per_hour"
    Match.objects.update(created_at=Now() - timedelta(minutes=61))
    assert table()


def test_imports_by_key_have_a_quota(researcher, client, settings):
    settings.QUOTAS = {**settings.QUOTAS, "imports_per_hour": {"researcher": 2}}
    key = bearer(researcher)

    def send(name):
        text = SimpleUploadedFile("a.jsonl", DatasetLine(scenario=SCENARIO).dumps().encode())
        return client.post("/api/v1/datasets", {"format": "jsonl", "name": name, "files": text}, headers=key)

    assert [send("a").status_code, send("b").status_code] == [201, 201]
    refused = send("c")
    assert (refused.status_code, refused.json()["where"]) == (422, "imports_per_hour")
    assert not Dataset.objects.filter(name="c").exists()
    for dataset in Dataset.objects.all():
        delete_dataset(dataset=dataset)
    assert send("c").status_code == 422, "deleting gives nothing back"
    QuotaUse.objects.update(at=Now() - timedelta(minutes=61))
    assert send("c").status_code == 201
    assert QuotaUse.objects.count() == 1


def test_pages_say_which_limit_is_reached(researcher, few, client_of):
    client = client_of(researcher)
    for _ in range(3):
        start(researcher)
    page = client.post(reverse("home:begin", args=["watch"]))
    assert "This did not start: 4 would be more than the limit of 3 runs" in page.content.decode()
    for _ in range(5):
        create_key(user=researcher, name="k")
    page = client.post(reverse("accounts:account"), {"name": "one more"})
    assert (page.status_code, "limit of 5 API keys" in page.content.decode()) == (400, True)


def test_a_role_that_is_not_listed_has_the_lowest_limit(guest, admin, settings):
    settings.QUOTAS = {**settings.QUOTAS, "open_tables": {"player": 4, "researcher": 40, "admin": 100}}
    assert (quotas.limit(guest, "open_tables"), quotas.limit(admin, "open_tables")) == (4, 100)


def test_every_quota_says_what_it_counts(settings):
    assert set(settings.QUOTAS) == set(quotas.WORDS)


def test_limits_can_be_set_in_the_environment():
    defaults = {"active_runs": {"researcher": 20, "admin": 100}}
    made = site_settings._quotas(defaults, ["active_runs=5", "active_runs.admin=7"])
    assert made == {"active_runs": {"researcher": 5, "admin": 7}}
    assert defaults["active_runs"]["admin"] == 100
    for wrong in ("runs=5", "active_runs.player=5", "active_runs=many", "active_runs=²", "active_runs"):
        with pytest.raises(ImproperlyConfigured, match="PARLEY_QUOTAS"):
            site_settings._quotas(defaults, [wrong])


def at_once(ask):
    """Ask fifty times at the same moment; return the status codes."""
    barrier, statuses = threading.Barrier(AT_ONCE), []

    def work(number):
        barrier.wait()
        try:
            statuses.append(ask(number).status_code)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=work, args=[number]) for number in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return statuses


@pytest.mark.serial
@pytest.mark.django_db(transaction=True)
def test_fifty_requests_at_once_start_no_more_runs_than_one_may_have(researcher, settings, monkeypatch):
    monkeypatch.setattr(queue, "publish", lambda *args, **more: True)
    settings.QUOTAS = {**settings.QUOTAS, "active_runs": {"researcher": 7}}
    key = bearer(researcher)
    statuses = at_once(lambda number: post(Client(), "runs", {"config": {"model": {"base": "tiny"}}}, key))
    assert (sorted(set(statuses)), len(statuses)) == ([201, 422], AT_ONCE)
    assert (statuses.count(201), Run.objects.count()) == (7, 7)


@pytest.mark.serial
@pytest.mark.django_db(transaction=True)
def test_fifty_requests_at_once_open_no_more_tables_than_one_may_have(player, settings):
    settings.QUOTAS = {**settings.QUOTAS, "open_tables": {"player": 5}}
    key = bearer(player)
    statuses = at_once(lambda number: post(Client(), "matches", TABLE, key))
    assert (statuses.count(201), statuses.count(422), Match.objects.count()) == (5, AT_ONCE - 5, 5)
