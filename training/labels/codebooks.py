"""Codebooks as data: versioned label types, each with its definition, its values and what it is about.

The codebooks that come with Parley are the files in `shipped`. A text that changes gets a new version number. Reading a
wrong codebook, or a label that does not fit its codebook, raises `BadInput` naming the place.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from training.errors import BadInput
from training.reading import Record
from training.records import Judgment, Label, LabelValue

Kind = Literal["yes_no", "one_of", "many_of", "scale", "ranking", "text", "span", "relation"]
"""What values a label type has. A new kind is one more here: mypy names the functions that have to know it, and
`tests/contract/test_label_kinds.py` the forms, formats and examples that lack it."""
About = Literal["game", "seat", "turn", "span", "pair"]
PLACES: dict[About, frozenset[str]] = {
    "game": frozenset(),
    "seat": frozenset({"seat"}),
    "turn": frozenset({"turn"}),
    "span": frozenset({"turn", "start", "end"}),
    "pair": frozenset({"turn", "other_turn"}),
}
"""The fields of a label that say where it is, by what it is about."""
SUBJECTS: dict[About, str] = {
    "game": "the whole game", "seat": "a seat", "turn": "a turn", "span": "words of a turn", "pair": "two turns",
}  # fmt: skip
"""What labels can be about, in words."""
COLOURS = 8
"""Colours of label types; the site's style sheet has one for each number."""
Shape = Literal["", "circle", "square", "triangle", "diamond", "star", "cross", "hexagon", "bar"]
"""Signs of label types, each with an underline of its own, by which marks differ without colour."""

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
Words = Annotated[str, Field(min_length=1, max_length=500)]


class Anchor(Record):
    """The meaning of one value of a scale."""

    value: float
    text: Words


class Option(Record):
    """One value of a choice, with the words that people read."""

    name: Name
    title: str = Field(min_length=1, max_length=80)


class Condition(Record):
    """Another label type of the codebook, and its value under which a label type applies.

    `equals` None: any label of that type, as for the spans and relations that a label type may be about.
    """

    label: Name
    equals: bool | str | None = None

    def __str__(self) -> str:
        if self.equals is None:
            return f"{self.label} was marked"
        value = self.equals if isinstance(self.equals, str) else "yes" if self.equals else "no"
        return f"{self.label} is {value}"


