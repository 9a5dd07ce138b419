"""Labelled behaviours against outcomes: how often seats that survived, won or otherwise differ in their outcome show
each behaviour of a codebook, that is each yes-or-no label type.

The table of Werewolf's surviving and eliminated players is that of OMAR, §4.2; other outcomes, checkpoints and the
control of false discoveries are Parley's additions. Pure functions over games and judgments. Several authors' answers
about one unit are averaged first, and of an author's answers the last counts; a unit without an answer is counted,
never imputed. The caller chooses the judgments: beside others an adjudicator's decision is one of several. Raises
`BadInput` for a game that does not report roles and survival, and for other label types than yes or no.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Literal, NamedTuple

from training.errors import BadInput
from training.evaluate.intervals import Interval, difference, difference_p
from training.labels.codebooks import Codebook, LabelType
from training.reading import Record
from training.records import Episode, Judgment, Seat

By = Literal["people", "models", "both"]
PERSON = "person:"
"""Prefix of the author of a person's judgment; any other author is a judge model."""


class Share(Record):
    """The share of the `scored` units that showed the behaviour, None without any; `asked` units could be scored.

    A unit is a seat, a turn of a seat or a game, depending on what the label type is about.
    """

    share: float | None
    scored: int
    asked: int


class Row(Record):
    """One behaviour of seats with one of `roles`; `difference` is surviving minus eliminated, if both have scores."""

    behaviour: str
    title: str
    roles: tuple[str, ...]
    surviving: Share
    eliminated: Share
    difference: Interval | None


class Table(Record):
    """The rows from judgments by people, by judge models, or by both; `games` have at least one scored seat."""

    by: By
    games: int
    rows: tuple[Row, ...]


class Report(Record):
    """One table for each kind of author; the table `both` exists if people and models judged."""

    codebook: str
    version: int
    games: int
    tables: tuple[Table, ...]


class OutcomeRow(Record):
    """One behaviour at one checkpoint, of seats with one role (empty: of all whom the label type asks about).

    `difference` is the share of those with the outcome minus that of those without it, with an interval over games. `p`
    is that of no difference; `q` is p adjusted over all rows with one: if rows are independent or positively dependent,
    those with q up to 0.05 have an expected share of false discoveries of at most 5 %. Rows of the same games may
    depend on each other in other ways. p and q are None unless both have scores.
    """

    step: int
    behaviour: str
    title: str
    role: str
    with_outcome: Share
    without_outcome: Share
    difference: Interval | None
    p: float | None
    q: float | None = None


@dataclass(frozen=True, slots=True)
class JudgedGame:
    """One finished game: every seat's role (empty where the game has none) and outcome, and the game's judgments.

    The outcome is what is compared: whether the seat survived, won or else; None: neither. `of_game` is that of the
    whole game, for label types about games. `turns` are the turns that could be marked, by index, with their seats.
    """

    roles: Sequence[str]
    outcomes: Sequence[bool | None]
    judgments: Sequence[Judgment]
    turns: Mapping[int, Seat] = field(default_factory=dict)
    of_game: bool | None = None


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Games played with the weights after training step `step`."""

    step: int
    games: Sequence[JudgedGame]


class Unit(NamedTuple):
    """A unit of analysis: a seat, a turn of this seat, or the game (None), with the answers to one label type.

    `answers` are 1 (yes) or 0 by author.
    """

    seat: Seat | None
    answers: Mapping[str, float]

    @property
    def value(self) -> float:
        """The mean over authors; only where there is an answer."""
        return fmean(self.answers.values())


Counted = Sequence[tuple[JudgedGame, Sequence[Unit]]]
"""Games with the units of a label type in each."""


def judged_game(episode: Episode, judgments: Sequence[Judgment]) -> JudgedGame:
    """Return an episode as a game of the report; raise `BadInput` if it lacks seats' roles or `survived`."""
    seats = range(len(episode.scenario.seats))
    survived = [
        bool(metrics["survived"])
        for metrics in map(episode.seat_metrics.get, seats)
        if metrics and "survived" in metrics
    ]
    if not len(episode.roles) == len(survived) == len(seats):
        raise BadInput(f"{episode.scenario.id!r} does not report every seat's role and survival", "episode")
    return JudgedGame(episode.roles, survived, judgments)


def units(game: JudgedGame, codebook: Codebook, label_type: LabelType, by: By = "both") -> list[Unit]:
    """Return the units of a label type of the codebook in a game, with the answers; raise `BadInput`.

    An author who labelled the whole game answers no about every turn that they did not mark. Of spans the question is
    whether the turn has one. Judgments under another codebook or version are left out.
    """
    counted = [
        judgment
        for judgment in game.judgments
        if (judgment.codebook, judgment.codebook_version) == (codebook.name, codebook.version)
        and (by == "both" or judgment.author.startswith(PERSON) == (by == "people"))
        and judgment.labels is not None
    ]
    return list(_units(game, label_type, counted))


