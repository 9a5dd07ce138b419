"""Authors of judgments compared: each author's means and coverage, and how far they agree, label type by label type.

Authors are people, judge models, and whoever is named in an imported file. A seat that somebody could not score counts
in that author's coverage and in nothing else.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, islice
from typing import Literal

from training.labels.codebooks import Codebook, LabelType
from webapp.accounts.models import User
from webapp.judgments.games import GameId
from webapp.judgments.models import CodebookVersion, Judgment, JudgmentQuerySet, Queue
from webapp.judgments.naming import Names
from webapp.judgments.results.agreement import Agreement, alpha, kappa, overall
from webapp.judgments.results.estimates import Estimate, estimate
from webapp.judgments.results.withheld import NOTHING, Withheld, outside
from webapp.scenarios.models import DatasetVersion

MOST_PAIRS = 45
"""Pairs of authors that a page shows: those of ten authors."""

Place = int | None | tuple[Literal["turn"], int]
"""A seat, the whole game (None), or one of its turns."""
PlaceId = tuple[GameId, Place]
Answers = dict[PlaceId, Mapping[str, float] | None]
"""What one author answered about each place; None: could not score. A turn that has not been marked is a no."""
AuthorId = tuple[str, str]
"""An author's kind and name: a person and a judge model may share a name."""


@dataclass(frozen=True)
class Author:
    """One author: `scored` and `unscored` seats or games, and the mean of every numeric label type (None: no value).

    The mean over the turns of a game is the share of its turns that are marked.
    """

    name: str
    kind: str
    scored: int
    unscored: int
    estimates: list[Estimate]

    @property
    def answered(self) -> int:
        """The seats that this author was asked about and answered, by values or by "could not score"."""
        return self.scored + self.unscored


@dataclass(frozen=True)
class Pair:
    """Two authors: alpha of each label type over what both scored, kappa where it is of yes or no."""

    first: str
    second: str
    agreements: list[Agreement]


@dataclass(frozen=True)
class Comparison:
    """The authors under one codebook version, by name; `agreements` are over all of them together."""

    codebook: Codebook
    authors: list[Author]
    agreements: list[Agreement]
    pairs: list[Pair]

    @property
    def label_types(self) -> list[LabelType]:
        """The label types whose values can be averaged."""
        return _numeric(self.codebook)

    @property
    def overall(self) -> float | None:
        """The mean agreement over the label types that have one."""
        return overall(self.agreements)

    @property
    def shares_seats(self) -> bool:
        """Whether two authors scored the same seat."""
        return any(agreement.seats for agreement in self.agreements)


def of_queue(queue: Queue, withheld: Withheld = NOTHING) -> Comparison:
    """Compare the authors of a queue, and those outside this site who judged its conversations by the same codebook.

    Judgments that are withheld are left out.
    """
    judgments = (Judgment.objects.filter(queue=queue), outside(queue))
    rows = [each.filter(decides=False).exclude(pk__in=withheld.judgments) for each in judgments]
    return compare(queue.codebook_version.record(), *rows, names=Names(queue.pk))


def of_version(version: DatasetVersion, user: User) -> list[Comparison]:
    """Compare the authors who judged a dataset version's conversations, one comparison a codebook version.

    It holds what this person may read now.
    """
    judgments = Judgment.objects.readable_by(user).filter(conversation__scenario__version=version, decides=False)
    codebooks = CodebookVersion.objects.filter(pk__in=judgments.values("codebook_version")).select_related("codebook")
    return [
        compare(codebook.record(), judgments.filter(codebook_version=codebook), names=Names())
        for codebook in codebooks.order_by("codebook__name", "-number")
    ]


