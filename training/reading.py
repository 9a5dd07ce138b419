"""The base of all records: strict reading of JSON data, in the present form and in those of earlier releases.

Reading raises `BadInput` with the path of the field that is wrong.
"""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from training.errors import BadInput

NO_FIELD = "there is no such field"
"""The error of a field that a record does not have."""


def explain(error: ValidationError) -> tuple[str, str]:
    """Return (where, why) of the first problem of a pydantic error, in words for a user.

    An unknown field comes before a missing one, which it may be a misspelling of. Where a value may be one of several
    things, the reason is what is wrong inside it, or else all that it may be.
    """
    path, why = _first_problem(error)
    return _dotted(path), why


def _first_problem(error: ValidationError) -> tuple[tuple[str | int, ...], str]:
    errors = [(_place(line), line) for line in error.errors(include_url=False)]
    where = next((at for at, line in errors if line["type"] == "extra_forbidden"), errors[0][0])
    inside = [(at, line) for at, line in errors if at[: len(where)] == where]
    deepest = max((at for at, _ in inside), key=len)
    whys = dict.fromkeys(in_words(line) for at, line in inside if at == deepest)
    return deepest, "; or ".join(whys)


_TAG = re.compile(r"^(literal|tuple|list|dict|function|constrained)\b.*[\[-]")
"""What pydantic adds to a path to say which of several types it tried."""


def _place(line: Any) -> tuple[str | int, ...]:
    loc = line["loc"]
    end = len(loc) - (line["type"] == "extra_forbidden")  # the name of an unknown field is no tag, whatever it is
    return (*(part for part in loc[:end] if isinstance(part, int) or not _TAG.match(part)), *loc[end:])


def in_words(line: Any) -> str:
    """Return one problem of a pydantic error in words for a user."""
    match line["type"]:
        case "extra_forbidden":
            return NO_FIELD
        case "tuple_type" | "list_type":
            return "expected a list: [...], and of tables [[...]] in TOML"
        case "model_type" | "model_attributes_type" | "dict_type":
            return "expected a table, which is an object in JSON"
        case "too_short" | "too_long":
            limits = line["ctx"]
            least, most = limits.get("min_length"), limits.get("max_length")
            wanted = f"at most {most}" if least is None else f"at least {least}"
            return f"the number of items must be {wanted}, not {limits['actual_length']}"
        case _:
            why = str(line["msg"]).removeprefix("Value error, ")
            why = re.sub(r"^Input should be (less|greater) than or equal to", _bound, why)
            return re.sub(r"^[A-Z]\w+ should ", "must ", why)


def _bound(match: re.Match[str]) -> str:
    return f"must be at {'most' if match[1] == 'less' else 'least'}"


DEEPEST = 100
"""Levels of nesting in JSON data; what Parley writes has fewer than twenty."""
WIDEST = 2**63
"""Whole numbers lie in [-WIDEST, WIDEST): 64 bits, as the database and numpy hold them."""


def check_json(data: Mapping[str, Any]) -> None:
    """Raise `BadInput` with the path of a value that JSON, UTF-8 or 64 bits cannot hold, or that lies too deep.

    What it passes can be written, stored and read again, whatever free-form settings it holds.
    """
    stack: list[tuple[tuple[str | int, ...], Mapping[str, Any] | Sequence[Any]]] = [((), data)]
    while stack:
        path, container = stack.pop()
        if len(path) > DEEPEST:
            raise BadInput(f"nested more than {DEEPEST} levels deep", _dotted(path[:3]) + ".…")
        if isinstance(container, Mapping):
            items: Iterable[tuple[str | int, Any]] = container.items()
            for key in container:
                if why := _unwritable(key):
                    raise BadInput(f"a key: {why}", _dotted(path))
        else:
            items = enumerate(container)
        for place, value in items:
            if isinstance(value, dict | list | tuple | Mapping):
                stack.append(((*path, place), value))
            elif why := _unwritable(value):
                raise BadInput(why, _dotted((*path, place)))


def _dotted(path: Iterable[str | int]) -> str:
    return ".".join(_shown(str(part)) for part in path)


def _shown(name: str, longest: int = 80) -> str:
    """Return a name from a user's data as an error repeats it: cut where it is long, without control characters."""
    cut = name if len(name) <= longest else f"{name[:longest]}…"
    return cut if cut.isprintable() else repr(cut)[1:-1]


