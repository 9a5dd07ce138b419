"""The judgments of a queue as rows that can be compared: from the database, from exported files, and from another site.

A row is one judgment without the name of its format. Times are to the second, as every format states them. CSV and Web
Annotations, which Parley does not import, are read here from their documentation alone.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

from bench.installation import installation

Row = dict[str, Any]
FIELDS = (
    "episode", "seat", "author", "decides", "codebook", "judged_at", "seconds", "suggestions_shown", "unsure", "scored",
    "comment", "labels",
)  # fmt: skip
"""What a row has; `labels` are lists of `LABEL`, sorted."""
LABEL = ("label", "value", "seat", "turn", "start", "end", "other_turn", "reason")
TURN = re.compile(r"#turn-(\d+)$")
SEAT = re.compile(r"#seat-(\d+)$")


def stored(queue: int) -> list[Row]:
    """Return the rows of a queue from the database; people are numbered by their first judgment of the queue."""
    judgments = import_module("webapp.judgments.models").Judgment.objects
    rows = list(judgments.filter(queue=queue).with_authors().select_related("conversation").order_by("pk"))
    numbers: dict[int, str] = {}
    for row in rows:
        numbers.setdefault(row.author_id, f"person:{len(numbers) + 1}")
    return ordered(_of_database(row, numbers[row.author_id]) for row in rows)


def imported(dataset: str) -> list[Row]:
    """Return the rows of a dataset's conversations from the database."""
    judgments = import_module("webapp.judgments.models").Judgment.objects.outside()
    rows = judgments.filter(conversation__scenario__version__dataset__name=dataset).with_authors()
    return ordered(_of_database(row, row.outside_author) for row in rows.select_related("conversation"))


def in_another_site(files: Mapping[str, Path], codebook: str) -> dict[str, list[Row]]:
    """Return the rows of a fresh installation into which files were imported, by format; for a process of its own."""
    with installation("copy"):
        return read_by_this_site(files, codebook)


def read_by_this_site(files: Mapping[str, Path], codebook: str, owner: str = "") -> dict[str, list[Row]]:
    """Import files by the command; return the rows of each, by format."""
    command = import_module("django.core.management").call_command
    for name, path in files.items():
        options = {"codebook": codebook} if name == "label-studio" else {}
        command("import_dataset", name, path, name=f"copy-{name}", owner=owner, stdout=io.StringIO(), **options)
    return {name: imported(f"copy-{name}") for name in files}


def _of_database(row: Any, author: str) -> Row:
    labels = [] if row.unscored else [label.to_dict() for label in row.records()]
    return _row(
        episode=row.conversation.episode_sha256, seat=row.seat, author=author, decides=row.decides,
        codebook=str(row.codebook_version), judged_at=_seconds(row.updated_at), seconds=row.seconds,
        suggestions_shown=row.suggestions_shown, unsure=row.unsure, scored=not row.unscored, comment=row.reason,
        labels=[[label.get(name, "" if name == "reason" else None) for name in LABEL] for label in labels],
    )  # fmt: skip


def from_csv(text: str) -> list[Row]:
    """Return the rows of an exported table."""
    rows: dict[tuple[str, str], Row] = {}
    for line in csv.DictReader(io.StringIO(text, newline="")):
        cells = {name: cell[1:] if _marked(cell) else cell for name, cell in line.items()}
        key = cells["episode_sha256"], cells["judgment"]
        row = rows.setdefault(
            key,
            _row(
                episode=cells["episode_sha256"], seat=_number(cells["seat"]), author=cells["author"],
                decides=cells["decides"] == "true", codebook=f"{cells['codebook']} v{cells['codebook_version']}",
                judged_at=_seconds(cells["judged_at"]), seconds=float(cells["seconds"]) if cells["seconds"] else None,
                suggestions_shown=cells["suggestions_shown"] == "true", unsure=cells["unsure"] == "true",
                scored=cells["scored"] == "true", comment=cells["comment"], labels=[],
            ),
        )  # fmt: skip
        if cells["label"]:
            places = [_number(cells[name]) for name in ("seat", "turn", "start", "end", "other_turn")]
            row["labels"].append([cells["label"], _value(cells["value"]), *places, cells["reason"]])
    return ordered(rows.values())