def compare(codebook: Codebook, *judgments: JudgmentQuerySet, names: Names) -> Comparison:
    """Compare the authors of these judgments; where an author answered for a seat twice, the later answer counts.

    A person who judged in several queues is one author, under the name of the first.
    """
    rows = [row for each in judgments for row in each.with_authors().select_related("target")]
    turns = {_game_of(row): row.target.turns for row in rows if row.target is not None and row.target.turns}
    answers: dict[AuthorId, Answers] = defaultdict(dict)
    people: dict[int | None, str] = {}
    for row in rows:
        name = names.shown(row)
        if row.author_id is not None and row.author_seat_id is None:
            name = people.setdefault(row.author_id, name)
        game, author = _game_of(row), answers[row.author_kind, name]
        for seat, numbers in row.numbers_by_seat().items():
            author[game, seat] = numbers
        if row.seat is None and not row.unscored:
            author |= {(game, ("turn", turn)): marks for turn, marks in _marks(row, codebook, turns.get(game, ()))}
    authors = sorted(answers)
    return Comparison(
        codebook,
        [_author(author, answers[author], codebook) for author in authors],
        [alpha(label_type.title, _shared(label_type, answers.values())) for label_type in _numeric(codebook)],
        list(islice(_pairs(codebook, authors, answers), MOST_PAIRS)),
    )


def _game_of(row: Judgment) -> GameId:
    return row.match_id, row.episode_id, row.conversation_id


def _marks(row: Judgment, codebook: Codebook, turns: Iterable[int]) -> Iterator[tuple[int, dict[str, float]]]:
    """Yield each turn with 1 or 0 for every label type that asks for yes or no of turns."""
    names = [each.name for each in codebook.labels if each.about == "turn" and each.yes_no]
    marked = {(label.name, label.turn) for label in row.labels.all() if label.value is True}
    for turn in turns if names else ():
        yield turn, {name: float((name, turn) in marked) for name in names}


def _numeric(codebook: Codebook) -> list[LabelType]:
    """The label types whose values can be averaged: numbers about seats and games, yes or no of turns."""
    return [each for each in codebook.labels if each.numeric and (each.about in ("seat", "game") or each.yes_no)]


def _pairs(codebook: Codebook, authors: Iterable[AuthorId], answers: Mapping[AuthorId, Answers]) -> Iterator[Pair]:
    """Yield the pairs of authors whose agreement is defined for at least one label type.

    It is defined from two shared seats on: an import with a thousand authors has few such pairs.
    """
    scorers: dict[PlaceId, list[AuthorId]] = defaultdict(list)
    for author in authors:
        for seat, values in answers[author].items():
            if values is not None:
                scorers[seat].append(author)
    shared = Counter(pair for scored in scorers.values() for pair in combinations(scored, 2))
    for first, second in sorted(pair for pair, seats in shared.items() if seats > 1):
        agreements = [_pair(label_type, answers[first], answers[second]) for label_type in _numeric(codebook)]
        if overall(agreements) is not None:
            yield Pair(first[1], second[1], agreements)


def _author(author: AuthorId, answers: Answers, codebook: Codebook) -> Author:
    estimates = []
    for label_type in _numeric(codebook):
        games: dict[GameId, list[float]] = defaultdict(list)
        for (game, _), values in answers.items():
            if values is not None and label_type.name in values:
                games[game].append(values[label_type.name])
        estimates.append(estimate(label_type, games.values()))
    judged = [values for (_, place), values in answers.items() if not isinstance(place, tuple)]
    scored = sum(values is not None for values in judged)
    kind, name = author
    return Author(name, kind, scored, len(judged) - scored, estimates)


def _pair(label_type: LabelType, first: Answers, second: Answers) -> Agreement:
    shared = [[values for values in game if len(values) == 2] for game in _shared(label_type, (first, second))]
    return (kappa if label_type.yes_no else alpha)(label_type.title, shared)


def _shared(label_type: LabelType, answers: Iterable[Answers]) -> list[list[list[float]]]:
    """Return the values of one label type by game and place, in the order of the authors."""
    games: dict[GameId, dict[Place, list[float]]] = defaultdict(lambda: defaultdict(list))
    for author in answers:
        for (game, seat), values in author.items():
            if values is not None and label_type.name in values:
                games[game][seat].append(values[label_type.name])
    return [list(seats.values()) for seats in games.values()]
