"""Keys are found nowhere but where they are used: canaries in every key, and a scan of the project itself.

A judged queue, a run, a remote and a served model at a table, a page that breaks, exports: then logs, task arguments,
rows, files, pages and prompts are searched. The servers echo the key that they were sent, as some do when it is wrong.
"""

import json
import logging
import re
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.apps import apps
from django.db import connections

from tests.stub import Status, Stub
from tests.trust.matrix.scenarios import SCENARIO
from tests.webapp.judgments.make import finished_match, rated, version
from tests.worker.conftest import COMMAND, wait_until
from training.config import RunConfig
from webapp.accounts.services import create_key
from webapp.arena import clock
from webapp.arena.models import Match
from webapp.arena.play import services as arena
from webapp.arena.setup import tables
from webapp.core import queue
from webapp.judgments import judging
from webapp.judgments.codebooks import services as codebooks
from webapp.judgments.queues import services as queues
from webapp.runs import services as runs
from webapp.runs.models import Checkpoint
from webapp.serving import services as serving
from webapp.serving.models import Deployment, RemoteModel
from worker import lifecycle
from worker.play import play
from worker.serving import Serving
from worker.supervise import supervise

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {
    name: f"canary-{name.lower()}-" + "0123456789abcdef" * 3
    for name in ("JUDGE_API_KEY", "TABLE_API_KEY", "UNUSED_API_KEY", "PARLEY_SECRET_KEY")
}
DEPLOYMENT = "canary-deployment-" + "0123456789abcdef" * 2
ANY = re.compile(r"canary-(judge|table|unused|parley|deployment)")
SERVER = """
import json, os, pathlib, sys, time
attempt = pathlib.Path(sys.argv[1]) / "attempts" / f"{int(sys.argv[2]):04d}"
attempt.mkdir(parents=True, exist_ok=True)
print("the key is", os.environ["VLLM_API_KEY"], "of", sorted(os.environ), flush=True)
(attempt / "status.part").write_text(json.dumps({"phase": "ready", "address": sys.argv[3], "at": time.time()}))
(attempt / "status.part").rename(attempt / "status.json")
while not (attempt / "control" / "stop").exists():
    time.sleep(0.1)
"""


@pytest.fixture
def canaries(settings, monkeypatch, tmp_path):
    """Every key of an installation is a canary, and what it stores lies in a folder of the test's own."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    settings.SECRET_KEY = ENVIRONMENT["PARLEY_SECRET_KEY"]
    monkeypatch.setattr(serving, "secrets", SimpleNamespace(token_urlsafe=lambda _length: DEPLOYMENT))
    settings.RUN_LEASE_SECONDS = 5.0
    settings.MEDIA_ROOT = tmp_path / "files"
    settings.RUNS_ROOT = tmp_path / "files" / "runs"
    settings.RUN_COMMAND = COMMAND
    lifecycle.leaving.clear()
    return tmp_path


@pytest.fixture
def logged(caplog):
    """Everything that any logger says, down to the libraries' debugging; lines as a handler writes them."""
    caplog.set_level(logging.DEBUG)
    names = ("openai", "httpx2", "httpcore2", "celery", "django", "webapp", "worker", "training")
    loggers = [logging.getLogger(name) for name in names]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.DEBUG)
    yield caplog
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)


@pytest.fixture
def sent(monkeypatch):
    """What the site hands to the broker, as it would be written there."""
    messages = []
    monkeypatch.setattr(
        queue.sender, "send_task", lambda name, args=(), **options: messages.append((name, args, options))
    )
    return messages


@pytest.fixture
def servers(canaries, monkeypatch):
    """The judge's server, a remote model's and a served one's; each first answers with the key that it was sent."""
    keys = (ENVIRONMENT["JUDGE_API_KEY"], ENVIRONMENT["TABLE_API_KEY"], DEPLOYMENT)
    with Stub() as judge, Stub("I see.") as remote, Stub("I see, too.") as served:
        for stub, key in zip((judge, remote, served), keys, strict=True):
            prefix = f"{key} is wrong: "
            stub.script(Status(401, prefix + "x" * (180 - len(prefix)) + key))  # a message of 200 would hold half of it
        monkeypatch.setenv("MODEL_ADDRESSES", f"{judge.url}=JUDGE_API_KEY,{remote.url}=TABLE_API_KEY")
        yield SimpleNamespace(judge=judge, remote=remote, served=served)


def verdict(body):
    """What an honest judge says."""
    system, user = (message["content"] for message in body["messages"][:2])
    target = user.split("Target ")[1].split(",")[0]
    seat = int(system.split("seat ")[1].split(",")[0])
    values = {d.name: {"value": d.low, "reason": "so"} for d in version().record().labels}
    return json.dumps({"target": target, "seat": seat, "values": values})


