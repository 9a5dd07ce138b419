"""Tables sorted by the query string: `?sort=name` ascending, `?sort=-name` descending."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from django.db.models import F, QuerySet
from django.http import HttpRequest

Rows = TypeVar("Rows", bound=QuerySet[Any])


@dataclass(frozen=True)
class Order:
    """The requested column and direction."""

    name: str
    down: bool = False

    @classmethod
    def requested(cls, request: HttpRequest, default: str) -> Order:
        """Read `?sort=`, which may name no column at all."""
        text = request.GET.get("sort", default)
        return cls(text.removeprefix("-"), text.startswith("-"))

    def __str__(self) -> str:
        return f"-{self.name}" if self.down else self.name

    def apply(self, rows: Rows, sorts: Mapping[str, str], default: str) -> Rows:
        """In the order of a column of `sorts` (an unknown one: of `default`), newest first among equals.

        A field that begins with a minus is descending where its column is ascending, as an age is.
        """
        field = sorts.get(self.name, sorts[default])
        column = F(field.removeprefix("-"))
        down = self.down != field.startswith("-")
        ordered = column.desc(nulls_last=True) if down else column.asc(nulls_last=True)
        result: Rows = rows.order_by(ordered, "-pk")
        return result

    def columns(
        self, titles: Mapping[str, str], sorts: Mapping[str, str], numbers: Iterable[str] = ()
    ) -> list[dict[str, str]]:
        """The heads of the columns as `heads.html` takes them: title, the order that a click asks for (empty where
        the column has none), the present one for a screen reader, the class of the cells.
        """
        unknown = set(sorts) - set(titles)
        assert not unknown, f"no title for {unknown}"
        return [
            {
                "key": key,
                "title": title,
                "next": "" if key not in sorts else f"-{key}" if key == self.name and not self.down else key,
                "now": ("descending" if self.down else "ascending") if key == self.name and key in sorts else "",
                "class": "number" if key in numbers else "",
            }
            for key, title in titles.items()
        ]
