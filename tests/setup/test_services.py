"""What `make up` and docker-compose start exists, serves every queue once, and begins and ends with the databases."""

import configparser
import os
import re
import shlex
import subprocess
from importlib import import_module
from pathlib import Path

import pytest
import yaml
from django.core.management import get_commands

from tools import up
from webapp.core.queue import QUEUES

ROOT = Path(__file__).resolve().parents[2]
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES = COMPOSE["services"]
DOCKERFILE = (ROOT / "Dockerfile").read_text()


@pytest.fixture
def env(monkeypatch, tmp_path):
    monkeypatch.setenv("PARLEY_HOME", str(tmp_path))
    return up.environment(8123)


@pytest.fixture
def supervisord(env):
    """The process manager's configuration as it reads it: `%(ENV_X)s` filled in from what `make up` sets."""
    text = (ROOT / "deploy" / "supervisord.conf").read_text()
    text = re.sub(r"%\(ENV_(\w+)\)s", lambda match: env[match[1]], text).replace("%(here)s", str(ROOT / "deploy"))
    parsed = configparser.RawConfigParser(inline_comment_prefixes=(" ;",))
    parsed.read_string(text)
    return parsed


def programs(parsed):
    return {name.removeprefix("program:"): parsed[name] for name in parsed.sections() if name.startswith("program:")}


def words(command):
    return shlex.split(command) if isinstance(command, str) else [word for part in command for word in part.split()]


def queues(commands):
    """Every queue that some worker of these commands serves, as often as it is served."""
    queues = []
    for command in map(words, commands):
        if "--queues" in command:
            queues += command[command.index("--queues") + 1].split(",")
    return queues


def managed(commands):
    """Every `manage.py` subcommand in these commands."""
    for command in map(words, commands):
        yield from (command[n + 1] for n, word in enumerate(command) if word == "manage.py")


def test_supervised_commands_exist(supervisord):
    asked = set(managed(program["command"] for program in programs(supervisord).values()))
    assert asked == {"databases", "serve", "clock"}
    assert asked <= set(get_commands())


def test_supervised_workers_serve_every_queue_once(supervisord, env):
    served = queues(program["command"] for program in programs(supervisord).values())
    expected = set(QUEUES) - ({"train-gpu"} if "train-gpu" not in env["PARLEY_TRAIN_QUEUES"] else set())
    assert sorted(served) == sorted(expected)


def test_turns_with_a_deadline_have_a_worker_of_their_own(supervisord):
    supervised = [program["command"] for program in programs(supervisord).values()]
    composed = [service["command"] for service in SERVICES.values() if "command" in service]
    for commands in (supervised, composed):
        assert [queues([command]) for command in commands if "play" in queues([command])] == [["play"]]


def test_databases_start_first_and_everything_else_is_one_group(supervisord):
    group = supervisord["group:site"]
    assert int(programs(supervisord)["databases"]["priority"]) < int(group["priority"])
    assert set(group["programs"].split(",")) == set(programs(supervisord)) - {"databases", "models"}
    assert programs(supervisord)["models"]["autorestart"] == "false", "models are prepared once, then it ends"
    for name in (*group["programs"].split(","), "models"):
        assert programs(supervisord)[name]["autostart"] == "false", "started once the databases answer"


def test_every_program_has_a_log_of_its_own(supervisord, env):
    logs = {name: program["stdout_logfile"] for name, program in programs(supervisord).items()}
    assert logs == {name: f"{env['PARLEY_LOGS']}/{name}.log" for name in logs}


def test_worker_commands_name_an_application_that_exists():
    from celery import Celery

    from worker.app import app

    assert isinstance(app, Celery)
    commands = [service["command"] for service in SERVICES.values() if "celery" in service.get("command", [])]
    assert commands
    for command in commands:
        assert command[:4] == ["celery", "-A", "worker.app", "worker"]
        assert command[command.index("--pool") + 1] == "threads"


def test_compose_has_every_part():
    assert {"postgres", "redis", "web", "clock", "worker-cpu", "worker-play", "worker-gpu", "vllm"} <= set(SERVICES)


def test_compose_serves_every_queue_once():
    assert sorted(queues(service["command"] for service in SERVICES.values() if "command" in service)) == sorted(QUEUES)


def test_compose_commands_exist():
    asked = set(managed(service["command"] for service in SERVICES.values() if "command" in service))
    assert {"migrate", "collectstatic", "serve", "clock"} == asked
    assert asked <= set(get_commands())


def test_compose_builds_stages_that_the_dockerfile_has():
    stages = set(re.findall(r"^FROM \S+ AS (\w+)$", DOCKERFILE, re.MULTILINE))
    wanted = {service["build"]["target"] for service in SERVICES.values() if "build" in service}
    assert wanted <= stages
    assert {service["build"]["context"] for service in SERVICES.values() if "build" in service} == {"."}


def test_dockerfile_copies_what_is_there():
    sources = [word for line in re.findall(r"^COPY (.+) \S+$", DOCKERFILE, re.MULTILINE) for word in line.split()]
    assert sources
    assert [source for source in sources if not (ROOT / source).exists()] == []


def test_compose_waits_for_services_that_say_when_they_are_healthy():
    for name, service in SERVICES.items():
        for other, condition in service.get("depends_on", {}).items():
            assert condition == {"condition": "service_healthy"}
            assert "healthcheck" in SERVICES[other], f"{name} waits for {other}, which never says that it is healthy"


def test_compose_volumes_are_declared():
    used = {volume.split(":")[0] for service in SERVICES.values() for volume in service.get("volumes", [])}
    assert used == set(COMPOSE["volumes"])


def test_the_model_server_asks_for_its_key_on_every_path():
    command = SERVICES["vllm"]["command"]
    package, _, name = command[command.index("--middleware") + 1].rpartition(".")
    assert hasattr(import_module(package), name)


def test_the_model_server_does_not_start_without_a_key(tmp_path):
    entrypoint = [word.replace("$$", "$") for word in SERVICES["vllm"]["entrypoint"]]  # as docker compose reads it
    for key in ("", "secret"):
        env = {**os.environ, "VLLM_API_KEY": key}
        subprocess.run([*entrypoint, "touch", f"with {key}"], env=env, cwd=tmp_path, check=False, capture_output=True)
    assert [path.name for path in tmp_path.iterdir()] == ["with secret"]


def test_compose_sets_only_variables_that_the_settings_document():
    documented = set(re.findall(r"^([A-Z][A-Z0-9_]+) +\S", (ROOT / "webapp" / "settings.py").read_text(), re.MULTILINE))
    environment = COMPOSE["x-environment"]
    keys = {name for name in environment if name.endswith("_API_KEY")}
    assert set(environment) - keys <= documented
    assert all(f"={name}" in environment["MODEL_ADDRESSES"] for name in keys), "a key that may be sent nowhere"
    assert {"PARLEY_ENV", "PARLEY_SECRET_KEY", "PARLEY_HOSTS", "DATABASE_URL", "REDIS_URL"} <= set(environment)
    for required in ("PARLEY_SECRET_KEY", "PARLEY_HOSTS"):
        assert environment[required].startswith(f"${{{required}:?"), "no default for what must be chosen"
    assert "${POSTGRES_PASSWORD:?" in environment["DATABASE_URL"]
    assert SERVICES["postgres"]["environment"]["POSTGRES_PASSWORD"].startswith("${POSTGRES_PASSWORD:?")