class LabelType(Record):
    """One question of a codebook: what its values are (`kind`) and what it is asked about (`about`).

    A scale goes from `low` to `high`, ends included; a choice has `options`; a span marks words of a turn, and a
    relation leads from a turn to another, without further value. `positive` and `negative` are examples, or in words
    what counts and what does not. It applies to seats with one of `roles` (empty: to all), and where the condition
    `when` holds. `colour` and `shape` mark it on pages, `key` chooses it; None or empty: by its position. `overlap`:
    spans of this type may overlap each other. `required`: a judgment without it is incomplete.
    """

    name: Name
    title: str = Field(min_length=1, max_length=80)
    kind: Kind
    about: About
    definition: str = Field(min_length=1, max_length=1000)
    positive: tuple[Words, ...] = Field(default=(), max_length=20)
    negative: tuple[Words, ...] = Field(default=(), max_length=20)
    low: float | None = None
    high: float | None = None
    anchors: tuple[Anchor, ...] = Field(default=(), max_length=40)
    options: tuple[Option, ...] = Field(default=(), max_length=40)
    roles: tuple[Annotated[str, Field(min_length=1, max_length=40)], ...] = Field(default=(), max_length=40)
    when: Condition | None = None
    colour: int | None = Field(default=None, ge=0, lt=COLOURS)
    shape: Shape = ""
    key: str = Field(default="", pattern=r"^[a-z0-9]?$")
    overlap: bool = False
    required: bool = True

    @model_validator(mode="after")
    def _kind_has_what_it_needs(self) -> Self:
        scale = self.kind == "scale"
        if (self.low is not None) != scale or (self.high is not None) != scale:
            raise ValueError("a scale has a low and a high end" if scale else f"{self.kind} has no ends of a scale")
        if self.anchors and not scale:
            raise ValueError(f"{self.kind} has no anchors; describe it by examples")
        if self.low is not None and self.high is not None:
            if self.low >= self.high:
                raise ValueError("the scale's low end must be below its high end")
            if any(not self.low <= anchor.value <= self.high for anchor in self.anchors):
                raise ValueError("an anchor lies outside the scale")
        chosen = self.kind in ("one_of", "many_of")
        if chosen != bool(self.options) or (chosen and len(self.options) < 2):
            raise ValueError(f"{self.kind} needs at least two options" if chosen else f"{self.kind} has no options")
        if (twice := _repeated(option.name for option in self.options)) is not None:
            raise ValueError(f"two options are named {twice!r}")
        return self

    @model_validator(mode="after")
    def _kind_fits_what_it_is_about(self) -> Self:
        if self.kind == "span" and self.about != "span":
            raise ValueError("a span is about a span")
        if self.kind == "relation" and self.about != "pair":
            raise ValueError("a relation is about a pair of turns")
        if self.kind == "ranking" and self.about not in ("game", "seat"):
            raise ValueError("a ranking orders the turns of a game or of a seat")
        if self.kind not in ("span", "relation") and self.about in ("span", "pair") and self.when is None:
            raise ValueError("a value about a span or a pair names its label type in `when`")
        if self.overlap and self.kind != "span":
            raise ValueError("only spans overlap")
        return self

    @property
    def yes_no(self) -> bool:
        """Whether the answer is yes or no."""
        return self.kind == "yes_no"

    @property
    def bounds(self) -> tuple[float, float]:
        """The lowest and highest value as numbers; yes is 1 and no is 0. Only for `numeric` label types."""
        assert self.numeric, "other kinds have no numbers"
        return (0.0, 1.0) if self.low is None or self.high is None else (self.low, self.high)

    @property
    def numeric(self) -> bool:
        """Whether values can be averaged: a scale, or yes and no."""
        return self.kind in ("scale", "yes_no")

    @property
    def scale(self) -> str:
        """The valid values, in words."""
        match self.kind:
            case "yes_no":
                return "0 or 1"
            case "scale":
                return f"{self.low:g} to {self.high:g}"
            case "one_of":
                return f"one of {', '.join(option.name for option in self.options)}"
            case "many_of":
                return f"any of {', '.join(option.name for option in self.options)}"
            case "ranking":
                return "numbers of turns, the first in rank first"
            case "text":
                return "a text"
            case "span" | "relation":
                return "no value: the place is the label"

    @property
    def summary(self) -> str:
        """What it is about and what its values are, in words."""
        subject = SUBJECTS[self.about]
        if self.kind in ("span", "relation"):
            return subject
        return f"{subject}: {'yes or no' if self.yes_no else self.scale}"

    @property
    def meanings(self) -> tuple[tuple[float, str], ...]:
        """Numbers with what they mean: a scale's anchors, or no (0) and yes (1) by their examples."""
        if not self.yes_no:
            return tuple((anchor.value, anchor.text) for anchor in self.anchors)
        pairs = ((0.0, "no", self.negative), (1.0, "yes", self.positive))
        return tuple((value, f"{word}: {'; '.join(texts)}") for value, word, texts in pairs if texts)

    def number(self, value: float) -> bool | float:
        """Return the value of a `numeric` label type for a number: 1 is yes and 0 is no; raise `BadInput`."""
        if self.yes_no and value in (0, 1):
            return bool(value)
        self.check_value(value)
        return float(value)

    def check_value(self, value: LabelValue) -> None:
        """Raise `BadInput` unless `value` is valid."""
        if not self._takes(value):
            wanted = "yes or no" if self.yes_no else self.scale
            raise BadInput(f"choose a value: {wanted}", self.name)

    def _takes(self, value: LabelValue) -> bool:
        names = {option.name for option in self.options}
        match self.kind:
            case "yes_no":
                return isinstance(value, bool)
            case "scale":
                number = isinstance(value, int | float) and not isinstance(value, bool)
                return number and self.bounds[0] <= float(value) <= self.bounds[1]  # type: ignore[arg-type]
            case "one_of":
                return isinstance(value, str) and value in names
            case "many_of":
                return _is_list(value, str) and set(value) <= names  # type: ignore[arg-type]
            case "ranking":
                return _is_list(value, int)
            case "text":
                return isinstance(value, str) and len(value.strip()) > 0 and len(value) <= 10_000
            case "span" | "relation":
                return value is None

    def asks(self, role: str) -> bool:
        """Return whether it applies to a seat with `role` (empty: a game without roles)."""
        return not self.roles or role in self.roles


def _is_list(value: LabelValue, of: type[str | int]) -> bool:
    """Whether a value is a list of distinct strings or numbers."""
    listed = isinstance(value, tuple) and all(isinstance(item, of) and not isinstance(item, bool) for item in value)
    return listed and len(set(value)) == len(value)  # type: ignore[arg-type]


def _repeated(names: Iterable[str]) -> str | None:
    """The first name that occurs twice."""
    return next((name for name, count in Counter(names).items() if count > 1), None)


