"""The processes of docker-compose.yml, started by its own commands and environment, come up and are healthy."""

import json
import os
import signal
import subprocess

import pytest
import yaml

from tests.deploy import compose
from tests.deploy.compose import COMPOSE, ROOT, SERVICES, Missing, environment_of, fill_in
from tests.deploy.conftest import Client, wait_until
from webapp.core import health
from webapp.core.queue import QUEUES

OTHERS = {"postgres", "redis", "vllm"}
"""Servers that are not Parley's own."""


@pytest.mark.parametrize(
    "text, filled",
    [
        ("${SET:-x}", "one"), ("${NOT_SET:-x}", "x"), ("${EMPTY:-x}", "x"), ("${NOT_SET:-}", ""),
        ("${SET:?why}", "one"), ("$${SET:?why}", "${SET:?why}"), ("a${SET}b", "aoneb"), ("${NOT_SET}", ""),
    ],
)  # fmt: skip
def test_variables_are_filled_in_as_docker_compose_does(text, filled):
    assert fill_in(text, {"SET": "one", "EMPTY": ""}) == filled


def test_nothing_starts_without_what_must_be_chosen():
    complete = {"PARLEY_SECRET_KEY": "k", "PARLEY_HOSTS": "h", "POSTGRES_PASSWORD": "p"}
    assert environment_of("web", complete)["DATABASE_URL"] == "postgresql://parley:p@postgres:5432/parley"
    for name in complete:
        with pytest.raises(Missing, match=name):
            environment_of("web", {other: value for other, value in complete.items() if other != name})


def test_what_trains_has_as_much_shared_memory_as_on_kubernetes():
    """Where a run has several processes, Ray's store and NCCL are in it."""
    manifest = yaml.safe_load((ROOT / "deploy" / "kubernetes" / "gpu" / "worker-gpu.yaml").read_text())
    volumes = manifest["spec"]["template"]["spec"]["volumes"]
    (limit,) = [each["emptyDir"]["sizeLimit"] for each in volumes if each["name"] == "shm"]
    for name in ("worker-cpu", "worker-gpu"):
        assert SERVICES[name]["shm_size"] == limit.replace("Gi", "gb")


def test_a_stop_takes_no_longer_than_docker_waits():
    """A worker that supervises processes gives them 28 seconds to save (`worker.supervise.KILL_SECONDS`)."""
    from worker.supervise import KILL_SECONDS

    for name, service in SERVICES.items():
        command = " ".join(service.get("command", []))
        if "train-" in command or "serve --pool" in command:
            assert float(service["stop_grace_period"].removesuffix("s")) > KILL_SECONDS + 10, name


@pytest.mark.django_db(transaction=True)
@pytest.mark.process
@pytest.mark.slow
def test_every_process_comes_up_and_every_queue_is_served(nodes):
    (node,) = nodes("all")
    ours = [name for name, service in SERVICES.items() if name not in OTHERS and "profiles" not in service]
    assert set(COMPOSE["services"]) - set(ours) == OTHERS | {"worker-gpu"}
    node.start("web")
    node.wait_until_healthy("web")
    for name in ours:
        if name != "web":
            node.start(name)
    client = Client(node)
    assert json.loads(client.get("/healthz")) == {"ok": True}
    state = wait_until(lambda: (state := health.check())["ok"] and state, 120, "not every part is there", pause=1.0)
    served = [queue for worker in state["workers"] for queue in worker["queues"]]
    assert sorted(served) == sorted(set(QUEUES) - {"train-gpu"})
    assert client.get("/accounts/login/").startswith(b"<!doctype html>")
    status, _ = Client(node).ask("GET", "/nowhere/")
    assert status == 404
    assert {name: node.processes[name].poll() for name in ours} == dict.fromkeys(ours)
    in_container = compose.environment_of("web", node.variables) | node.servers
    environment = {**os.environ, **in_container, "PARLEY_HOME": str(node.home)}
    command = [compose.sys.executable, "manage.py", "check_health", "--json"]
    done = subprocess.run(command, cwd=compose.ROOT, env=environment, capture_output=True, text=True, check=False)
    assert json.loads(done.stdout)["ok"], done.stdout
    node.stop()
    codes = {name: node.processes[name].returncode for name in ours}
    assert codes == {**dict.fromkeys(ours, 0), "web": -signal.SIGTERM}  # uvicorn ends by the signal that it got