def judged_queue(owner, server):
    server.answer = verdict
    remote = RemoteModel.objects.create(
        name="judge", address=server.url, model="judge-1", secret_name="JUDGE_API_KEY", added_by=owner
    )
    judge = codebooks.add_judge(name="judge", remote=remote, temperature=0)
    match = rated(finished_match(owner), owner)
    made = queues.create_queue(name="judged", owner=owner, codebook_version=version(), matches=[match], judge=judge)
    for target in made.targets.order_by("position"):
        judging.judge_target(target.pk)
    assert [target.state for target in made.targets.order_by("position")] == ["unscored", "scored"]
    return made


def launched_run(owner, server):
    judge = {"address": server.url, "model": "judge-1", "secret": "JUDGE_API_KEY"}
    config = RunConfig.from_dict({"name": json.dumps({"steps": 5}), "model": {"base": "tiny"}, "judge": judge})
    run = runs.create_run(owner=owner, config=config)
    supervise(run.pk)
    run.refresh_from_db()
    assert run.state == "succeeded", run.error
    return run


def served_match(owner, servers, monkeypatch):
    """A match between a remote model and one that a worker serves, which is started for it, asked and stopped."""
    prepare = Serving.prepare

    def prepared(self, run, folder, attempt):
        command = [sys.executable, "-c", SERVER, str(folder.root), str(attempt), servers.served.url]
        return replace(prepare(self, run, folder, attempt), command=command)

    monkeypatch.setattr(Serving, "prepare", prepared)
    remote = serving.add_remote(
        by=owner, name="far", address=servers.remote.url, model="far-1", secret_name="TABLE_API_KEY",
        open_to_players=True,
    )  # fmt: skip
    checkpoint = Checkpoint.objects.create(name="tiny", kind="base", base="tiny", path="/models/tiny")
    local = serving.of_checkpoint(checkpoint)
    places = [tables.Place(deployment=remote), tables.Place(deployment=local)]
    match = tables.create(host=owner, start=tables.Start(SCENARIO), places=places, consent=True, deadline_s=60)
    play(match.due.get().pk)
    serving.settle()
    thread = threading.Thread(target=work, args=(Deployment.objects.get(pk=local.pk).run_id,))
    thread.start()
    try:
        wait_until(lambda: Deployment.objects.get(pk=local.pk).state == "ready")
        clock.start_clocks()
        play(match.due.get().pk)
    finally:
        serving.stop(deployment=local)
        thread.join(40)
    assert not thread.is_alive()
    arena.abort(match_id=match.pk, why="closed by the host")
    return match, Deployment.objects.get(pk=local.pk)


def work(run_id):
    try:
        supervise(run_id)
    finally:
        connections.close_all()


def pages(client, key, judged, run, match, serve):
    """Every page, export and API response about the tested actions, as (address, content)."""
    bearer = {"Authorization": f"Bearer {key}"}
    client.post(f"/judgments/queues/{judged.pk}/export/", {"name": "judged"})
    checkpoint = run.checkpoints.get().pk
    addresses = [
        "/", "/running/", "/runs/", "/runs/new/", "/checkpoints/", f"/checkpoints/{checkpoint}/",
        f"/checkpoints/{checkpoint}/download.zip", "/deployments/", "/judgments/",
        "/judgments/judges/new/", "/judgments/queues/new/", f"/judgments/queues/{judged.pk}/", "/datasets/",
        "/datasets/judged/v1/", "/datasets/judged/v1/export.jsonl", "/play/", "/play/new/", f"/play/{match.pk}/",
        f"/play/{match.pk}/result/", f"/play/{match.pk}/replay/", f"/play/{match.pk}/replay/?viewer=-2", "/accounts/",
    ]  # fmt: skip
    tabs = ("", "live/", "metrics.json", "log/", "configuration/", "lineage/")
    addresses += [f"/runs/{each.pk}/{tab}" for each in (run, serve) for tab in tabs]
    calls = ["runs", f"runs/{run.pk}", "checkpoints", "judgments", f"matches/{match.pk}", "datasets"]
    calls += ["datasets/judged/versions/1/export", "openapi.json"]
    answers = {address: client.get(address) for address in addresses}
    answers |= {name: client.get(f"/api/v1/{name}", headers=bearer) for name in calls}
    return {name: (got.status_code, b"".join(got).decode("latin-1")) for name, got in answers.items()}


def broken(client, monkeypatch):
    """A page that breaks while a key is in a local variable."""

    def fail(*_args, **_options):
        key = ENVIRONMENT["JUDGE_API_KEY"]
        raise RuntimeError(f"broken by {len(key)} characters")

    with monkeypatch.context() as patch:
        patch.setattr("webapp.arena.models.MatchQuerySet.visible_to", fail)
        client.raise_request_exception = False
        answer = client.get("/play/1/")
        client.raise_request_exception = True
    assert answer.status_code == 500
    return answer.content.decode()


