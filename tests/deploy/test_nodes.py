"""An installation on three machines without a common folder: the site, one that trains, one that serves models.

All they share are the database, Valkey and a bucket. The machine of the site has no model and no run directory. Where
a user may mount, the folders of the other machines are hidden from each; elsewhere they have different paths only.
"""

import io
import re
import signal
import zipfile

import pytest

from tests import tiny_model
from tests.deploy.conftest import Client, wait_until
from tests.webapp.scenarios import files as sample
from training.config import parse
from training.store import MANIFEST
from webapp.accounts.services import create_key
from webapp.arena.models import MatchMove
from webapp.runs import attempts, services
from webapp.runs.models import Checkpoint, Run
from webapp.serving.models import Deployment

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.process, pytest.mark.slow]
QUICK = {"SERVE_ENGINE": "transformers", "OMP_NUM_THREADS": "1"}


def config(steps=2):
    """Steps of four games each; adapters, which need the base model again where they are served."""
    return {
        "kind": "train",
        "name": "small",
        "model": {"base": "tiny", "device": "cpu"},
        "engine": {"name": "transformers"},
        "sampling": {"max_tokens": 48},
        "game": {"name": "negotiation"},
        "rollout": {"scenarios": 1, "games": 4},
        "learn": {"steps": steps, "save_every": 1, "threads": 1, "lora": {"rank": 4, "alpha": 8.0}, "critic_warmup": 0},
        "stop": {"failing": 1.0, "entropy_fall": 0},  # four games say little
    }


def give_model(node):
    """Prepare `tiny` on a node, as `python -m training models prepare tiny` there does."""
    (node.home / "models").mkdir()
    (node.home / "models" / "tiny").symlink_to(tiny_model.prepare().resolve())


@pytest.fixture
def machines(nodes):
    site, training, serving = nodes("site", "training", "serving")
    for node in (training, serving):
        give_model(node)
    site.start("web")
    site.wait_until_healthy("web")
    for service in ("clock", "worker-play", "worker-tasks"):
        site.start(service)
    training.start("worker-cpu", **QUICK)
    serving.start("worker-serve", **QUICK)
    return site, training, serving


def finished(run_id, training):
    run = Run.objects.get(pk=run_id)
    assert run.state != "failed", f"{run.error}\n{training.tail('worker-cpu')}"
    return run.state == "succeeded"


def test_what_one_machine_trains_another_shows_and_a_third_serves(machines, researcher, client_of, bucket):
    site, training, serving = machines
    _, token = create_key(user=researcher, name="test")
    client = Client(site, token, client_of(researcher).cookies["session"].value)

    # the machine of the site knows the model that only the others have
    wait_until(lambda: Checkpoint.objects.filter(name="tiny").exists(), 90, "no worker has registered its base model")
    client.upload("/datasets", "casino.json", sample.casino().encode(), format="casino", name="camp")
    run = client.api("POST", "/runs", {"config": config(), "dataset": "camp"})
    wait_until(lambda: finished(run["id"], training), 240, "the run has not ended")
    assert {attempt.host for attempt in Run.objects.get(pk=run["id"]).attempts.all()} == {"training"}

    shows_what_was_trained(client, run, bucket)
    assert not (site.home / "files" / "runs").exists()
    plays_what_was_trained(client, run, site, serving)


def shows_what_was_trained(client, run, bucket):
    """Curves, conversations and checkpoints, on the machine of the site."""
    assert [row["step"] for row in client.api("GET", f"/runs/{run['id']}/metrics")] == [1, 2]
    assert client.get(f"/runs/{run['id']}/")
    first = Run.objects.get(pk=run["id"]).episodes.order_by("step", "number").first()
    page = f"/runs/{run['id']}/conversations/{first.step}/{first.number}/"
    for suffix in ("", "replay/"):
        assert b"firewood" in client.get(page + suffix).lower()
    tokens = re.findall(r'<span class="tk [^>]*>([^<]*)</span>', client.get(page + "tokens/").decode())
    assert tokens
    assert not all(text.strip().isdigit() for text in tokens), "without a tokenizer, tokens are shown as numbers"
    newest = client.api("GET", f"/checkpoints?run={run['id']}")["items"][0]
    packed = client.get(f"/api/v1/checkpoints/{newest['id']}/download")
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        assert archive.testzip() is None
        names = {name.rpartition("/")[2] for name in archive.namelist()}
    assert {MANIFEST, "adapter_model.safetensors"} <= names
    assert any(name.startswith(f"runs/{run['id']}/") for name in bucket.objects)


def plays_what_was_trained(client, run, site, serving):
    """A person plays against the checkpoint: the site asks the model at the address of the machine that serves it."""
    newest = client.api("GET", f"/checkpoints?run={run['id']}")["items"][0]
    places = [{"checkpoint": newest["id"]}, {"me": True}]
    match = client.api("POST", "/matches", {"game": "negotiation", "places": places, "consent": True})

    def replied():
        deployment = Deployment.objects.get(checkpoint_id=newest["id"])
        assert deployment.state != "failed", f"{deployment.error}\n{serving.tail('worker-serve')}"
        seen = client.api("GET", f"/matches/{match['id']}")
        if seen["actions"] and not MatchMove.objects.filter(match_id=match["id"]).exists():
            speak(client, seen)
        return MatchMove.objects.filter(match_id=match["id"], seat=0, move__origin="seat").first()

    wait_until(replied, 150, f"the model has not moved:\n{site.tail('worker-play')}", pause=1.0)
    deployment = Deployment.objects.get(checkpoint_id=newest["id"])
    assert deployment.address.startswith(f"http://{serving.address}:")
    assert deployment.run.attempts.get().host == "serving"


def speak(client, seen):
    """Say something, so that it is the model's turn."""
    client.api("POST", f"/matches/{seen['id']}/moves", {"turn": seen["turn"], "action": "talk", "text": "Hello."})


def test_a_run_goes_on_at_another_machine_when_its_worker_is_stopped(nodes, researcher):
    """The second machine has nothing of the first but what is in the bucket."""
    machines = nodes("first", "second")
    for node in machines:
        give_model(node)
    run = services.create_run(owner=researcher, config=parse(config(steps=8)))

    def begun(count):
        attempts.repeat_hints()
        assert Run.objects.get(pk=run.pk).state != "failed", Run.objects.get(pk=run.pk).error
        return run.metrics.count() >= count

    first, second = machines
    worker = first.start("worker-cpu", **QUICK)
    wait_until(lambda: begun(2), 240, "two steps", pause=0.2)
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(60) == 0
    run.refresh_from_db()
    assert run.state == "queued", first.tail("worker-cpu")
    learned = run.metrics.count()
    assert 2 <= learned < 8

    second.start("worker-cpu", **QUICK)
    wait_until(lambda: begun(8), 240, "the other steps", pause=1.0)
    wait_until(lambda: finished(run.pk, second), 240, f"the end:\n{second.tail('worker-cpu')}")
    assert list(run.metrics.order_by("step").values_list("step", flat=True)) == list(range(1, 9))
    assert list(run.attempts.order_by("number").values_list("host", "start_step")) == [
        ("first", 0),
        ("second", learned),
    ]
