"""The project in `examples/` is installed as anybody would install it, and played."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NIM = ROOT / "examples" / "nim"


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder with the distribution in it, built from a copy: building writes into the source."""
    source = shutil.copytree(NIM, tmp_path_factory.mktemp("source") / "nim")
    target = tmp_path_factory.mktemp("site")
    offline = (
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "--disable-pip-version-check",
        "--target",
        str(target),
    )
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", *offline, str(source)], check=True)
    return target


def python(installed, *arguments, **environment):
    path = os.pathsep.join([str(installed), str(NIM / "tests")])
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_game_is_listed_and_played_from_the_command_line(installed):
    games = json.loads(python(installed, "-m", "training", "games", "--json").stdout)["games"]
    assert "nim" in {game["name"] for game in games}
    played = python(
        installed, "-m", "training", "play", "nim", "--players", "scripted,nim-greedy", "--episodes", "20", "--json"
    )
    assert played.returncode == 0, played.stderr
    result = json.loads(played.stdout)
    assert (result["episodes"], result["errors"], result["forfeits"]) == (20, 0, 0)
    assert result["returns"][0] == -result["returns"][1] > 0
    assert result["seat_metrics"][0]["win"] == (1 + result["returns"][0]) / 2


@pytest.mark.slow
def test_its_own_tests_and_the_contract_tests_pass(installed):
    result = python(installed, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(NIM / "tests"))
    assert result.returncode == 0, result.stdout
    contract = python(
        installed, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/contract/test_games.py", "-k", "nim",
        PARLEY_CASES="nim_cases",
    )  # fmt: skip
    assert contract.returncode == 0, contract.stdout
    assert int(contract.stdout.split(" passed")[0].split()[-1]) >= 30


def test_without_the_package_there_is_no_such_game():
    done = subprocess.run(
        [sys.executable, "-m", "training", "play", "nim", "--players", "random,random"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "unknown game 'nim'" in done.stderr
