"""A world of invented facts, of which a small model knows some by heart and can look up the others.

People have a town, a trade or an instrument. Of the known people a model is pretrained on the facts; of the others it
reads passages that say something else each time, so that it learns to read and remembers nothing. Towns and instruments
stand in the corpus `atlas`, trades in `press`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from random import Random
from typing import NamedTuple

from training.games.qa_society import QaSocietySettings
from training.records import Scenario
from training.retrieval.corpus import Document
from training.seeding import rng

CORPORA = ("atlas", "press")
SEATS = ("Ada", "Ben", "Cleo")


class Relation(NamedTuple):
    """What is asked of people, in which corpus it stands, and what the answers are."""

    name: str
    corpus: str
    answers: tuple[str, ...]


RELATIONS = (
    Relation(
        "town",
        "atlas",
        ("Oslin", "Marden", "Vetka", "Torlo", "Quist", "Belga", "Runa", "Hask", "Pryn", "Zelm", "Ardo", "Corva"),
    ),
    Relation(
        "trade",
        "press",
        (
            "cooper",
            "baker",
            "tanner",
            "mason",
            "weaver",
            "miller",
            "glazier",
            "potter",
            "fuller",
            "dyer",
            "smith",
            "carter",
        ),
    ),
    Relation(
        "instrument",
        "atlas",
        ("lute", "harp", "viol", "fife", "drum", "flute", "organ", "oboe", "lyre", "bugle", "zither", "cello"),
    ),
)
"""The last relation is asked in tests alone: it is out of the distribution of the training."""


class Fact(NamedTuple):
    """A person's answer to one relation, and whether a model is to know it by heart."""

    person: str
    relation: Relation
    answer: str
    known: bool

    @property
    def question(self) -> str:
        """The question about this fact."""
        return f"What is the {self.relation.name} of {self.person}?"

    def passage(self, answer: str = "") -> str:
        """Return the passage with the answer, or with another one in its place."""
        return f"The {self.relation.name} of {self.person} is {answer or self.answer}."


@dataclass(frozen=True)
class World:
    """`people` of each relation, the share `known` of them known by heart."""

    people: int = 60
    known: float = 0.65
    seed: int = 0

    @cached_property
    def facts(self) -> tuple[Fact, ...]:
        """All facts, in random order within each relation; half of each kind are for tests (`split`)."""
        names = _names(self.people * len(RELATIONS), rng(self.seed, "names"))
        chance = rng(self.seed, "facts")
        return tuple(
            Fact(names.pop(), relation, chance.choice(relation.answers), number < round(self.known * self.people))
            for relation in RELATIONS
            for number in range(self.people)
        )

    @property
    def words(self) -> tuple[str, ...]:
        """Names and answers: each is to be a token of its own."""
        return (*(fact.person for fact in self.facts), *(word for each in RELATIONS for word in each.answers))

    def split(self, relation: str, test: bool) -> list[Fact]:
        """Return every second fact of a relation: the same shares of known ones for training and for tests."""
        return [fact for fact in self.facts if fact.relation.name == relation][int(test) :: 2]

    def documents(self, corpus: str) -> Iterator[Document]:
        """Yield the passages of a corpus, one for each fact."""
        for number, fact in enumerate(self.facts):
            if fact.relation.corpus == corpus:
                yield Document(f"{corpus}-{number}", fact.person, fact.passage())


def scenario(fact: Fact, *, deanon: bool = False) -> Scenario:
    """Return the question of a fact for a society with a helper for each corpus."""
    settings = QaSocietySettings(
        question=fact.question,
        answers=(fact.answer,),
        tools=CORPORA,
        deanon=deanon,
        metadata={"relation": fact.relation.name, "known": str(fact.known)},
    )
    changed = settings.model_dump(mode="json", exclude_unset=True)
    return Scenario(id=f"{fact.relation.name}-{fact.person}", game="qa_society", settings=changed, seats=SEATS)


def _names(number: int, chance: Random) -> list[str]:
    """Return different invented names of three syllables."""
    first, second, third = ("Ba", "Do", "Fe", "Gu", "Ka", "Lo", "Mi", "Ne"), ("ral", "ven", "tik", "mos"), ("a", "o")
    more = ("dar", "lin", "wen", "gast", "rick", "mund", "hild", "bert", "sin", "tas")
    names = ["".join(parts) for parts in product(first, second, (*more, *third))]
    chance.shuffle(names)
    if number > len(names):
        raise ValueError(f"there are {len(names)} names, not {number}")
    return names[:number]


def others(facts: Sequence[Fact], corpus: str, but: Fact) -> list[Fact]:
    """Return the facts of a corpus about other people."""
    return [fact for fact in facts if fact.relation.corpus == corpus and fact.person != but.person]
