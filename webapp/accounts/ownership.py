"""Rows that a researcher owns: which of them a person may see and change."""

from __future__ import annotations

from typing import Self, TypeVar

from django.db import models

from webapp.accounts.models import User

M = TypeVar("M", bound=models.Model)


class OwnedQuerySet(models.QuerySet[M]):
    """Rows with an `owner` that all researchers may see."""

    def visible_to(self, user: User) -> Self:
        """Researchers see all rows, nobody else sees any."""
        return self if user.is_researcher else self.none()

    def changeable_by(self, user: User) -> Self:
        """Researchers change their own rows, admins all."""
        if user.is_admin:
            return self
        return self.filter(owner=user) if user.is_researcher else self.none()