def _unwritable(value: object) -> str:
    """Return why a value that is no container cannot be written as JSON; empty where it can."""
    if isinstance(value, float):
        return "" if math.isfinite(value) else f"{value} is not a finite number"
    if isinstance(value, int):
        return "" if -WIDEST <= value < WIDEST else "a whole number must fit into 64 bits"
    if isinstance(value, str):
        half = not value.isascii() and any("\ud800" <= char <= "\udfff" for char in value)
        return "the text contains an unpaired surrogate, which is not a character" if half else ""
    return "" if value is None else f"{type(value).__name__} is no type of JSON"


class Record(BaseModel):
    """Base of everything that is written to disk."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Build from JSON data; raise `BadInput` naming the field that is wrong.

        Types are strict: `true` and `"5"` are no numbers and 5.0 is no whole number, but 5 is a number.
        """
        if not isinstance(data, Mapping):
            raise BadInput("expected an object")
        check_json(data)
        try:
            return cls.model_validate_json(json.dumps(_upgraded(cls, data), default=dict), strict=True)
        except ValidationError as error:
            path, why = _first_problem(error)
            raise BadInput(why + _suggestion(cls, path) if why == NO_FIELD else why, _dotted(path)) from error

    @classmethod
    def upgrade(cls, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return JSON data of this record in the present form; a record whose older files differ overrides this."""
        return data

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data; `from_dict` of it is equal to this."""
        return self.model_dump(mode="json")


def _upgraded(record: type[Record], data: Any) -> Any:
    """Return JSON data of a record, and of all records inside it, in the present form.

    This happens before validation: data that a validator has touched is no longer read as JSON, which has lists where
    Python has tuples.
    """
    if not isinstance(data, Mapping):
        return data
    present = dict(record.upgrade(data))
    for name, inner in _records_inside(record).items():
        value = present.get(name)
        if isinstance(value, list | tuple):
            present[name] = [_upgraded(inner, item) for item in value]
        elif value is not None:
            present[name] = _upgraded(inner, value)
    return present


@cache
def _records_inside(record: type[Record]) -> Mapping[str, type[Record]]:
    """Return the fields of a record that hold another record, or several of one kind, with that kind."""
    kinds = {name: _record_in(field.annotation) for name, field in record.model_fields.items()}
    return {name: kind for name, kind in kinds.items() if kind is not None}


def _record_in(annotation: Any) -> type[Record] | None:
    if isinstance(annotation, type) and issubclass(annotation, Record):
        return annotation
    inside = [kind for kind in map(_record_in, get_args(annotation)) if kind is not None]
    return inside[0] if len(inside) == 1 else None


def _suggestion(record: type[Record], path: Sequence[str | int]) -> str:
    """Return the end of an error of an unknown field at `path`: the field with the most similar name, if any is."""
    inner: type[Record] | None = record
    for part in path[:-1]:
        if isinstance(part, str) and inner is not None:
            inner = _records_inside(inner).get(part)
    names = inner.model_fields if inner is not None else ()
    similar = difflib.get_close_matches(str(path[-1])[:80], names, n=1)
    return f": did you mean {similar[0]}?" if similar else ""


def _whole(value: object) -> object:
    """Refuse `true` and 1.0, which Python takes for the version 1."""
    if isinstance(value, bool | float):
        raise ValueError("expected 1")
    return value


Version = Annotated[Literal[1], BeforeValidator(_whole)]
"""The version of a format; there is one so far."""


_SEAT_SUFFIX = re.compile(r"^(.+)_(\d+)$")


def split_seat_metrics(
    metrics: Mapping[str, float], seats: int
) -> tuple[dict[str, float], dict[int, dict[str, float]]]:
    """Return (the game's numbers, each seat's numbers) of metrics in the old form, where `won_3` is `won` of seat 3.

    A number that names no seat below `seats` belongs to the game.
    """
    whole: dict[str, float] = {}
    by_seat: dict[int, dict[str, float]] = {}
    for name, value in metrics.items():
        suffixed = _SEAT_SUFFIX.match(name)
        if suffixed and int(suffixed[2]) < seats:
            by_seat.setdefault(int(suffixed[2]), {})[suffixed[1]] = value
        else:
            whole[name] = value
    return whole, by_seat
