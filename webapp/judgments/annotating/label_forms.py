"""The forms in which an annotator labels one target: one per seat, one for the game, and the labels of turns."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from django.http import QueryDict

from training.labels.codebooks import Codebook
from training.records import Label
from webapp.judgments import games
from webapp.judgments.annotating import marks
from webapp.judgments.annotating.forms import ValuesForm, form_value
from webapp.judgments.annotating.services import labels_of
from webapp.judgments.annotating.turns import TurnLine
from webapp.judgments.models import Judgment, Suggestion, Target

VALUE = "value"
"""The prefix of a label type's name in the form, which avoids clashes with other fields."""


@dataclass(frozen=True)
class Section:
    """The questions about one seat (None: the game) under a heading, empty where it needs none."""

    heading: str
    seat: int | None
    form: ValuesForm


@dataclass(frozen=True)
class LabelForms:
    """The forms for labels of seats and the game, and the labels and suggestions of turns as JSON for the page."""

    sections: Sequence[Section]
    marks: str = "[]"
    suggestions: str = "[]"
    accepted: dict[Label, int] = field(default_factory=dict)
    """Accepted suggestions by label, filled by `labels`."""

    def is_valid(self) -> bool:
        """Validate every form, so that each keeps its own errors, and return whether all are valid."""
        valid = [section.form.is_valid() for section in self.sections]
        return all(valid)

    def labels(self, data: QueryDict) -> list[Label]:
        """Return the labels of valid forms; those of turns are not among them."""
        made: list[Label] = []
        for section in self.sections:
            form = section.form
            for label in labels_of(form.codebook, form.values(), section.seat):
                made.append(label)
                suggested = data.get(f"{form.add_prefix(label.label)}-suggestion", "")
                if suggested.isdecimal() and len(suggested) < 19:  # longer ones are no key
                    self.accepted[label] = int(suggested)
        return made


def blank(target: Target, lines: Sequence[TurnLine], suggestions: Sequence[Suggestion] = ()) -> LabelForms:
    """Return empty forms."""
    return _forms(target, lines, suggestions=suggestions)


def submitted(target: Target, lines: Sequence[TurnLine], data: QueryDict) -> LabelForms:
    """Return the forms bound to submitted data."""
    return _forms(target, lines, data=data, shown=data.get("labels") or "[]", suggestions=shown_suggestions(target))


def stored(target: Target, lines: Sequence[TurnLine], judgment: Judgment) -> LabelForms:
    """Return the forms with the labels of a stored judgment."""
    rows = [] if judgment.unscored else list(judgment.labels.all())
    stored = [marks.Mark(row.record(), row.suggestion_id) for row in rows]
    shown = json.dumps(marks.for_page(stored, lines))
    return _forms(
        target, lines, stored=[mark.label for mark in stored], shown=shown, suggestions=shown_suggestions(target)
    )


def shown_suggestions(target: Target) -> list[Suggestion]:
    """Return the suggestions for a target; none where the queue shows no suggestions."""
    return list(target.suggestions.all()) if target.queue.shows_suggestions else []


def _forms(
    target: Target,
    lines: Sequence[TurnLine],
    *,
    data: QueryDict | None = None,
    stored: Sequence[Label] = (),
    shown: str = "[]",
    suggestions: Sequence[Suggestion] = (),
) -> LabelForms:
    """Ids contain the target's key, because a page can show two targets."""
    sections = []
    for heading, seat, codebook, about in _form_sections(target):
        turns = {
            line.number: line.turn
            for line in lines
            if line.number is not None and line.turn is not None and seat in (None, line.seat)
        }
        initial = {
            label.label: form_value(codebook.type_of(label.label), label.value)
            for label in stored
            if label.turn is None and label.seat == seat
        }
        prefix = VALUE if seat is None or target.seat is not None else f"{VALUE}-{seat}"
        form = ValuesForm(
            codebook, data, prefix=prefix, auto_id=f"id-{target.pk}-%s", initial=initial or None, about=about,
            turns=turns,
        )  # fmt: skip
        _suggest(form, [row for row in suggestions if row.turn is None and row.seat == seat])
        if form.fields:
            sections.append(Section(heading, seat, form))
    suggested = json.dumps(marks.suggestions_for_page(suggestions, lines))
    return LabelForms(sections, shown, suggested)


def _form_sections(target: Target) -> list[tuple[str, int | None, Codebook, str]]:
    """Return for each form its heading, seat, part of the codebook, and what its label types are about."""
    codebook = target.codebook()
    sections: list[tuple[str, int | None, Codebook, str]] = [("The game", None, codebook, "game")]
    if target.seat is not None:
        return [*sections, ("", target.seat, codebook, "seat")]
    roles = games.roles(target.game)
    names = [games.seat_name(target.game, seat) for seat in range(len(roles))]
    return sections + [(names[seat], seat, codebook.asking(role), "seat") for seat, role in enumerate(roles)]


def _suggest(form: ValuesForm, suggestions: Sequence[Suggestion]) -> None:
    """Attach to each field its most probable suggestion."""
    for row in sorted(suggestions, key=lambda row: row.score or 0):
        if row.name in form.fields:
            label_type = form.codebook.type_of(row.name)
            value = form_value(label_type, row.record().value)
            bound: Any = form.fields[row.name]
            entered = bound.prepare_value(value)
            bound.suggested = {
                "pk": row.pk,
                "source": row.source,
                "score": row.score,
                "words": row.record().words if label_type.kind != "ranking" else entered,
                "value": json.dumps(entered if isinstance(entered, list) else str(entered)),
            }
