"""Labels of turns, words and pairs of turns between the page and the store.

A page counts the turns that it shows from 0 and the characters of the text that it shows; stored labels name moves, and
characters of the move's text.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from training.errors import BadInput
from training.labels.codebooks import Codebook, LabelType
from training.records import Label
from webapp.judgments.annotating.turns import TurnLine
from webapp.judgments.models import Suggestion

MEMBERS = {"label", "turn", "start", "end", "other_turn", "value", "suggestion"}
MOST_LABELS = 2000
"""Labels of one judgment."""
SHAPES = ("circle", "square", "triangle", "diamond", "star", "cross", "hexagon", "bar")


@dataclass(frozen=True)
class Mark:
    """A label that a page sent. `suggestion` is the id of what it was accepted or corrected from."""

    label: Label
    suggestion: int | None = None


def offered(codebook: Codebook) -> list[LabelType]:
    """Return the label types that a page marks in a conversation."""
    return [label_type for label_type in codebook.labels if label_type.about in ("turn", "span", "pair")]


def types_for_page(codebook: Codebook, keys: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the label types as `static/js/annotatable.js` reads them; `keys` has the key of each by its name."""
    return [
        {
            "name": label_type.name,
            "title": label_type.title,
            "kind": label_type.kind,
            "about": label_type.about,
            "colour": number % 8 if label_type.colour is None else label_type.colour,
            "shape": label_type.shape or SHAPES[number % len(SHAPES)],
            "key": keys.get(label_type.name, ""),
            "overlap": label_type.overlap,
            "options": [[option.name, option.title] for option in label_type.options],
            "low": label_type.low,
            "high": label_type.high,
            "meanings": [[value, text] for value, text in label_type.meanings],
            "when": None if label_type.when is None else [label_type.when.label, label_type.when.equals],
        }
        for number, label_type in enumerate(offered(codebook))
    ]


def _by_turn(lines: Sequence[TurnLine]) -> dict[int | None, TurnLine]:
    return {line.turn: line for line in lines if line.turn is not None}


def for_page(labels: Iterable[Mark], lines: Sequence[TurnLine]) -> list[dict[str, Any]]:
    """Return the labels of turns as the page reads them, without those of turns that it does not show."""
    by_turn = _by_turn(lines)
    shown = (_shown(mark, by_turn) for mark in labels)
    return [data for data in shown if data is not None]


def suggestions_for_page(suggestions: Iterable[Suggestion], lines: Sequence[TurnLine]) -> list[dict[str, Any]]:
    """Return the suggestions about turns as the page reads them, the most probable first."""
    by_turn = _by_turn(lines)
    rows = []
    for suggestion in sorted(suggestions, key=lambda row: -(row.score or 0)):
        data = _shown(Mark(suggestion.record(), suggestion.pk), by_turn)
        if data is not None:
            rows.append({**data, "source": suggestion.source, "score": suggestion.score})
    return rows


def on_page(label: Label, lines: Sequence[TurnLine]) -> Label | None:
    """Return a label in the numbers of the page that shows these lines; None if it marks what the page does not show.

    A page shows fewer turns than the game has moves if some of them are hidden.
    """
    return label if label.turn is None else _on_page(label, _by_turn(lines))


def _on_page(label: Label, by_turn: Mapping[int | None, TurnLine]) -> Label | None:
    line = by_turn.get(label.turn)
    if line is None:
        return None
    place: dict[str, int | None] = {"turn": line.number}
    if label.start is not None and label.end is not None:
        within = [at for at, place in enumerate(line.places) if label.start <= place < label.end]
        if not within:
            return None
        place |= {"start": within[0], "end": within[-1] + 1}
    if label.other_turn is not None:
        if label.other_turn not in by_turn:
            return None
        place["other_turn"] = by_turn[label.other_turn].number
    return label.model_copy(update=place)


def _shown(mark: Mark, by_turn: Mapping[int | None, TurnLine]) -> dict[str, Any] | None:
    label = None if mark.label.turn is None else _on_page(mark.label, by_turn)
    if label is None:
        return None
    data: dict[str, Any] = {"label": label.label, "turn": label.turn}
    if label.start is not None:
        data |= {"start": label.start, "end": label.end}
    if label.other_turn is not None:
        data["other_turn"] = label.other_turn
    if label.value is not None and not (label.value is True and label.start is None and label.other_turn is None):
        data["value"] = label.value
    return data if mark.suggestion is None else {**data, "suggestion": mark.suggestion}


def from_page(text: str, codebook: Codebook, lines: Sequence[TurnLine]) -> list[Mark]:
    """Return the labels that a page sent; raise `BadInput` for a malformed list and for turns that do not exist."""
    try:
        sent = json.loads(text or "[]")
    except (ValueError, RecursionError) as error:
        raise BadInput("the labels could not be read: reload the page", "labels") from error
    if not isinstance(sent, list) or len(sent) > MOST_LABELS:
        raise BadInput(f"expected a list of at most {MOST_LABELS} labels", "labels")
    as_shown = [_read(data, codebook) for data in sent]
    codebook.check_places([mark.label for mark in as_shown])  # in the numbers that the page shows
    by_number: dict[int | None, TurnLine] = {line.number: line for line in lines if line.number is not None}
    return [_stored(mark, by_number) for mark in as_shown]


def _read(data: Any, codebook: Codebook) -> Mark:
    if not isinstance(data, dict) or not {"label", "turn"} <= data.keys() <= MEMBERS:
        raise BadInput("expected labels with a turn", "labels")
    suggestion = data.get("suggestion")
    if suggestion is not None and (not isinstance(suggestion, int) or isinstance(suggestion, bool)):
        raise BadInput("a suggestion is named by a number", "labels")
    label = Label.from_dict({name: value for name, value in data.items() if name != "suggestion"})
    label_type = codebook.type_of(label.label)
    if label_type not in offered(codebook):
        raise BadInput(f"it is about a {label_type.about}, and marks nothing in the conversation", label.label)
    if label_type.about == "turn" and label_type.yes_no and label.value is None:
        label = label.model_copy(update={"value": True})
    label_type.check_value(label.value)
    return Mark(label, suggestion)


def _stored(mark: Mark, by_number: Mapping[int | None, TurnLine]) -> Mark:
    label = mark.label
    line, other = by_number.get(label.turn), by_number.get(label.other_turn)
    if line is None or (label.other_turn is not None and other is None):
        number = label.turn if line is None else label.other_turn
        raise BadInput(f"the game has no turn {(number or 0) + 1} to label", label.label)
    where: dict[str, int | None] = {"turn": line.turn}
    if other is not None:
        where["other_turn"] = other.turn
    if label.start is not None and label.end is not None:
        if not label.start < label.end <= len(line.places):
            raise BadInput(f"turn {(label.turn or 0) + 1} has no such words to label", label.label)
        where |= {"start": line.places[label.start], "end": line.places[label.end - 1] + 1}
    return Mark(label.model_copy(update=where), mark.suggestion)
