"""Pretraining of a small model that answers questions about `bench.facts`: what it reads and how it is to reply.

The teacher mostly searches, reads the passage about the person asked for, else says what it knows by heart, and
else repeats an answer of the evidence or guesses. Whether it answers or hedges is a coin toss, so a pretrained model's
words say nothing about what it knows: that is left to the methods. The asker always asks, and repeats an answer rather
than a hedge.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from bench.excerpts import turn
from bench.facts import CORPORA, Fact, World, others, scenario
from training import bases
from training.games import Game, SearchingGame, advance, make
from training.games.qa_society import alone
from training.learn.tiny.pretrain import Recipe, Stage, pretrain
from training.players.scripted import Script, do, offered
from training.records import Episode, Move, Observation, Scenario, Seat, Trace
from training.rollout import Job, RolloutPolicy, collect
from training.sections import SftConfig
from training.seeding import rng
from training.store import atomic_directory
from training.text.conversations import traces as whole_games
from training.text.messages import chat as messages_of

if TYPE_CHECKING:
    from training.text.template import ChatTokenizer

SEARCHES = 0.9
"""How often the teacher searches."""
EXERCISE = "exercise-"
"""What the ids of games begin with in which all passages say something else each time, and nothing else counts."""
_FRIEND = re.compile(r"^FRIEND_(ANSWER|HEDGE)(?: \(.*?\))?: (.+)$", re.MULTILINE)
_ASKED = re.compile(r"^Question: (.+)$", re.MULTILINE)
_RETRIEVAL = re.compile(r"^RETRIEVAL: (.+)$", re.MULTILINE)


class Teacher(Script):
    """Plays any seat; it knows the known facts of a world by heart."""

    def __init__(self, world: World, start: Scenario, seat: Seat) -> None:
        super().__init__(start, seat)
        self._facts = {fact.question: fact for fact in world.facts}
        self._exercise = start.id.startswith(EXERCISE)

    def answer(self, observation: Observation, chance: Random) -> str:
        heard = "\n".join(message.text for message in observation.messages[1:] if message.author is None)
        if offered(observation, "ask"):
            return self._ask(observation, heard, chance)
        searched = "RETRIEVAL: " in heard
        if offered(observation, "search") and not searched and (self._exercise or chance.random() < SEARCHES):
            return do(observation, "search")
        return do(observation, chance.choice(("answer", "hedge")), answer=self._text(heard, chance))

    def _ask(self, observation: Observation, heard: str, chance: Random) -> str:
        """Ask once, then pass on a random reply among the surest ones."""
        replies = _FRIEND.findall(heard)
        if not replies:
            return do(observation, "ask")
        surest = [text for kind, text in replies if kind == "ANSWER"]
        texts = surest or [text for _, text in replies]
        return do(observation, "answer" if surest else "hedge", answer=chance.choice(texts))

    def _text(self, heard: str, chance: Random) -> str:
        """Return what the evidence says about the person, else what is known, else what is near or a guess."""
        asked = _ASKED.search(heard)
        assert asked, "every seat reads the question"
        fact = self._facts[asked[1]]
        passages = _RETRIEVAL.findall(heard)
        about = [_first(fact, passage) for passage in passages if passage.startswith(f"{fact.person}:")]
        if about and about[0]:
            return about[0]
        if fact.known and not self._exercise:
            return fact.answer
        near = [word for passage in passages for word in _answers(fact, passage)]
        return chance.choice(near or fact.relation.answers)


def _answers(fact: Fact, passage: str) -> list[str]:
    """Return the words of a passage that could be answers, in order."""
    return [word for word in re.findall(r"\w+", passage) if word in fact.relation.answers]


def _first(fact: Fact, passage: str) -> str:
    return next(iter(_answers(fact, passage)), "")


class Reader:
    """The search tool of the games that are read: a passage about the person from the right corpus, and others.

    A passage about a person who is not known says something else in each game.
    """

    def __init__(self, world: World, passages: int) -> None:
        self._world, self._passages = world, passages
        self._facts = {fact.question: fact for fact in world.facts}

    async def __call__(self, game: Game) -> Move:
        """Return the tool's move for the pending search."""
        assert isinstance(game, SearchingGame)
        search = game.pending_search()
        assert search, "the tool is only asked for a search"
        fact = self._facts[search.query]
        chance = rng(game.scenario.seed, "reader", search.corpus)
        near = chance.sample(others(self._world.facts, search.corpus, fact), self._passages)
        lines = [(each.person, each.passage()) for each in near]
        if fact.relation.corpus == search.corpus:
            by_heart = fact.known and not game.scenario.id.startswith(EXERCISE)
            answer = fact.answer if by_heart else stated_answer(fact, game.scenario.seed)
            lines = [(fact.person, fact.passage(answer)), *lines[:-1]]
        return game.retrieval(f"{person}: {text}" for person, text in lines)


