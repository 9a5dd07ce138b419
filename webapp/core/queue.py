"""Sends work to the workers by name. A row is the work: a lost message is sent again by the clock.

Every task's name and default queue stands in `TASKS`; a test compares it with what the workers register. A broker
that is down or hangs neither breaks nor delays a request: the failure is logged, and the clock repeats the hint.
"""

import logging
from dataclasses import dataclass
from typing import Any

from celery import Celery
from django.conf import settings
from django.db import transaction
from kombu.connection import Connection
from kombu.exceptions import KombuError
from redis.exceptions import RedisError

from webapp.core.circuit import CIRCUIT, TIMEOUT_S

logger = logging.getLogger(__name__)

QUEUES = ("train-cpu", "train-gpu", "serve", "play", "judge", "default")


@dataclass(frozen=True)
class Task:
    """A task that a worker offers: its registered name and its default queue."""

    name: str
    queue: str


SUPERVISE = Task("runs.supervise", "train-cpu")
PLAY = Task("arena.play_seat", "play")
ADVISE = Task("arena.advise", "play")
PROBE = Task("arena.probe_match", "judge")
ANALYSE = Task("arena.analyse_match", "default")
READ_IMPORT = Task("scenarios.read_import", "default")
STORE_IMPORT = Task("scenarios.store_import", "default")
WITHDRAW = Task("scenarios.withdraw", "default")
BUILD_INDEX = Task("corpora.build_index", "default")
JUDGE = Task("judgments.judge_target", "judge")
ANALYSE_QUEUE = Task("judgments.analyse_queue", "default")
ANALYSE_RUN = Task("judgments.analyse_run", "default")
SUGGEST = Task("judgments.suggest", "judge")
TRAIN_CLASSIFIER = Task("judgments.train_classifier", "default")
RATE = Task("ladder.refit", "default")
ALERT = Task("runs.send_alerts", "default")
TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        *(SUPERVISE, PLAY, ADVISE, PROBE, ANALYSE),
        *(READ_IMPORT, STORE_IMPORT, WITHDRAW, BUILD_INDEX, JUDGE, ANALYSE_QUEUE, ANALYSE_RUN),
        *(SUGGEST, TRAIN_CLASSIFIER, RATE, ALERT),
    )
}


RETRY_SECONDS = 5.0
"""Longest pause between two tries of a worker to reach a broker that is away."""


class BrokerConnection(Connection):
    """A connection whose tries stay close together, however long the broker is away: by itself kombu waits for 30 s."""

    def ensure_connection(self, *args: Any, **options: Any) -> Connection:
        """Connect, trying again until it succeeds."""
        return super().ensure_connection(*args, **{"interval_max": RETRY_SECONDS, **options})


def make_celery() -> Celery:
    """The Celery application, as senders and workers both need it: fail fast, no results, early acknowledgement."""
    app = Celery("parley", broker=settings.CELERY_BROKER_URL, set_as_current=False)
    app.amqp.Connection = BrokerConnection
    app.conf.update(
        task_ignore_result=True,
        task_acks_late=False,
        task_default_queue="default",
        task_publish_retry=False,
        worker_prefetch_multiplier=1,
        broker_connection_timeout=2,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_transport_options={"socket_timeout": 5, "socket_connect_timeout": 2},
        worker_hijack_root_logger=False,
        worker_send_task_events=False,
        timezone="UTC",
    )
    return app


def make_sender() -> Celery:
    """The same for a process that only sends: a broker that is away fails at once instead of being waited for."""
    app = make_celery()
    quick: dict[str, float] = {"max_retries": 1, "interval_start": 0, "interval_step": 0, "interval_max": 0}
    quick |= {"socket_timeout": TIMEOUT_S, "socket_connect_timeout": TIMEOUT_S}
    app.conf.broker_transport_options = {**app.conf.broker_transport_options, **quick}
    return app


sender = make_sender()


def send(task: Task, *args: Any, queue: str | None = None, delay: float = 0.0) -> None:
    """Send a task once the current transaction commits (at once if there is none); never sent if it rolls back."""
    transaction.on_commit(lambda: publish(task, *args, queue=queue, delay=delay), robust=True)


def publish(task: Task, *args: Any, queue: str | None = None, delay: float = 0.0, expires: float | None = None) -> bool:
    """Send a task now; says whether the broker took it. Tasks carry ids only, never text or secrets.

    `delay`: seconds that whoever gets it waits first. `expires`: seconds after which nobody need look any more, for
    hints that are repeated anyway.
    """
    if not CIRCUIT.closed:
        return False
    options = {"queue": queue or task.queue, "countdown": delay or None, "expires": expires}
    try:
        sender.send_task(task.name, args=args, retry=False, **options)
    except (KombuError, RedisError, OSError) as error:
        CIRCUIT.failed(error)
        logger.warning("hint %s%r not sent, the clock will repeat it: %s", task.name, args, error)
        return False
    return True
