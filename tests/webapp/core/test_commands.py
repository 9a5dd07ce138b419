"""How `manage.py` ends when a command fails: one line and an exit status, never a page of traceback."""

import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from django.db import OperationalError

from webapp.core.commands import CLOSED_PIPE, REFUSED, explained, reported

ROOT = Path(__file__).resolve().parents[3]
EMPTY = "test_parley_unmigrated"


def manage(*arguments, url, stdout=subprocess.PIPE):
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env={**os.environ, "DATABASE_URL": url},
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )


@pytest.fixture
def unmigrated(db):
    """The address of a database without tables."""
    name = f"{EMPTY}_{os.getpid()}"
    url = os.environ["DATABASE_URL"]
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    yield url.replace("/postgres?", f"/{name}?")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name}")


def test_a_database_that_is_not_migrated_is_named_in_one_line(unmigrated):
    ended = manage("export_dataset", "camp", url=unmigrated)
    assert ended.returncode == REFUSED, ended.stderr
    (line,) = ended.stderr.splitlines()
    assert line.startswith("error: the database does not have this version's tables (relation ")
    assert line.endswith("run `manage.py migrate`")
    assert "Traceback" in manage("export_dataset", "camp", "--traceback", url=unmigrated).stderr


def test_a_database_that_cannot_be_reached_is_one_line(capsys):
    with pytest.raises(SystemExit) as ended, reported([]):
        raise OperationalError("connection failed\n\tIs the server running?")
    assert ended.value.code == REFUSED
    assert capsys.readouterr().err == "error: the database cannot be used: connection failed\n"


def test_a_full_standard_output_is_named_and_a_closed_one_is_quiet():
    url = os.environ["DATABASE_URL"]
    with Path("/dev/full").open("w") as full:
        ended = manage("help", url=url, stdout=full)
    assert (ended.returncode, ended.stderr) == (REFUSED, "error: No space left on device\n")
    reader, writer = os.pipe()
    os.close(reader)
    ended = manage("help", url=url, stdout=writer)
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (CLOSED_PIPE, "")


def test_a_mistake_of_the_program_keeps_its_traceback():
    with pytest.raises(ZeroDivisionError), reported([]):
        _ = 1 / 0


def test_a_file_is_named():
    assert explained(FileNotFoundError(2, "No such file or directory", "a.toml")) == "a.toml: No such file or directory"