class Codebook(Record):
    """A named, versioned list of label types. `guideline` is a text in Markdown for annotators."""

    name: str = Field(pattern=r"^[a-z][a-z0-9-]{0,79}$")
    version: int = Field(ge=1)
    title: str = Field(min_length=1, max_length=200)
    guideline: str = Field(default="", max_length=20_000)
    labels: tuple[LabelType, ...] = Field(min_length=1, max_length=40)

    @model_validator(mode="after")
    def _names_and_keys_differ(self) -> Self:
        if _repeated(label_type.name for label_type in self.labels) is not None:
            raise ValueError("two label types share a name")
        if (key := _repeated(label_type.key for label_type in self.labels if label_type.key)) is not None:
            raise ValueError(f"two label types have the key {key}")
        return self

    @model_validator(mode="after")
    def _conditions_lead_to_earlier_types(self) -> Self:
        earlier: dict[str, LabelType] = {}
        for label_type in self.labels:
            if label_type.when is not None:
                _check_condition(label_type, label_type.when, earlier.get(label_type.when.label))
            earlier[label_type.name] = label_type
        return self

    def type_of(self, name: str) -> LabelType:
        """Return a label type; raise `BadInput` for a name that this version does not have."""
        label_type = next((label_type for label_type in self.labels if label_type.name == name), None)
        if label_type is None:
            raise BadInput(f"{self.name} v{self.version} has no label of this name", name)
        return label_type

    @property
    def about_seats(self) -> bool:
        """Whether all label types are about seats; else a judgment is of a whole game."""
        return all(label_type.about == "seat" for label_type in self.labels)

    @property
    def scores_seats(self) -> bool:
        """Whether all label types are numbers about seats, so that a judge model can score a seat."""
        return self.about_seats and all(label_type.numeric for label_type in self.labels)

    def mean_range(self) -> tuple[float, float]:
        """Return the lowest and highest mean over the label types, all of which must be numeric."""
        ends = [label_type.bounds for label_type in self.labels]
        return sum(low for low, _ in ends) / len(ends), sum(high for _, high in ends) / len(ends)

    def asks(self, role: str) -> bool:
        """Return whether any label type applies to a seat with `role` (empty: a game without roles)."""
        return any(label_type.asks(role) for label_type in self.labels)

    def of(self, role: str) -> Codebook:
        """Return this version with the label types for a seat with `role`; raise `BadInput` if there are none."""
        if not self.asks(role):
            raise BadInput(f"{self.name} v{self.version} asks nothing about {role or 'a seat without a role'}", "role")
        return self.asking(role)

    def asking(self, role: str) -> Codebook:
        """Return this version with the label types for a seat with `role`, maybe none."""
        labels = tuple(label_type for label_type in self.labels if label_type.asks(role))
        kept = {label_type.name for label_type in labels}
        return self.model_copy(
            update={"labels": tuple(each for each in labels if each.when is None or each.when.label in kept)}
        )

    def check(self, labels: Sequence[Label], *, whole: bool = True) -> None:
        """Raise `BadInput` naming the first label that does not fit: its type, value, place, overlap or condition.

        `whole`: every required label type about seats or the game needs a label where its condition holds. Labels that
        are about the same seat or game share a seat; so the check is for one target.
        """
        for label in labels:
            label_type = self.type_of(label.label)
            label_type.check_value(label.value)
            filled = {
                name for name in ("seat", "turn", "start", "end", "other_turn") if getattr(label, name) is not None
            }
            if filled != PLACES[label_type.about]:
                wanted = ", ".join(sorted(PLACES[label_type.about])) or "no place: it is about the game"
                raise BadInput(f"a label about a {label_type.about} has {wanted}", label.label)
            _check_place(label)
        self.check_places(labels)
        for label_type in self.labels:
            marks = [label for label in labels if label.label == label_type.name]
            if label_type.when is not None and marks and not _holds(label_type.when, labels):
                raise BadInput(f"it applies only where {label_type.when.label} was labelled so", label_type.name)
            asked = label_type.required and label_type.about in ("game", "seat")
            asked = asked and (label_type.when is None or _holds(label_type.when, labels))
            if whole and asked and not marks:
                wanted = "yes or no" if label_type.yes_no else label_type.scale
                raise BadInput(f"choose a value: {wanted}", label_type.name)

    def check_game(self, labels: Sequence[Label], roles: Sequence[str], movers: Mapping[int, int]) -> None:
        """Raise `BadInput` unless labels of a whole game fit: each seat, and each of its turns, is asked by its role.

        `movers` are the seats of the turns.
        """
        for seat, role in enumerate(roles):
            asked = self.asking(role)
            names = {label_type.name for label_type in asked.labels}
            asked.check(
                [
                    label
                    for label in labels
                    if label.seat in (None, seat)
                    and (label.turn is None or label.label in names or movers.get(label.turn) == seat)
                ]
            )

    def check_places(self, labels: Sequence[Label]) -> None:
        """Raise `BadInput` for two labels of one type at the same place, or spans that may not overlap.

        Messages count turns and characters from 1, as pages do.
        """
        places = Counter((label.label, label.place) for label in labels)
        for (name, _), count in places.items():
            if count > 1:
                raise BadInput("there are two of these labels at the same place", name)
        spans = sorted(
            (label.label, label.turn or 0, label.start or 0, label.end or 0)
            for label in labels
            if self.type_of(label.label).kind == "span" and not self.type_of(label.label).overlap
        )
        for (name, turn, _, end), (next_name, next_turn, start, _) in pairwise(spans):
            if (name, turn) == (next_name, next_turn) and start < end:
                where = f"turn {turn + 1} at character {start + 1}"
                raise BadInput(f"two spans overlap in {where}, which this label forbids", name)

    def upgraded(self, judgment: Judgment) -> Judgment:
        """Return a judgment of an earlier release, whose values were all numbers, with the values of this version."""
        if judgment.labels is None:
            return judgment
        labels = tuple(
            label.model_copy(update={"value": bool(label.value)})
            if self.type_of(label.label).yes_no and not isinstance(label.value, bool) and label.value in (0, 1)
            else label
            for label in judgment.labels
        )
        return judgment.model_copy(update={"labels": labels})