def stated_answer(fact: Fact, seed: int) -> str:
    """Return the answer of the passage about an unknown person in the game with this seed."""
    return rng(seed, "told", fact.person).choice(fact.relation.answers)


def games(world: World, exercises: int, rounds: int, passages: int) -> list[Episode]:
    """Return exercises in reading, then games, with so many of each about every fact.

    A fact has in each round one game of a society, one of an agent with each corpus and two of one without any.
    """
    starts: list[Scenario] = []
    for number in range(exercises + rounds):
        for fact in world.facts:
            society = scenario(fact, deanon=number % 2 == 1)
            if number < exercises:
                society = society.model_copy(update={"id": EXERCISE + society.id})
                starts += [society, alone(society, fact.relation.corpus), alone(society, fact.relation.corpus)]
            else:
                starts += [society, *(alone(society, corpus) for corpus in CORPORA), alone(society), alone(society)]
    starts = [start.with_seed(rng(world.seed, "read", number).getrandbits(62)) for number, start in enumerate(starts)]
    jobs = [Job(number, start, ("teacher",) * len(start.seats)) for number, start in enumerate(starts)]
    policies = {"teacher": lambda start, seat: Teacher(world, start, seat)}
    tool = Reader(world, passages)
    return asyncio.run(collect(jobs, policies, lanes=64, rules=RolloutPolicy(seed=world.seed), tool=tool))


def exercises(episode: Episode, chat: ChatTokenizer, /, *, window: int | None) -> list[Trace]:
    """Return the traces of exercises alone, without the rules."""
    return short(episode, chat, window=window) if episode.scenario.id.startswith(EXERCISE) else []


def short(
    episode: Episode, chat: ChatTokenizer, /, *, window: int | None, share: float = 1.0, searching: float = 1.0
) -> list[Trace]:
    """Return replies, each after what its seat read without the rules: a small model learns facts and reading first.

    Of the games a `share` is read, and of the seats that searched in them the share `searching`.
    """
    seats = _seats(episode, share, searching)
    game, names = make(episode.scenario), episode.scenario.seats
    replies = []
    for entry in episode.moves:
        if entry.seat in seats:
            _rules, *read = messages_of(game.observe(entry.seat), entry.seat, names)
            replies.append(turn(entry.seat, chat, read, [entry.move.text], 0, whole=True))
        advance(game, {}, entry)
    return replies


def whole(
    episode: Episode, chat: ChatTokenizer, /, *, window: int | None, share: float, searching: float = 1.0
) -> list[Trace]:
    """Return whole traces, with the rules, which are most of their tokens; `share` and `searching` as in `short`."""
    seats = _seats(episode, share, searching)
    return list(whole_games(episode, chat, seats=seats, window=window)) if seats else []


def _seats(episode: Episode, share: float, searching: float) -> list[Seat]:
    """Return the seats of a game that are read."""
    if share < 1 and rng(episode.scenario.seed, "whole").random() >= share:
        return []
    chance = rng(episode.scenario.seed, "searching")
    searched = {entry.seat for entry in episode.moves if entry.move.action == "search"}
    return [
        seat
        for seat in range(len(episode.scenario.seats))
        if seat not in searched or searching == 1 or chance.random() < searching
    ]


def prepare(
    world: World,
    folder: Path,
    lengths: tuple[int, int],
    passages: int,
    recipe: dict[str, Any],
    stages: Sequence[Stage],
) -> Path:
    """Return the folder with the pretrained model; it is pretrained on the first call.

    `lengths` are the rounds of exercises and of games.
    """
    if folder.is_dir():
        return folder
    sft = SftConfig(batches_per_step=1, max_length=2048, warmup=0.05, lora=None)
    small = Recipe.from_dict({"seed": world.seed, "context": 0.0, "sft": sft.to_dict(), **recipe})
    info = bases.ModelInfo(
        name=folder.name, base="tiny", licence="apache-2.0", note="knows some invented facts", dataset=(), command=""
    )
    with atomic_directory(folder) as new:
        pretrain(new, games(world, *lengths, passages), small, info, words=world.words, stages=stages)
    return folder
