"""The behaviour table (OMAR, §4.2): how often surviving and eliminated players showed the behaviours of their role that
a codebook of yes-or-no questions asks about.

Pure functions over games and judgments. Several judgments of one seat are averaged first; an unscored seat is counted,
never imputed. Raises `BadInput` for a game that does not report roles and survival.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from training.errors import BadInput
from training.evaluate.intervals import Interval, difference
from training.labels.codebooks import Codebook, LabelType
from training.reading import Record
from training.records import Episode, Judgment, Seat

By = Literal["people", "models", "both"]
PERSON = "person:"
"""Prefix of the author of a person's judgment; any other author is a judge model."""


class Share(Record):
    """The share of the `scored` seats that showed the behaviour, None without any; `asked` seats could be scored."""

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


@dataclass(frozen=True, slots=True)
class JudgedGame:
    """One finished game: every seat's role, whether it survived, and its judgments."""

    roles: Sequence[str]
    survived: Sequence[bool]
    judgments: Sequence[Judgment]


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


def report(games: Sequence[JudgedGame], codebook: Codebook) -> Report:
    """Return the tables of a codebook's yes-or-no questions; judgments under another codebook are ignored."""
    questions = [label_type for label_type in codebook.labels if label_type.yes_no]
    kinds: tuple[By, ...] = ("people", "models")
    tables = [table for by in kinds if (table := _table(games, codebook, questions, by)).games]
    if len(tables) == len(kinds):
        tables.append(_table(games, codebook, questions, "both"))
    return Report(codebook=codebook.name, version=codebook.version, games=len(games), tables=tuple(tables))


def _table(games: Sequence[JudgedGame], codebook: Codebook, questions: Iterable[LabelType], by: By) -> Table:
    counted = [(game, _values(game, codebook, _of(by))) for game in games]
    return Table(
        by=by,
        games=sum(bool(values) for _, values in counted),
        rows=tuple(_row(counted, label_type) for label_type in questions),
    )


def _of(by: By) -> Callable[[Judgment], bool]:
    """Return the predicate of the judgments that count."""
    return lambda judgment: by == "both" or judgment.author.startswith(PERSON) == (by == "people")


Values = dict[tuple[Seat, str], float]


def _values(game: JudgedGame, codebook: Codebook, counts: Callable[[Judgment], bool]) -> Values:
    """Return by seat and label type the mean over the judgments that count."""
    scores: dict[tuple[Seat, str], list[float]] = {}
    for judgment in game.judgments:
        under = (judgment.codebook, judgment.codebook_version) == (codebook.name, codebook.version)
        if judgment.seat is not None and under and counts(judgment):
            for name, value in (judgment.numbers or {}).items():
                scores.setdefault((judgment.seat, name), []).append(value)
    return {key: fmean(values) for key, values in scores.items()}


def _row(counted: Sequence[tuple[JudgedGame, Values]], label_type: LabelType) -> Row:
    values_of: tuple[list[list[float]], list[list[float]]] = ([], [])  # surviving, eliminated; a list per game
    asked = [0, 0]
    for game, values in counted:
        for place, survived in enumerate((True, False)):
            seats = [
                seat
                for seat, role in enumerate(game.roles)
                if label_type.asks(role) and game.survived[seat] == survived
            ]
            asked[place] += len(seats)
            values_of[place].append(
                [values[seat, label_type.name] for seat in seats if (seat, label_type.name) in values]
            )
    surviving, eliminated = (_share(each, count) for each, count in zip(values_of, asked, strict=True))
    both = surviving.scored and eliminated.scored
    return Row(
        behaviour=label_type.name,
        title=label_type.title,
        roles=label_type.roles,
        surviving=surviving,
        eliminated=eliminated,
        difference=difference(list(zip(*values_of, strict=True))) if both else None,
    )


def _share(games: Iterable[Sequence[float]], asked: int) -> Share:
    values = [value for game in games for value in game]
    return Share(share=fmean(values) if values else None, scored=len(values), asked=asked)
