"""What people change about the data that the site holds about them."""

from __future__ import annotations

from django.db import transaction

from webapp.accounts.models import User
from webapp.core import quotas


@transaction.atomic
def count_copy(*, user: User) -> None:
    """Count a copy of a person's own data that is about to be written; raise `BadInput` at the quota."""
    quotas.spend(user=user, quota="data_copies_per_hour", wait=False)
