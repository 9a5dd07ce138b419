"""Choices out of many rows: a form lists some of them and accepts all that its query set holds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db.models import QuerySet
from django.forms import ModelChoiceField

MOST = 100


def offer(field: ModelChoiceField[Any], queryset: QuerySet[Any], selected: Iterable[object] = ()) -> None:
    """List the first `MOST` rows and the selected ones (by key; other texts are ignored).

    Every row of `queryset` is a valid choice, listed or not: its own page may link to the form.
    """
    field.queryset = queryset
    rows = list(queryset[:MOST])
    texts = [str(key) for key in selected]
    keys = {int(text) for text in texts if text.isascii() and text.isdigit() and len(text) < 19}
    rows += list(queryset.filter(pk__in=keys - {row.pk for row in rows}))
    empty = [("", field.empty_label)] if field.empty_label is not None else []
    field.choices = [*empty, *((row.pk, field.label_from_instance(row)) for row in rows)]