def check_turns(labels: Iterable[Label], texts: Sequence[str], seats: int) -> None:
    """Raise `BadInput` for a label of a turn, of words or of a seat that a game does not have.

    `texts` are those of its moves.
    """
    for label in labels:
        for turn in (label.turn, label.other_turn):
            if turn is not None and turn >= len(texts):
                raise BadInput(f"there is no turn {turn + 1}: the game has {len(texts)} moves", label.label)
        if label.turn is not None and label.end is not None and label.end > len(texts[label.turn]):
            length = len(texts[label.turn])
            raise BadInput(f"the text of turn {label.turn + 1} has {length} characters, not {label.end}", label.label)
        if label.seat is not None and label.seat >= seats:
            raise BadInput(f"there is no seat {label.seat}", label.label)


def _check_condition(label_type: LabelType, condition: Condition, other: LabelType | None) -> None:
    if other is None:
        raise ValueError(f"the condition of {label_type.name} names no label type before it: {condition.label}")
    if (
        label_type.kind not in ("span", "relation")
        and label_type.about in ("span", "pair")
        and (other.about != label_type.about)
    ):
        raise ValueError(f"{label_type.name} is about a {label_type.about}, and {other.name} marks none")
    valid = condition.equals is None or (
        isinstance(condition.equals, bool) if other.yes_no else condition.equals in {o.name for o in other.options}
    )
    if not valid:
        raise ValueError(f"{condition.equals!r} is no value of {other.name}")


def _check_place(label: Label) -> None:
    if label.start is not None and label.end is not None and not label.start < label.end:
        raise BadInput("a span ends after its start", label.label)
    if label.other_turn is not None and label.other_turn == label.turn:
        raise BadInput("a relation leads to another turn", label.label)


def _holds(condition: Condition, labels: Iterable[Label]) -> bool:
    """Whether a label of the condition's type has its value."""
    values = [label.value for label in labels if label.label == condition.label]
    if condition.equals is None:
        return bool(values)
    return any(condition.equals in value if isinstance(value, tuple) else value == condition.equals for value in values)


def load(path: Path) -> Codebook:
    """Return the codebook of a TOML file; raise `BadInput` naming the file and the field."""
    try:
        return Codebook.from_dict(tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise BadInput(f"could not be read: {error}", path.name) from error
    except BadInput as error:
        raise BadInput(error.why, f"{path.name}, {error.where}") from error


SHIPPED = Path(__file__).with_name("shipped")
CODEBOOKS: dict[str, Codebook] = {codebook.name: codebook for codebook in map(load, sorted(SHIPPED.glob("*.toml")))}
"""Parley's codebooks by name."""
SOTOPIA = CODEBOOKS["sotopia"]
"""The seven dimensions whose mean is the reward of social dialogue (SOTOPIA; OMAR, section 4.1)."""
CONDUCT = CODEBOOKS["fine-grained"]
"""The five fine-grained dimensions (OMAR, section 4.1.3), for evaluation and people, never a reward."""
BEHAVIOURS = CODEBOOKS["werewolf-behaviours"]
"""Whether a player of Werewolf did what the behaviour table of OMAR (section 4.2) counts."""
