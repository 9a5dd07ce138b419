"""Another request at the same time: work in a thread, or a process, with a database connection of its own.

Only for tests whose rows other connections see: `django_db(transaction=True)`.
"""

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any
from urllib.parse import quote, urlencode

from django.db import connection


def database_address() -> str:
    """The test's own database as `DATABASE_URL` names it to another process."""
    at = connection.settings_dict
    password = f":{quote(at['PASSWORD'], safe='')}" if at["PASSWORD"] else ""
    options = urlencode({name: at[key] for name, key in (("host", "HOST"), ("port", "PORT")) if at[key]})
    return f"postgresql://{quote(at['USER'], safe='')}{password}@/{at['NAME']}?{options}"


def begin(work: Callable[[], Any]) -> "Future[Any]":
    """Work in another thread from now on; its result or exception will be in the future."""

    def closing() -> Any:
        try:
            return work()
        finally:
            connection.close()

    pool = ThreadPoolExecutor(1)
    begun = pool.submit(closing)
    pool.shutdown(wait=False)
    return begun


def until_somebody_waits(seconds: float = 10.0) -> None:
    """Return once a connection to this database waits for a lock that another one holds."""
    ends = time.monotonic() + seconds
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    while time.monotonic() < ends:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_stat_clear_snapshot()")  # else a transaction sees the same for ever
            cursor.execute(waiting)
            if cursor.fetchone()[0]:
                return
        time.sleep(0.02)
    raise AssertionError("nobody waits for a lock")
