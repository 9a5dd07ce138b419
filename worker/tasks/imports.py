"""The tasks that read an uploaded dataset, and store it after confirmation."""

from celery import shared_task
from django.db import close_old_connections

from webapp.core.queue import READ_IMPORT, STORE_IMPORT
from webapp.scenarios import imports


@shared_task(name=READ_IMPORT.name)
def read_import(pk: int) -> None:
    """Read and check the upload unless another worker does; its page then asks for confirmation."""
    try:
        imports.read_import(pk=pk)
    finally:
        close_old_connections()


@shared_task(name=STORE_IMPORT.name)
def store_import(pk: int) -> None:
    """Store the confirmed upload unless another worker does."""
    try:
        imports.store_import(pk=pk)
    finally:
        close_old_connections()
