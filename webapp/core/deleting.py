"""Deleting rows that others may refer to: refused with the names of a few of them, without any change."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction
from django.db.models import ProtectedError

from training.errors import BadInput

NAMED = 3


@contextmanager
def refused_if_used(name: str) -> Iterator[None]:
    """Delete rows inside; raises `BadInput` about `name` if a protected relation still points at one of them."""
    try:
        with transaction.atomic():
            yield
    except ProtectedError as error:
        users = sorted({f"{used._meta.verbose_name} {used}" for used in error.protected_objects})
        more = f" and {len(users) - NAMED} more" if len(users) > NAMED else ""
        raise BadInput(f"it is still used by {', '.join(users[:NAMED])}{more}: delete that first", name) from error