def _marked(cell: str) -> bool:
    """Whether a spreadsheet would take the cell for a formula, so that an apostrophe was put in front."""
    return cell.startswith("'") and cell[1:].lstrip()[:1] in set("=+-@＝＋－＠")


def _number(text: str) -> int | None:
    return int(text) if text else None


def _value(text: str) -> Any:
    """The value of a cell: true, false, a number, a JSON list or a text; none for marks."""
    if not text:
        return None
    try:
        return json.loads(text)
    except ValueError:
        return text


def from_annotations(document: Mapping[str, Any]) -> list[Row]:
    """Return the rows of a collection of Web Annotations, as JSON."""
    judgments: dict[tuple[str, int], list[Mapping[str, Any]]] = defaultdict(list)
    for annotation in document["first"]["items"]:
        source = _sources(annotation["target"])[0].partition("#")[0]
        judgments[source.rsplit(":", 1)[1], annotation["judgment"]].append(annotation)
    return ordered(_of_annotations(episode, parts) for (episode, _), parts in judgments.items())


def _of_annotations(episode: str, parts: list[Mapping[str, Any]]) -> Row:
    first = parts[0]
    labels = [_label(part) for part in parts if "labelType" in part]
    comments = [part["body"]["value"] for part in parts if "labelType" not in part and "body" in part]
    seats = [seat for part in parts for source in _sources(part["target"]) if (seat := _in(SEAT, source)) is not None]
    return _row(
        episode=episode, seat=seats[0] if seats else None, author=first["creator"]["nickname"],
        decides=first["decides"], codebook=f"{first['codebook']} v{first['codebookVersion']}",
        judged_at=_seconds(first.get("created", "")), seconds=first.get("seconds"),
        suggestions_shown=first["suggestionsShown"], unsure=first["unsure"], scored=first["scored"],
        comment=comments[0] if comments else "", labels=labels,
    )  # fmt: skip


def _label(part: Mapping[str, Any]) -> list[Any]:
    sources = _sources(part["target"])
    selectors = part["target"]["selector"] if isinstance(part["target"], Mapping) else []
    place: Mapping[str, Any] = next((each for each in selectors if each["type"] == "TextPositionSelector"), {})
    reason = next((body["value"] for body in part["body"] if body["purpose"] == "commenting"), "")
    return [
        part["labelType"], part["labelValue"], _in(SEAT, sources[0]), _in(TURN, sources[0]), place.get("start"),
        place.get("end"), _in(TURN, sources[1]) if len(sources) > 1 else None, reason,
    ]  # fmt: skip


def _sources(target: Any) -> list[str]:
    targets = target if isinstance(target, list) else [target]
    return [each["source"] if isinstance(each, Mapping) else each for each in targets]


def _in(pattern: re.Pattern[str], source: str) -> int | None:
    match = pattern.search(source)
    return None if match is None else int(match[1])


def _seconds(time: datetime | str | None) -> str:
    """A time in UTC to the second; empty for none."""
    if not time:
        return ""
    moment = datetime.fromisoformat(time) if isinstance(time, str) else time
    return moment.astimezone(UTC).isoformat(timespec="seconds")


def _row(**fields: Any) -> Row:
    return {name: fields[name] for name in FIELDS}


def ordered(rows: Iterable[Row]) -> list[Row]:
    """Return rows in an order of their own, with their labels in order."""
    return sorted(
        ({**row, "labels": sorted(row["labels"], key=repr)} for row in rows),
        key=lambda row: (row["episode"], -1 if row["seat"] is None else row["seat"], row["decides"], row["author"]),
    )


def differences(first: Iterable[Row], second: Iterable[Row]) -> Iterator[str]:
    """Yield a line for each judgment that only one of both has, and for each field in which both differ."""
    rows = [{(row["episode"], row["seat"], row["author"], row["decides"]): row for row in each}
            for each in (first, second)]  # fmt: skip
    for key in dict.fromkeys([*rows[0], *rows[1]]):
        if key not in rows[0] or key not in rows[1]:
            yield f"{key}: only in the {'first' if key in rows[0] else 'second'}"
            continue
        for name in FIELDS:
            if rows[0][key][name] != rows[1][key][name]:
                yield f"{key}: {name} is {rows[0][key][name]!r} and {rows[1][key][name]!r}"
