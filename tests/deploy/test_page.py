"""The commands of docs/deploy.md and of deploy/slurm: everything that they name exists, and what can run here runs."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import get_commands, load_command_class

from tests.deploy.compose import COMPOSE, SERVICES
from training.cli.parser import WrongArguments, build

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "deploy.md").read_text("utf-8")
SLURM = ROOT / "deploy" / "slurm" / "train.sh"
BLOCKS = re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
ASSIGNMENT = re.compile(r"[A-Z][A-Z0-9_]*=")


def commands(text):
    """Every command of a text, as words, without the variables in front of it."""
    parsed = []
    for line in text.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;()<>")
        lexer.whitespace_split = True
        lexer.commenters = "#"
        words: list[str] = []
        for word in [*lexer, ";"]:
            if set(word) <= set("|&;()<>"):
                while words and (ASSIGNMENT.match(words[0]) or words[0] in {"do", "then", "else", "!"}):
                    words.pop(0)
                if words:
                    parsed.append(words)
                words = []
            else:
                words.append(word)
    return parsed


TYPED = [words for block in BLOCKS for words in commands(block)]
"""The commands of the page."""
ALL = TYPED + commands(SLURM.read_text())


def beginning(*words):
    """The arguments of the commands that begin so, wherever in the line."""
    size = len(words)
    rests = [[line[n + size :] for n in range(len(line)) if tuple(line[n : n + size]) == words] for line in ALL]
    return [rest[0] for rest in rests if rest]


def test_there_is_something_to_test():
    assert len(BLOCKS) >= 6
    assert len(beginning("ray", "start")) == 4
    assert len(beginning("python", "-m", "training")) >= 8
    assert len(beginning("celery")) == 5


@pytest.mark.parametrize("arguments", beginning("python", "-m", "training"), ids=" ".join)
def test_commands_of_training_are_understood(arguments):
    example = {"$config": "training/configs/omar/quick.toml", "$run": "runs/x", "NAME": "tiny"}
    arguments = [example.get(word, word) for word in arguments]
    try:
        build().parse_args(arguments)
    except WrongArguments as error:
        pytest.fail(f"{' '.join(arguments)}: {error}")
    for word in arguments:
        if word.endswith(".toml"):
            assert (ROOT / word).is_file()


@pytest.mark.parametrize(
    "arguments, code",
    [(rest, 2 if "--gpus 1" in " ".join(rest) else 0) for rest in beginning("python", "-m", "training", "plan")],
    ids=str,
)
def test_plans_say_what_the_page_says(arguments, code, tmp_path):
    """The first one does not fit, the others do; sizes come from a table, so that no model need be here."""
    shape = "7b" if "32" in arguments else "4b"
    command = [sys.executable, "-m", "training", "plan", *arguments, "--shape", shape]
    environment = {**os.environ, "PARLEY_HOME": str(tmp_path)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == code, f"{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("verb", ["start", "status", "health-check", "stop"])
def test_options_of_ray_exist(verb):
    from ray.scripts import scripts

    known = {name for parameter in scripts.cli.commands[verb].params for name in parameter.opts}
    used = {word.partition("=")[0] for rest in beginning("ray", verb) for word in rest if word.startswith("--")}
    assert beginning("ray", verb)
    assert used <= known


def test_commands_of_the_site_exist():
    for name, *options in beginning("python", "manage.py"):
        assert name in get_commands()
        if name in {"serve", "check_health"}:
            parser = load_command_class("webapp.core", name).create_parser("manage.py", name)
            parser.parse_args(options)


def test_workers_are_those_of_docker_compose():
    composed = [service["command"][1:] for name, service in SERVICES.items() if "celery" in service.get("command", [])]
    for rest in beginning("celery"):
        assert rest in composed


def test_every_variable_is_one_that_somebody_reads():
    documented = set(re.findall(r"^([A-Z][A-Z0-9_]+) +\S", (ROOT / "webapp" / "settings.py").read_text(), re.MULTILINE))
    of_ray = {"RAY_AUTH_MODE", "RAY_AUTH_TOKEN_PATH", "RAY_USAGE_STATS_ENABLED"}
    of_python = {"PATH", "PYTHONPATH"}
    of_script = set(re.findall(r"\$\{?([A-Z][A-Z0-9_]+)", SLURM.read_text()))
    text = "\n".join(BLOCKS) + SLURM.read_text()
    set_there = set(re.findall(r"(?<![\w/-])([A-Z][A-Z0-9_]+)=", text))
    assert set_there
    assert set_there <= documented | of_ray | of_python | of_script
    assert {"DATABASE_URL", "REDIS_URL", "PARLEY_BUCKET"} <= set_there
    assert set_there & set(COMPOSE["x-environment"])


def test_paths_exist():
    for path in re.findall(r"(?<![\w/])(?:deploy|training)/[\w./-]+", PAGE):
        assert (ROOT / path).exists(), path


def test_the_script_for_slurm_is_valid_and_takes_what_the_page_gives_it():
    subprocess.run(["bash", "-n", SLURM], check=True)
    assert os.access(SLURM, os.X_OK)
    ((script, *arguments),) = beginning("sbatch")
    assert ROOT / script == SLURM
    assert (ROOT / arguments[0]).is_file()
    assert len(arguments) == 2


def test_ports_avoid_those_that_ray_gives_to_workers():
    """Ray's workers listen on ports from 10002 to 19999."""
    ports = {int(port) for port in re.findall(r"--port=(\d+)", "\n".join(BLOCKS) + SLURM.read_text())}
    assert ports == {6379}
