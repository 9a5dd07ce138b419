"""The manifests in deploy/kubernetes: valid for a stated Kubernetes, and the same processes as docker-compose.yml."""

import json
import re
import socket
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.deploy.compose import COMPOSE, SERVICES
from webapp.core.queue import QUEUES
from webapp.runs import presets
from webapp.runs.presets import PRESETS
from worker.supervise import KILL_SECONDS

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "deploy" / "kubernetes"
VERSIONS = ("1.32", "1.37")
"""The oldest Kubernetes that docs/deploy.md names, and the newest."""
FILES = sorted(path for path in FOLDER.glob("*/*.yaml") if path.name not in ("kustomization.yaml", "images.yaml"))
DOCUMENTS = [(path, document) for path in FILES for document in yaml.safe_load_all(path.read_text())]
CUSTOM = {"RayCluster"}
"""Kinds of other operators, of which Kubernetes has no schema."""
OF_RAY = {"RAY_ADDRESS", "RAY_AUTH_MODE", "RAY_AUTH_TOKEN_PATH", "RAY_USAGE_STATS_ENABLED", "POD_IP", "PYTHONPATH"}
"""Variables of a pod that is a node of a Ray cluster."""


def named(document):
    return f"{document['kind']} {document['metadata']['name']}"


def pods(folders=("site", "gpu", "ray")):
    """(name of the object, the template's pod) of every kind that makes pods."""
    for path, document in DOCUMENTS:
        if path.parent.name not in folders:
            continue
        spec = document.get("spec", {})
        if document["kind"] == "RayCluster":
            groups = [("head", spec["headGroupSpec"]), *((g["groupName"], g) for g in spec["workerGroupSpecs"])]
            yield from ((f"ray {name}", group["template"]["spec"]) for name, group in groups)
        elif "template" in spec:
            yield named(document), spec["template"]["spec"]


PODS = list(pods())


def containers(kind="containers", among=PODS):
    return [(name, container) for name, pod in among for container in pod.get(kind, [])]


def ours():
    """The containers that run what is a service in docker-compose.yml, by its name; one of them is in two places."""
    return [(c["name"], c) for _, c in containers() if c["name"] in SERVICES]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("path, document", DOCUMENTS, ids=[named(document) for _, document in DOCUMENTS])
