"""The task that builds an index of a corpus."""

from celery import shared_task
from django.db import close_old_connections

from webapp.core.queue import BUILD_INDEX
from worker import indexing


@shared_task(name=BUILD_INDEX.name)
def build_index(pk: int) -> None:
    """Build the index unless another worker does, and supervise its process until it ends."""
    try:
        indexing.build(pk)
    finally:
        close_old_connections()
