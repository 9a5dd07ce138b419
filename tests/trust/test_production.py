"""Production settings: clean under Django's own check, and without the settings of a trial."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GOOD = {
    "PARLEY_ENV": "production",
    "PARLEY_SECRET_KEY": "mF3v9Qx1Lw7Zk2Pn8Rt5Yb4Jc6" + "Hd0Gs-aUeIoTqXyVzNpMhKjWr",
    "PARLEY_HOSTS": "parley.example.org",
    "DATABASE_URL": "postgresql://parley@127.0.0.1:1/parley",
    "REDIS_URL": "redis://127.0.0.1:1",
    "PARLEY_TEST_DATABASE": "unused",
}


def manage(*arguments, **environment):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PARLEY_", "DATABASE_", "REDIS_"))}
    command = [sys.executable, "manage.py", *arguments]
    variables = {**kept, **GOOD, **environment}
    return subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)


def test_the_deployment_check_is_clean():
    done = manage("check", "--deploy", "--fail-level", "WARNING")
    assert done.returncode == 0, done.stderr
    assert "no issues" in done.stdout


@pytest.mark.parametrize(
    "environment, message",
    [
        ({"PARLEY_SECRET_KEY": ""}, "PARLEY_SECRET_KEY"),
        ({"PARLEY_SECRET_KEY": "short"}, "PARLEY_SECRET_KEY"),
        ({"PARLEY_SECRET_KEY": "a" * 60}, "PARLEY_SECRET_KEY"),
        ({"PARLEY_DEBUG": "1"}, "PARLEY_DEBUG"),
        ({"PARLEY_HOSTS": ""}, "PARLEY_HOSTS"),
        ({"PARLEY_HOSTS": "*"}, "PARLEY_HOSTS"),
        ({"PARLEY_HOSTS": "parley.example.org,*"}, "PARLEY_HOSTS"),
        ({"PARLEY_ENV": "prodution"}, "PARLEY_ENV"),
        ({"DATABASE_URL": "sqlite:///db"}, "DATABASE_URL"),
    ],
)
def test_what_is_unsafe_is_refused_with_its_name(environment, message):
    done = manage("check", **environment)
    assert done.returncode != 0
    assert message in done.stderr


def test_the_development_key_is_refused():
    from webapp import settings

    done = manage("check", PARLEY_SECRET_KEY=settings.DEVELOPMENT_KEY)
    assert done.returncode != 0
    assert "PARLEY_SECRET_KEY" in done.stderr


def test_any_host_is_refused_in_development_too():
    done = manage("check", PARLEY_ENV="development", PARLEY_HOSTS="*")
    assert done.returncode != 0
    assert "origin check" in done.stderr


def test_cookies_are_bound_to_the_host():
    code = "from webapp import settings as s; print(s.SESSION_COOKIE_NAME, s.CSRF_COOKIE_NAME, s.SESSION_COOKIE_SECURE)"
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PARLEY_", "DATABASE_", "REDIS_"))}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env={**kept, **GOOD}, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["__Host-session", "__Host-csrf", "True"]
