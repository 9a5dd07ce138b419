"""The tasks that read an uploaded dataset, store it after confirmation, and take withdrawn conversations out."""

from celery import shared_task
from django.db import close_old_connections

from webapp.core.queue import READ_IMPORT, STORE_IMPORT, WITHDRAW
from webapp.scenarios import imports, withdrawing


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


@shared_task(name=WITHDRAW.name)
def withdraw(pk: int) -> None:
    """Do what a withdrawal of consent still asks for, unless another worker does."""
    try:
        withdrawing.work(pk=pk)
    finally:
        close_old_connections()
