"""The labels of a target's annotators side by side, one row per place, and the decision that a page sends about them.

In each row an adjudicator takes what one annotator said, by the annotator's number, or decides otherwise (0): a value
of their own for a seat or the game, and no label for a turn, words or a pair of turns. Marks that no annotator made are
added in the conversation.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import QueryDict

from training.errors import BadInput
from training.labels.codebooks import Codebook, LabelType
from training.records import Label
from webapp.judgments import games
from webapp.judgments.annotating import marks
from webapp.judgments.annotating.forms import ValuesForm, form_value
from webapp.judgments.annotating.turns import TurnLine
from webapp.judgments.display import ShownValue
from webapp.judgments.models import Judgment, Target

OTHERWISE = "0"
PREFIX = "row-"
Key = tuple[str, tuple[int | None, ...]]
"""A label type and a place."""


@dataclass(frozen=True)
class Column:
    """One annotator's answer: `labels` by label type and place, None if it could not be scored for `reason`."""

    number: int
    labels: Mapping[Key, Label] | None
    reason: str


@dataclass(frozen=True)
class Cell:
    """What one annotator said in a row, in words; empty without a label. `could` is False if they could not score."""

    number: int
    words: str
    reason: str
    could: bool


@dataclass(frozen=True)
class Row:
    """One place: what each annotator said of it, whether they differ, and what is chosen (empty: nothing yet).

    `field` is the form's field of an own value; None for marks in the conversation.
    """

    name: str
    title: str
    place: str
    quote: str
    cells: Sequence[Cell]
    differs: bool
    chosen: str
    field: Any = None


@dataclass(frozen=True)
class Sheet:
    """The rows of a target and the marks that the adjudicator adds, as the page sends them."""

    rows: Sequence[Row]
    marks: str

    @property
    def differing(self) -> int:
        """The rows in which annotators differ."""
        return sum(row.differs for row in self.rows)


def columns_of(judgments: Iterable[Judgment], numbers: Mapping[int, int]) -> list[Column]:
    """Return the answers of a target's annotators in the order of their numbers. Uses prefetched labels."""
    columns = []
    for judgment in judgments:
        records = judgment.records()
        labels = None if records is None else {(label.label, label.place): label for label in records}
        columns.append(Column(numbers[judgment.author_id or 0], labels, judgment.reason))
    return sorted(columns, key=lambda column: column.number)


