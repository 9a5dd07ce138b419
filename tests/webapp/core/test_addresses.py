"""Addresses from the environment become Django's and Celery's settings."""

import pytest
from django.core.exceptions import ImproperlyConfigured

from webapp.core import addresses


def test_a_database_address_is_taken_apart():
    parsed = addresses.database("postgresql://ann:p%40ss@db.example:5433/parley?sslmode=require")
    expected = {"NAME": "parley", "USER": "ann", "PASSWORD": "p@ss", "HOST": "db.example", "PORT": "5433"}
    assert {key: parsed[key] for key in expected} == expected
    assert parsed["OPTIONS"]["sslmode"] == "require"


def test_a_socket_folder_wins_over_the_host():
    parsed = addresses.database("postgresql://postgres@/postgres?host=/var/run/pg")
    assert (parsed["HOST"], parsed["NAME"], parsed["PORT"]) == ("/var/run/pg", "postgres", "")


def test_another_kind_of_database_is_refused():
    with pytest.raises(ImproperlyConfigured, match="postgresql://, not sqlite://"):
        addresses.database("sqlite:///db.sqlite3")


def test_celery_calls_a_unix_socket_otherwise():
    assert addresses.celery("unix:///tmp/a.sock") == "redis+socket:///tmp/a.sock"
    assert addresses.celery("redis://host:6379/1") == "redis://host:6379/1"