def test_every_document_is_valid(path, document, version):
    schemas = pytest.importorskip("kubernetes_validate", reason="make setup installs it")
    if document["kind"] in CUSTOM:
        assert document["apiVersion"].startswith("ray.io/")
        for _, pod in pods(("ray",)):
            schemas.validate({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": pod}, version, True)
        return
    schemas.validate(document, version, strict=True)


def test_a_kustomization_lists_every_file_next_to_it():
    for path in FOLDER.glob("*/kustomization.yaml"):
        listed = yaml.safe_load(path.read_text())["resources"]
        unlisted = {"kustomization.yaml", "images.yaml", "secret.example.yaml"}
        beside = {each.name for each in path.parent.glob("*.yaml")} - unlisted
        assert {each for each in listed if each.endswith(".yaml")} == beside
        assert all((path.parent / each).exists() for each in listed)


@pytest.mark.parametrize("gpus", ["gpu", "ray"])
def test_every_process_of_the_site_is_there_once(gpus):
    expected = {name for name, service in SERVICES.items() if "build" in service} - {"vllm"}
    names = [container["name"] for _, container in containers(among=list(pods(("site", gpus))))]
    assert sorted(set(names) & set(SERVICES)) == sorted(expected)
    assert len([name for name in names if name in expected]) == len(expected)


def test_commands_are_those_of_docker_compose():
    for name, container in ours():
        composed = SERVICES[name]["command"]
        if name == "web":  # a job migrates here, once for all web processes
            migrate, rest = composed[-1].split(" && ", 1)
            (job,) = [c for _, c in containers() if c["name"] == "migrate"]
            assert " ".join(job["command"]) == migrate
            composed = [*composed[:-1], rest]
        assert container["command"] == composed, name


def test_images_are_the_targets_of_the_dockerfile():
    assert SERVICES["redis"]["image"] in {container["image"] for _, container in containers()}
    for name, container in ours():
        assert container["image"] == f"parley-{SERVICES[name]['build']['target']}", name
    for path in FOLDER.glob("*/kustomization.yaml"):
        for image in yaml.safe_load(path.read_text()).get("images", []):
            assert image["newName"].endswith("/" + image["name"])


@pytest.mark.parametrize("gpus", ["gpu", "ray"])
def test_every_queue_is_served(gpus):
    served = []
    for _, container in containers(among=list(pods(("site", gpus)))):
        command = container.get("command", [])
        if "--queues" in command:
            served += command[command.index("--queues") + 1].split(",")
    assert sorted(served) == sorted(QUEUES)


def variables(kind, key):
    (document,) = [d for _, d in DOCUMENTS if d["kind"] == kind and d["metadata"]["name"] == "parley"]
    return document[key]


def test_the_environment_is_that_of_docker_compose():
    known = set(variables("ConfigMap", "data")) | set(variables("Secret", "stringData"))
    assert known == set(COMPOSE["x-environment"])
    for name, container in ours():
        sources = {next(iter(each)): next(iter(each.values()))["name"] for each in container["envFrom"]}
        assert sources == {"configMapRef": "parley", "secretRef": "parley"}, name
        beside = set(SERVICES[name]["environment"]) - set(COMPOSE["x-environment"])
        stated = {each["name"] for each in container.get("env", [])}
        assert {each for each in stated if each not in OF_RAY} == beside, name


def test_every_variable_is_one_that_the_site_reads():
    documented = set(re.findall(r"^([A-Z][A-Z0-9_]+) +\S", (ROOT / "webapp" / "settings.py").read_text(), re.MULTILINE))
    named_in_addresses = set(re.findall(r"=(\w+_API_KEY)", COMPOSE["x-environment"]["MODEL_ADDRESSES"]))
    used = set(variables("ConfigMap", "data")) | set(variables("Secret", "stringData"))
    used |= {each["name"] for _, container in containers() for each in container.get("env", [])}
    assert used - documented - OF_RAY == named_in_addresses
    assert "RAY_ADDRESS" in documented


def test_secrets_are_named_and_never_written_down():
    assert "Secret" not in [d["kind"] for path, d in DOCUMENTS if path.name != "secret.example.yaml"]
    for name in ("PARLEY_SECRET_KEY", "DATABASE_URL", "AWS_SECRET_ACCESS_KEY"):
        assert name not in variables("ConfigMap", "data")
        assert not any(each["name"] == name for _, c in containers() for each in c.get("env", []))


def test_containers_that_only_prepare_a_pod_get_the_secrets_that_they_need():
    """What waits for the migration reads the database; what prepares models reads none of the site's secrets."""
    for name, container in containers("initContainers"):
        assert not any("secretRef" in each for each in container.get("envFrom", [])), name
        keys = {each["valueFrom"]["secretKeyRef"]["key"] for each in container.get("env", []) if "valueFrom" in each}
        assert keys == ({"DATABASE_URL", "PARLEY_SECRET_KEY"} if container["name"] == "migrated" else set()), name


def test_pods_of_ranks_and_engines_reach_each_other_alone():
    (cluster,) = [d for _, d in DOCUMENTS if d["kind"] == "RayCluster"]
    policies = {d["metadata"]["name"]: d["spec"] for _, d in DOCUMENTS if d["kind"] == "NetworkPolicy"}

    def labels(group):
        return group["template"]["metadata"]["labels"]

    head, *workers = labels(cluster["spec"]["headGroupSpec"]), *map(labels, cluster["spec"]["workerGroupSpecs"])
    entering, leaving = policies["parley-ray"], policies["parley-ray-workers"]
    (of_valkey,) = policies["parley-valkey"]["ingress"][0]["from"]
    nodes = {"podSelector": {"matchLabels": {"app": "parley-ray"}}}
    assert entering["ingress"] == [{"from": [nodes]}]
    assert leaving["egress"][0] == {"to": [nodes]}
    assert [{port["port"] for port in rule["ports"]} for rule in leaving["egress"][1:]] == [{53}]
    for each in [head, *workers]:
        assert entering["podSelector"]["matchLabels"].items() <= each.items()
    for each in workers:
        assert leaving["podSelector"]["matchLabels"].items() <= each.items()
        assert not of_valkey["podSelector"]["matchLabels"].items() <= each.items()
    assert of_valkey["podSelector"]["matchLabels"].items() <= head.items(), "its worker is one of the site's"
    assert not leaving["podSelector"]["matchLabels"].items() <= head.items()


def test_no_container_may_more_than_it_must():
    for name, pod in PODS:
        assert pod["securityContext"]["runAsNonRoot"] is True, name
        assert pod["automountServiceAccountToken"] is False, name
    for name, container in containers() + containers("initContainers"):
        security = container["securityContext"]
        assert security["allowPrivilegeEscalation"] is False, name
        assert security["readOnlyRootFilesystem"] is True, name
        assert security["capabilities"] == {"drop": ["ALL"]}, name
        assert {"requests", "limits"} <= set(container["resources"]), name


def test_what_parley_writes_is_on_volumes():
    """PARLEY_HOME, temporary files and the caches of libraries, where the images have them."""
    dockerfile = (ROOT / "Dockerfile").read_text()
    assert "PARLEY_HOME=/data" in dockerfile
    assert "--uid 10001 parley" in dockerfile
    for name, pod in PODS:
        for container in [*pod["containers"], *pod.get("initContainers", [])]:
            if container["image"].startswith("parley-"):
                paths = {mount["mountPath"] for mount in container["volumeMounts"]}
                assert {"/data", "/tmp", "/home/parley/.cache"} <= paths, name  # noqa: S108 (in the container)
                assert pod["securityContext"]["runAsUser"] == 10001, name


def test_a_stop_gives_processes_time_to_save():
    for name, pod in PODS:
        commands = json.dumps([container.get("command", []) for container in pod["containers"]])
        if "train-" in commands or '"serve", "--pool"' in commands:
            assert pod["terminationGracePeriodSeconds"] > KILL_SECONDS + 10, name


def test_a_rolling_update_always_leaves_the_site_in_place():
    (web,) = [d for _, d in DOCUMENTS if named(d) == "Deployment parley-web"]
    assert web["spec"]["replicas"] >= 2
    assert web["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    (container,) = web["spec"]["template"]["spec"]["containers"]
    drained = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
    assert drained + 5 + 5 < web["spec"]["template"]["spec"]["terminationGracePeriodSeconds"], "uvicorn waits for 5 s"
    assert container["readinessProbe"]["httpGet"]["path"] == "/healthz"
    (budget,) = [d for _, d in DOCUMENTS if d["kind"] == "PodDisruptionBudget"]
    assert budget["spec"]["selector"]["matchLabels"].items() <= web["spec"]["template"]["metadata"]["labels"].items()


def test_all_nodes_of_ray_are_alike():
    """What a driver asks of a cluster that it joins: the same Ray, Python, code, and paths; and the token."""
    (cluster,) = [d for _, d in DOCUMENTS if d["kind"] == "RayCluster"]
    pinned = re.search(r"^ray==(\S+)$", (ROOT / "requirements" / "base.in").read_text(), re.MULTILINE)
    assert pinned
    assert cluster["spec"]["rayVersion"] == pinned[1]
    nodes = [container for _, container in containers(among=list(pods(("ray",))))]
    assert [node["name"] for node in nodes] == ["ray-head", "worker-gpu", "ray-worker"]
    for node in nodes:
        assert node["image"] == "parley-gpu"
        variables = {each["name"]: each.get("value") for each in node["env"]}
        assert variables["RAY_AUTH_MODE"] == "token"
        folder, _, file = variables["RAY_AUTH_TOKEN_PATH"].rpartition("/")
        assert file == "token"
        assert {folder, "/data", "/dev/shm", "/tmp"} <= {mount["mountPath"] for mount in node["volumeMounts"]}  # noqa: S108
    head, driver, worker = nodes
    port = cluster["spec"]["headGroupSpec"]["rayStartParams"]["port"]
    assert {each["name"]: each.get("value") for each in driver["env"]}["RAY_ADDRESS"] == f"$(POD_IP):{port}"
    assert "nvidia.com/gpu" not in driver["resources"]["limits"], "the driver needs none"
    assert head["resources"] == worker["resources"]


def test_every_part_of_a_node_of_ray_is_probed():
    """A raylet that hangs keeps its container alive; that of the head serves the driver."""
    (cluster,) = [d for _, d in DOCUMENTS if d["kind"] == "RayCluster"]
    head, (workers,) = cluster["spec"]["headGroupSpec"], cluster["spec"]["workerGroupSpecs"]
    for group, names in ((head, {"port", "node-manager-port"}), (workers, {"node-manager-port"})):
        container = group["template"]["spec"]["containers"][0]
        ports = {group["rayStartParams"][name] for name in names}
        for kind in ("livenessProbe", "readinessProbe"):
            probe = container[kind]
            command = probe["exec"]["command"][-1] if "exec" in probe else f"/{probe['tcpSocket']['port']}"
            assert set(re.findall(r"/(\d+)", command)) == ports


def test_the_probe_of_the_head_wants_both_parts(monkeypatch):
    (cluster,) = [d for _, d in DOCUMENTS if d["kind"] == "RayCluster"]
    container = cluster["spec"]["headGroupSpec"]["template"]["spec"]["containers"][0]
    command = container["livenessProbe"]["exec"]["command"]
    with socket.create_server(("127.0.0.1", 0)) as gcs, socket.create_server(("127.0.0.1", 0)) as raylet:
        ports = [str(each.getsockname()[1]) for each in (gcs, raylet)]
        asked = [word.replace("6379", ports[0]).replace("6380", ports[1]) for word in command]
        monkeypatch.setenv("POD_IP", "127.0.0.1")
        assert subprocess.run(asked, check=False).returncode == 0
        raylet.close()
        assert subprocess.run(asked, check=False, capture_output=True).returncode != 0


@pytest.mark.parametrize("gpus, larger", [("gpu", set()), ("ray", {"qwen3-4b", "qwen2.5-7b"})])
def test_machines_that_train_have_the_models_of_what_the_site_offers(gpus, larger):
    """With a Ray cluster it offers the presets for several GPUs, too."""
    if larger:
        assert larger == {PRESETS[name].config()["model"]["base"] for name in PRESETS if presets._gpus(name)}
    prepared = {}
    for name, pod in pods(("site", gpus)):
        if "train-" in json.dumps([container.get("command", []) for container in pod["containers"]]):
            (command,) = [c["command"] for c in pod["initContainers"] if c["name"] == "models"]
            prepared[name] = {*command[command.index("prepare") + 1 :]}
    assert len(prepared) == 2
    assert set.intersection(*prepared.values()) == {"tiny", "smollm2-135m"}
    assert set.union(*prepared.values()) == {"tiny", "smollm2-135m", *larger}


def test_the_token_reaches_the_process_that_trains():
    """A worker gives its environment on without secrets: a token in a variable would stay behind."""
    from training.environment import visible

    by_file = {"RAY_AUTH_TOKEN_PATH": "/etc/parley-ray/token", "RAY_AUTH_MODE": "token"}
    assert visible({**by_file, "RAY_AUTH_TOKEN": "x"}) == by_file


def test_services_find_their_pods():
    labels = [d["spec"]["template"]["metadata"]["labels"] for _, d in DOCUMENTS if "template" in d.get("spec", {})]
    for _, document in DOCUMENTS:
        if document["kind"] == "Service":
            assert any(document["spec"]["selector"].items() <= each.items() for each in labels), named(document)
    (ingress,) = [d for _, d in DOCUMENTS if d["kind"] == "Ingress"]
    assert ingress["spec"]["rules"][0]["host"] == variables("ConfigMap", "data")["PARLEY_HOSTS"]
    (valkey,) = [d for _, d in DOCUMENTS if named(d) == "Service parley-valkey"]
    assert (
        variables("ConfigMap", "data")["REDIS_URL"] == f"redis://parley-valkey:{valkey['spec']['ports'][0]['port']}/0"
    )