def rows():
    """Every row of every table as text; the one place where a served model's key is kept, for as long as it runs."""
    for model in apps.get_models():
        for row in model.objects.values():
            if model is Deployment:
                del row["key"]
            yield model.__name__, str(row)


def stored_files(folder):
    """What runs and their supervisors wrote, but for what the stand-ins for trainer and server print on purpose."""
    for path in folder.rglob("*"):
        if path.is_file() and path.name != "log.txt":
            yield str(path), path.read_bytes().decode("latin-1")


@pytest.mark.serial
@pytest.mark.django_db(transaction=True)
def test_keys_are_found_nowhere(canaries, servers, sent, logged, admin, player, client_of, monkeypatch):
    judged = judged_queue(admin, servers.judge)
    run = launched_run(admin, servers.judge)
    match, deployment = served_match(admin, servers, monkeypatch)
    assert deployment.key == ""
    places = {f"row of {name}": text for name, text in rows()}
    assert Match.objects.get(pk=match.pk).moves.count() == 2
    for user in (admin, player):
        client = client_of(user)
        seen = pages(client, create_key(user=user, name="k")[1], judged, run, match, deployment.run)
        if user is admin:
            assert {status for status, _ in seen.values()} <= {200, 286}, {k: v[0] for k, v in seen.items()}
        places |= {f"{user}'s {name}": text for name, (_, text) in seen.items()}
        places[f"{user}'s broken page"] = broken(client, monkeypatch)
    places |= dict(stored_files(canaries))
    places["task arguments"] = repr(sent)
    for name in ("judge", "remote", "served"):
        places[f"prompts to {name}"] = json.dumps([asked.body for asked in getattr(servers, name).requests])
    places["log"] = logged.text
    in_use = {"judge": ENVIRONMENT["JUDGE_API_KEY"], "remote": ENVIRONMENT["TABLE_API_KEY"], "served": DEPLOYMENT}
    for name, key in in_use.items():  # else not finding them would prove nothing
        assert authorizations(getattr(servers, name)) == {f"Bearer {key}"}
    logs = [attempt.log for made in (run, deployment.run) for attempt in made.attempts.all()]
    assert ["[JUDGE_API_KEY]" in logs[0], "[VLLM_API_KEY]" in logs[1]] == [True, True]
    assert {name: ANY.search(text).group() for name, text in places.items() if ANY.search(text)} == {}


def authorizations(stub):
    return {
        value for asked in stub.requests for name, value in asked.headers.items() if name.lower() == "authorization"
    }


KEYS = (
    r"\bsk-(?:ant-|proj-)?[A-Za-z0-9_-]{24,}",
    r"\b(?:ghp|gho|ghs|ghu)_[A-Za-z0-9]{30,}",
    r"\b(?:github_pat_|glpat-)[\w-]{18,}",
    r"\bhf_[A-Za-z0-9]{30,}",
    r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    r"\bAIza[\w-]{35}",
    r"\bxox[abprs]-[\w-]{20,}",
    r"\bey[JK][\w-]{15,}\.ey[JK][\w-]{15,}\.[\w-]{15,}",
    r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----\s+[A-Za-z0-9+/]",
    r"(?i:api_?key|secret|passw(?:or)?d|token)\w*['\"]?\s*[=:]\s*['\"][A-Za-z0-9+/_=-]{32,}['\"]",
)
LIKE_A_KEY = re.compile("|".join(KEYS).encode())


def keys_in(content):
    return [match.group()[:60] for match in LIKE_A_KEY.finditer(content)]


def test_nothing_in_the_project_looks_like_a_key():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("not a checkout: nobody knows which files belong to the project")
    paths = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    assert len(paths) > 300
    leaked = {str(path): keys for path in paths if path.is_file() and (keys := keys_in(path.read_bytes()))}
    assert leaked == {}


def test_the_scan_finds_keys_of_every_kind():
    body = "A1b2C3d4E5f6G7h8" * 3
    planted = [
        f"sk-proj-{body}", f"ghp_{body}", f"glpat-{body}", f"hf_{body}", f"AKIA{body.upper()[:16]}", f"AIza{body[:35]}",
        f"xoxb-{body}", f"eyJ{body}.eyJ{body}.{body}", f"-----BEGIN RSA PRIVATE KEY-----\n{body}",
        f"JUDGE_API_KEY = '{body}'",
    ]  # fmt: skip
    assert [len(keys_in(f"x = '{text}'\n".encode())) for text in planted[:-1]] == [1] * (len(planted) - 1)
    assert keys_in(planted[-1].encode())
    assert not keys_in(b"--hash=sha256:" + body.encode() + b"\nsecret = 'JUDGE_API_KEY'\ntoken = next(tokens)")