class SideBySide:
    """The sheet of one target, loaded `with_games`; `data` is what a page sent, `decision` what was decided before.

    Raises `BadInput` for a game that cannot be read.
    """

    def __init__(
        self,
        target: Target,
        columns: Sequence[Column],
        decision: Sequence[Label] | None = None,
        data: QueryDict | None = None,
    ) -> None:
        self.target, self.columns, self.data = target, columns, data
        self.codebook = target.codebook()
        self.game = games.judgeable(target)
        self.decided = None if decision is None else {(label.label, label.place): label for label in decision}
        self.forms = dict(self._forms())

    def _forms(self) -> Iterable[tuple[int | None, ValuesForm]]:
        target, decided = self.target, self.decided or {}
        places: list[tuple[int | None, Codebook]] = [(None, self.codebook)]
        if target.seat is not None:
            places.append((target.seat, self.codebook))
        else:
            places += [(seat, self.codebook.asking(role)) for seat, role in enumerate(games.roles(target.game))]
        for seat, codebook in places:
            initial = {
                label.label: form_value(codebook.type_of(label.label), label.value)
                for (_, place), label in decided.items()
                if place == _at(seat)
            }
            name, about = f"own-{'game' if seat is None else seat}", "game" if seat is None else "seat"
            form = ValuesForm(codebook, self.data, prefix=name, initial=initial or None, about=about, optional=True)
            if form.fields:
                yield seat, form

    def sheet(self) -> Sheet:
        """Return what the page shows."""
        rows = [self._row(key, self._field(key)) for key in [*self._value_keys(), *self._mark_keys()]]
        added = [label for key, label in (self.decided or {}).items() if key not in {*self._mark_keys()}]
        turn_marks = [marks.Mark(label) for label in added if label.turn is not None]
        sent = None if self.data is None else self.data.get("labels", "")
        return Sheet(rows, json.dumps(marks.for_page(turn_marks, self.lines)) if sent is None else sent or "[]")

    @property
    def lines(self) -> list[TurnLine]:
        """What the conversation shows: everything, for whoever decides."""
        return self.game.turn_lines(hidden=True)

    def labels(self) -> list[Label]:
        """Return the labels that the page decided on; raise `BadInput` for a row in which nothing is chosen."""
        assert self.data is not None, "a page sent it"
        wrong = next((form for form in self.forms.values() if not form.is_valid()), None)
        if wrong is not None:
            name, errors = next(iter(wrong.errors.items()))
            raise BadInput(str(errors[0]), self.codebook.type_of(name).title)
        labels = [label for key in self._value_keys() if (label := self._value(key)) is not None]
        labels += [label for key in self._mark_keys() if (label := self._taken(key)) is not None]
        if marks.offered(self.codebook):
            sent = marks.from_page(self.data.get("labels", ""), self.codebook, self.lines)
            turn_labels = [mark.label for mark in sent]
            known = {(label.label, label.place) for label in labels}
            labels += [label for label in turn_labels if (label.label, label.place) not in known]
        return labels

    def _value_keys(self) -> list[Key]:
        return [(name, _at(seat)) for seat, form in self.forms.items() for name in form.fields]

    def _mark_keys(self) -> list[Key]:
        """The marks of the annotators, in the order of the codebook and the conversation."""
        order = {label_type.name: at for at, label_type in enumerate(self.codebook.labels)}
        keys = {
            key: None
            for column in self.columns
            for key, label in (column.labels or {}).items()
            if label.turn is not None or self.codebook.type_of(label.label).kind == "ranking"
        }
        return sorted(keys, key=lambda key: (order[key[0]], [-1 if part is None else part for part in key[1]]))

    def _row(self, key: Key, field: Any) -> Row:
        label_type = self.codebook.type_of(key[0])
        cells = [self._cell(column, key, label_type) for column in self.columns]
        said = {(cell.could, cell.words) for cell in cells}
        differs = len(said) > 1
        return Row(
            name=_name(key),
            title=label_type.title,
            place=self._place(key),
            quote=self._quote(key),
            cells=cells,
            differs=differs,
            chosen=self._chosen(key, cells, differs=differs),
            field=field,
        )

    def _cell(self, column: Column, key: Key, label_type: LabelType) -> Cell:
        label = None if column.labels is None else column.labels.get(key)
        words = "" if label is None else ShownValue(label_type, label).words
        return Cell(column.number, words, "" if label is None else label.reason, column.labels is not None)

    def _chosen(self, key: Key, cells: Sequence[Cell], *, differs: bool) -> str:
        if self.data is not None:
            return self.data.get(_name(key), "")
        could = [column for column in self.columns if column.labels is not None]
        if self.decided is None:
            return "" if differs or not could or not any(cell.words for cell in cells) else str(could[0].number)
        value = self.decided[key].value if key in self.decided else None
        for column in could:
            label = (column.labels or {}).get(key)
            if (label is None) == (key not in self.decided) and (label is None or label.value == value):
                return str(column.number)
        return OTHERWISE

    def _field(self, key: Key) -> Any:
        form = self.forms.get(key[1][0])
        return form[key[0]] if form is not None and key in self._value_keys() else None

    def _value(self, key: Key) -> Label | None:
        """The label of a row about a seat or the game."""
        assert self.data is not None, "a page sent it"
        seat = key[1][0]
        entered = self.forms[seat].values().get(key[0])
        choice = self.data.get(_name(key), "")
        if choice == OTHERWISE or (not choice and entered is not None):
            return None if entered is None else Label(label=key[0], value=entered, seat=seat)
        if not choice and not any(key in (column.labels or {}) for column in self.columns):
            return None  # nobody gave a label
        return self._taken(key)

    def _taken(self, key: Key) -> Label | None:
        """The label that the chosen annotator gave."""
        assert self.data is not None, "a page sent it"
        choice = self.data.get(_name(key), "")
        if choice == OTHERWISE:
            return None
        column = next((each for each in self.columns if str(each.number) == choice and each.labels is not None), None)
        if column is None or column.labels is None:
            title, place = self.codebook.type_of(key[0]).title, self._place(key)
            raise BadInput("choose whose label counts", f"{title}, {place}" if place else title)
        return column.labels.get(key)

    def _place(self, key: Key) -> str:
        seat, turn, start, _, other = key[1]
        if turn is None:
            return "" if seat is None else self.game.scenario.seats[seat]
        if start is None and other is not None:
            return f"turn {turn + 1} to turn {other + 1}"
        return f"turn {turn + 1}"

    def _quote(self, key: Key) -> str:
        _, turn, start, end, _ = key[1]
        if turn is None or start is None or turn >= len(self.game.moves):
            return ""
        return self.game.moves[turn].move.text[start:end]


def _at(seat: int | None) -> tuple[int | None, ...]:
    """The place of a label about a seat or, without one, the game."""
    return (seat, None, None, None, None)


def _name(key: Key) -> str:
    return PREFIX + ":".join([key[0], *("" if part is None else str(part) for part in key[1])])