def _units(game: JudgedGame, label_type: LabelType, judgments: Sequence[Judgment]) -> Iterator[Unit]:
    name = label_type.name
    if label_type.kind == "span" or (label_type.yes_no and label_type.about == "turn"):
        marked = {
            each.author: {label.turn for label in each.labels or () if label.label == name and label.value is not False}
            for each in judgments
            if each.seat is None
        }
        for turn, seat in game.turns.items():
            if label_type.asks(game.roles[seat]):
                yield Unit(seat, {author: float(turn in turns) for author, turns in marked.items()})
    elif label_type.yes_no and label_type.about in ("seat", "game"):
        answers: dict[Seat | None, dict[str, float]] = {}
        for each in judgments:
            for label in each.labels or ():
                if label.label == name and label.turn is None:
                    answers.setdefault(label.seat, {})[each.author] = float(bool(label.value))
        seats = [seat for seat, role in enumerate(game.roles) if label_type.asks(role)]
        for about in seats if label_type.about == "seat" else [None]:
            yield Unit(about, answers.get(about, {}))
    else:
        raise BadInput(f"{label_type.summary} is not a yes-or-no label type", label_type.name)


def report(games: Sequence[JudgedGame], codebook: Codebook) -> Report:
    """Return the tables of a codebook's yes-or-no questions about seats, in games with the outcome `survived`."""
    questions = [label_type for label_type in codebook.labels if label_type.yes_no and label_type.about == "seat"]
    kinds: tuple[By, ...] = ("people", "models")
    tables = [table for by in kinds if (table := _table(games, codebook, questions, by)).games]
    if len(tables) == len(kinds):
        tables.append(_table(games, codebook, questions, "both"))
    return Report(codebook=codebook.name, version=codebook.version, games=len(games), tables=tuple(tables))


def by_outcome(checkpoints: Iterable[Checkpoint], codebook: Codebook, by: By = "both") -> list[OutcomeRow]:
    """Return a row for every checkpoint, every yes-or-no behaviour of the codebook, and every role that has it.

    Where a behaviour is asked about several roles, its first row is of all of them together. False discoveries are
    controlled over all rows (Benjamini and Hochberg, 1995): to control it over a subset, request only that subset.
    """
    rows: list[OutcomeRow] = []
    for checkpoint in checkpoints:
        for label_type in filter(is_asked, codebook.labels):
            counted = [(game, units(game, codebook, label_type, by)) for game in checkpoint.games]
            rows += (_outcome_row(checkpoint.step, label_type, role, counted) for role in _roles(counted))
    return _adjusted(rows)


def _roles(counted: Counted) -> list[str]:
    """Return the roles of a label type's rows: all together, then each if there are several."""
    roles = sorted({game.roles[each.seat] for game, asked in counted for each in asked if each.seat is not None})
    return ["", *roles] if len(roles) > 1 else roles or [""]


def is_asked(label_type: LabelType) -> bool:
    """Return whether a label type asks for yes or no, so that `units` can collect its answers."""
    return label_type.kind == "span" or (label_type.yes_no and label_type.about in ("turn", "seat", "game"))


def _adjusted(rows: Sequence[OutcomeRow]) -> list[OutcomeRow]:
    from scipy.stats import false_discovery_control

    known = [row.p for row in rows if row.p is not None]
    adjusted = iter(false_discovery_control(known).tolist() if known else [])
    return [row if row.p is None else row.model_copy(update={"q": next(adjusted)}) for row in rows]


def _table(games: Sequence[JudgedGame], codebook: Codebook, questions: Iterable[LabelType], by: By) -> Table:
    rows, scored = [], set[int]()
    for label_type in questions:
        counted = [(game, units(game, codebook, label_type, by)) for game in games]
        scored |= {at for at, (_, asked) in enumerate(counted) if any(unit.answers for unit in asked)}
        rows.append(_row(label_type, counted))
    return Table(by=by, games=len(scored), rows=tuple(rows))


def _row(label_type: LabelType, counted: Counted) -> Row:
    surviving, eliminated, values = _compared(counted, "")
    both = surviving.scored and eliminated.scored
    return Row(
        behaviour=label_type.name,
        title=label_type.title,
        roles=label_type.roles,
        surviving=surviving,
        eliminated=eliminated,
        difference=difference(values) if both else None,
    )


def _outcome_row(step: int, label_type: LabelType, role: str, counted: Counted) -> OutcomeRow:
    with_outcome, without, values = _compared(counted, role)
    both = with_outcome.scored and without.scored
    return OutcomeRow(
        step=step,
        behaviour=label_type.name,
        title=label_type.title,
        role=role,
        with_outcome=with_outcome,
        without_outcome=without,
        difference=difference(values) if both else None,
        p=difference_p(values) if both else None,
    )


def _compared(counted: Counted, role: str) -> tuple[Share, Share, list[tuple[list[float], list[float]]]]:
    """Return the shares of units with and without the outcome, and the values of either kind in every game.

    Of seats with a role (empty: with any).
    """
    kinds: tuple[list[list[float]], list[list[float]]] = ([], [])
    asked = [0, 0]
    for game, every in counted:
        for at, outcome in enumerate((True, False)):
            here = [unit for unit in every if _outcome(game, unit) is outcome and _has(game, unit, role)]
            asked[at] += len(here)
            kinds[at].append([unit.value for unit in here if unit.answers])
    shares = [_share(values, count) for values, count in zip(kinds, asked, strict=True)]
    return shares[0], shares[1], list(zip(*kinds, strict=True))


def _outcome(game: JudgedGame, unit: Unit) -> bool | None:
    return game.of_game if unit.seat is None else game.outcomes[unit.seat]


def _has(game: JudgedGame, unit: Unit, role: str) -> bool:
    return not role or (unit.seat is not None and game.roles[unit.seat] == role)


def _share(games: Iterable[Sequence[float]], asked: int) -> Share:
    values = [value for game in games for value in game]
    return Share(share=fmean(values) if values else None, scored=len(values), asked=asked)
