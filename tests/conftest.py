"""Fixtures for every test: databases of their own, people of every role, and clients signed in as them.

The databases are the embedded ones, in a folder of their own under the temporary folder: PostgreSQL is shared by
test sessions that run at the same time (each has its own database), Valkey is one per session. They are started by
the first test that asks for a database, and stopped when the last session leaves. `DATABASE_URL` and `REDIS_URL` are
respected. The embedded PostgreSQL keeps a migrated database, of which those of the sessions are copies.
"""

import fcntl
import gc
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.installation import SHARED, migrations

ROOT = Path(__file__).resolve().parents[1]
_SESSION = os.environ.setdefault("PARLEY_TEST_SESSION", str(os.getpid()))
_WORKER = os.environ.get("PYTEST_XDIST_WORKER", "main")
_WORKER_FOLDER = SHARED / f"{_SESSION}-{_WORKER}"

# The settings are read by `pytest_configure` below: they must find their addresses, so this comes first.
os.environ["DJANGO_SETTINGS_MODULE"] = "webapp.settings"
os.environ["PARLEY_ENV"] = "development"
os.environ["PARLEY_HOME"] = str(_WORKER_FOLDER)
os.environ["PARLEY_TEST_DATABASE"] = f"test_parley_{_SESSION}"
# What the session starts itself. A process of a parallel session inherits the addresses of the one that began it, and
# must not take them for somebody else's servers: so the names travel with them.
_MISSING = [name for name in ("DATABASE_URL", "REDIS_URL") if not os.environ.get(name)]
_WANTED = os.environ.setdefault("PARLEY_TEST_WANTED", ",".join(_MISSING)).split(",")

from webapp.core import embedded, pids  # noqa: E402  (after the environment is set)

_POSTGRES = embedded.Postgres(SHARED, options=("fsync=off", "full_page_writes=off", "synchronous_commit=off"))
_VALKEY = embedded.Valkey(_WORKER_FOLDER)
for _name, _url in (("DATABASE_URL", _POSTGRES.url), ("REDIS_URL", _VALKEY.url)):
    if _name in _WANTED:
        os.environ[_name] = _url


def pytest_configure(config: pytest.Config) -> None:
    """Set Django up; pytest-django does the rest once the settings are there."""
    import django
    from django.conf import settings

    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # so a shell starts what runs in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)  # else no process under test would hear Ctrl-C
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # quick; nothing here is secret
    django.setup()
    from django.test import TransactionTestCase

    TransactionTestCase._fixture_teardown = _delete_rows
    if getattr(config.option, "numprocesses", None):
        # With this name in their environment, parallel processes would load the settings before they come by here.
        del os.environ["DJANGO_SETTINGS_MODULE"]


def pytest_collection_finish() -> None:
    """What was imported stays, so the garbage collector need not look at it again; and it looks less often.

    With Python's own thresholds it takes a tenth of the processor time of the tests of pages.
    """
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse tests whose mark is not in the text of their file: `tools.test` reads only files that have it there."""
    for mark in ("process", "vllm", "serial"):
        for path in {item.path for item in items if item.get_closest_marker(mark)}:
            if f"mark.{mark}" not in path.read_text("utf-8"):
                raise pytest.UsageError(f"{path} has tests with the mark {mark} and does not name it")
    for path in {item.path for item in items if item.get_closest_marker("browser")}:
        if path.parent != ROOT / "tests" / "browser":
            raise pytest.UsageError(f"{path} has tests with the mark browser outside tests/browser")


def _delete_rows(case: object) -> None:
    """Leave the tables as Django's `flush` does, in a tenth of its time: it truncates all, and makes the types anew."""
    from django.db import connection

    from webapp.judgments.codebooks.services import load_codebooks

    with connection.cursor() as cursor:
        cursor.execute("""
            DO $$ DECLARE name text; BEGIN
                SET LOCAL session_replication_role = replica;  -- rows go in any order
                FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'public'
                    AND tablename NOT IN ('django_migrations', 'django_content_type', 'auth_permission')
                LOOP EXECUTE format('DELETE FROM %I', name); END LOOP;
            END $$""")
    load_codebooks()


def _migrated() -> str:
    """The name of a database with every table, which is made once for these migrations."""
    import psycopg

    name = f"migrated_{migrations()}"
    url = os.environ["DATABASE_URL"]
    with (SHARED / "migrated.lock").open("w") as lock, psycopg.connect(url, autocommit=True) as connection:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone():
            connection.execute("DROP DATABASE IF EXISTS migrating")  # of a session that was killed here
            connection.execute("CREATE DATABASE migrating")
            command = [sys.executable, "manage.py", "migrate", "--no-input", "-v0"]
            environment = os.environ | {"DATABASE_URL": url.replace("/postgres?", "/migrating?")}
            subprocess.run(command, cwd=ROOT, env=environment, check=True)
            connection.execute(f"ALTER DATABASE migrating RENAME TO {name}")
    return name


