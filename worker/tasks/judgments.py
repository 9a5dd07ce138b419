"""The task that asks a judge model about one target."""

from celery import shared_task
from django.db import close_old_connections

from webapp.core.queue import JUDGE
from webapp.judgments.judging import judge_target as judge


@shared_task(name=JUDGE.name)
def judge_target(pk: int) -> None:
    """Score the target unless another worker does; a failure is recorded as "could not score"."""
    try:
        judge(pk)
    finally:
        close_old_connections()
