"""The task that reads an uploaded dataset."""

from celery import shared_task
from django.db import close_old_connections

from webapp.core.queue import READ_IMPORT
from webapp.scenarios.imports import read_import as read


@shared_task(name=READ_IMPORT.name)
def read_import(pk: int) -> None:
    """Read and check the upload if nobody does; its page then waits for a yes."""
    try:
        read(pk=pk)
    finally:
        close_old_connections()