def _drop_databases_of_dead_sessions() -> None:
    import psycopg

    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        names = connection.execute("SELECT datname FROM pg_database WHERE datname LIKE 'test_parley_%'").fetchall()
        for (name,) in names:
            session = name.removeprefix("test_parley_").split("_")[0]
            if session.isdigit() and pids.start_time(int(session)) is None:
                connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


@pytest.fixture(autouse=True)
def denormals() -> Iterator[None]:
    """Let the process compute with denormal numbers again after a test that trained a model; Hypothesis needs them."""
    yield
    if torch := sys.modules.get("torch"):
        torch.set_flush_denormal(False)


@pytest.fixture(scope="session")
def databases() -> Iterator[None]:
    """PostgreSQL and Valkey, running."""
    if "DATABASE_URL" in _WANTED:
        embedded.join([_POSTGRES], SHARED)
        _drop_databases_of_dead_sessions()
    if "REDIS_URL" in _WANTED:
        embedded.join([_VALKEY], _WORKER_FOLDER)
    yield
    if "REDIS_URL" in _WANTED:
        embedded.leave([_VALKEY], _WORKER_FOLDER, os.getpid(), last=True)
    shutil.rmtree(_WORKER_FOLDER, ignore_errors=True)


@pytest.fixture(scope="session")
def django_db_modify_db_settings(databases: None, django_db_modify_db_settings_parallel_suffix: None) -> None:
    """Start the databases before pytest-django makes its own database in them, as a copy where it can."""
    from django.conf import settings

    if "DATABASE_URL" in _WANTED:
        settings.DATABASES["default"]["TEST"]["TEMPLATE"] = _migrated()


@pytest.fixture
def person(db: None) -> Callable[..., object]:
    """Makes a person of a role: `person("researcher")`, `person("player", "ann")`. The password is `let me in 9`."""
    from webapp.accounts.models import User

    def make(role: str, name: str = "") -> User:
        name = name or f"{role}{User.objects.count()}"
        user = User(username=name, role=role)
        user.set_password(PASSWORD)
        user.save()
        return user

    return make


PASSWORD = "let me in 9"
ROLES = ("player", "annotator", "researcher", "admin", "guest")


@pytest.fixture
def client_of(client) -> Callable[..., object]:
    """A client signed in as somebody: `client_of(user)`; `client_of(None)` is not signed in."""
    from django.test import Client

    def make(user: object | None, **options: object) -> Client:
        made = Client(**options)
        if user is not None:
            made.force_login(user)
        return made

    return make


@pytest.fixture
def home(tmp_path, monkeypatch, settings):
    """A folder of the test's own for `PARLEY_HOME` and the files of the site."""
    folder = tmp_path / "home"
    monkeypatch.setenv("PARLEY_HOME", str(folder))
    settings.HOME, settings.MEDIA_ROOT = folder, folder / "files"
    return folder


@pytest.fixture
def stub(monkeypatch):
    """A chat server on this machine, whose address `MODEL_ADDRESSES` allows; see `tests.stub`."""
    from tests.stub import Stub

    with Stub() as server:
        monkeypatch.setenv("MODEL_ADDRESSES", server.url)
        yield server


@pytest.fixture
def deployment(stub, admin):
    """The remote model `stub`, which answers by the server `stub`."""
    from webapp.serving.models import Deployment, RemoteModel

    remote = RemoteModel.objects.create(name="stub", address=stub.url, model="stub", added_by=admin)
    return Deployment.objects.create(remote=remote, state=Deployment.State.READY)


@pytest.fixture
def unpaced(monkeypatch):
    """Models and scripts move as soon as they have an answer, instead of after as long as a person might take."""
    from webapp.arena.play import pace
    from worker import play

    for delay in ("draw", "reading_time"):
        monkeypatch.setattr(pace, delay, lambda *_: 0.0)
    monkeypatch.setattr(play, "PAUSE_SECONDS", 0.01)


@pytest.fixture
def researcher(person):
    return person("researcher", "rosa")


@pytest.fixture
def other_researcher(person):
    return person("researcher", "otto")


@pytest.fixture
def player(person):
    return person("player", "pia")


@pytest.fixture
def annotator(person):
    return person("annotator", "anna")


@pytest.fixture
def admin(person):
    return person("admin", "ada")


@pytest.fixture
def guest(person):
    return person("guest", "guest-1")
