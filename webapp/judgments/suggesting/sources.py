"""The sources of suggestions: a rule, a classifier of this site, a judge model.

Each says under which codebooks it has something to suggest, and answers target by target. An answer that does not fit
the codebook is refused with its place, and that target gets nothing; there is no default.

A new rule is an entry in `RULES`, a new kind of source a class and its entry in `SOURCES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

from training.dataset import Conversation, DatasetLine
from training.errors import BadInput, IllegalMove, JudgeError
from training.labels.claims import claims_of
from training.labels.codebooks import Codebook
from training.records import Label
from training.store import read_lines
from webapp.core import files
from webapp.judgments import games, judging
from webapp.judgments.games import GameRecord
from webapp.judgments.models import Classifier, JudgeModel, Queue, Target
from webapp.judgments.suggesting import claims

Run = Callable[[Sequence[str]], dict[str, Any]]
"""Runs a command of `python -m training` in a process of its own and returns its result; raises `BadInput`."""


@dataclass(frozen=True)
class Suggested:
    """A label with its probability; None where the source gives none."""

    label: Label
    score: float | None = None


@dataclass(frozen=True)
class Answer:
    """What a source suggests for a target, or why it suggests nothing: `why` is not empty.

    `turns` are the moves that it read, of a whole game.
    """

    target: Target
    labels: Sequence[Suggested] = ()
    why: str = ""
    turns: Sequence[int] = ()


class Source(Protocol):
    """A kind of source."""

    def names(self, queue: Queue) -> list[str]:
        """Return the sources of this kind that have something to suggest in a queue."""

    def filled(self, name: str, codebook: Codebook) -> set[str] | None:
        """Return the names of the label types of a codebook that a source can fill; None if it is lost."""

    def answers(self, name: str, targets: Sequence[Target], run: Run) -> Iterator[Answer]:
        """Yield an answer for each of a queue's targets, loaded `with_games`; raise `BadInput` for a lost source."""


@dataclass(frozen=True)
class Rule:
    """A rule that finds labels: the names of the label types that it can fill, and its labels of a game.

    `labels` raises `BadInput` or `IllegalMove` for a game that it cannot read.
    """

    filled: Callable[[Codebook], set[str]]
    labels: Callable[[Codebook, GameRecord], Sequence[Label]]


def _claims(codebook: Codebook, game: GameRecord) -> Sequence[Label]:
    return claims.labels_of(codebook, claims_of(game.scenario, game.moves))


RULES: dict[str, Rule] = {"claims": Rule(claims.filled, _claims)}
"""The rules by name."""


class Rules:
    """The rules of Parley that find labels."""

    def names(self, queue: Queue) -> list[str]:
        """Return those that can fill a label type of the queue."""
        codebook = queue.codebook_version.record()
        return [name for name, rule in RULES.items() if rule.filled(codebook)]

    def filled(self, name: str, codebook: Codebook) -> set[str] | None:
        """Return what the rule says."""
        return RULES[name].filled(codebook) if name in RULES else None

    def answers(self, name: str, targets: Sequence[Target], run: Run) -> Iterator[Answer]:
        """Apply the rule to each game."""
        if name not in RULES:
            raise BadInput("this release has no such rule", name)
        for target in targets:
            try:
                game = games.judgeable(target)
                labels, turns = RULES[name].labels(target.codebook(), game), game.turns_shown(hidden=True)
            except (BadInput, IllegalMove) as error:
                yield Answer(target, why=str(error))
            else:
                yield Answer(target, [Suggested(label) for label in labels], turns=turns)


class Classifiers:
    """The classifiers of this site that are ready."""

    def names(self, queue: Queue) -> list[str]:
        """Return those that know a label that the queue asks of turns."""
        asked = of_turns(queue.codebook_version.record())
        ready = Classifier.objects.ready().order_by("name")
        return [each.name for each in ready if each.info is not None and asked & {*each.info.labels}]

    def filled(self, name: str, codebook: Codebook) -> set[str] | None:
        """Return the labels that it learned, of those about turns."""
        classifier = Classifier.objects.ready().filter(name=name).first()
        info = None if classifier is None else classifier.info
        return None if info is None else {*info.labels} & of_turns(codebook)

    def answers(self, name: str, targets: Sequence[Target], run: Run) -> Iterator[Answer]:
        """Write the games as a dataset, let the process label it, and read its rows."""
        classifier = Classifier.objects.ready().filter(name=name).first()
        if classifier is None:
            raise BadInput("it was deleted", name)
        with TemporaryDirectory(prefix="parley-suggestions-") as temporary:
            folder = Path(temporary)
            written, unread = _write(folder / "games.jsonl", targets)
            yield from unread
            if not written:
                return
            stored = files.fetch_folder(classifier.folder, folder / "classifier")
            source, out = str(folder / "games.jsonl"), str(folder / "labels.jsonl")
            run(["labels", "label", source, "--classifier", str(stored), "--out", out])
            rows = [row for row, _ in read_lines(Path(out))]
        by_game = {game: list(group) for game, group in groupby(rows, lambda row: row["game"])}
        for number, target in enumerate(written):
            asked, of_game = of_turns(target.codebook()), by_game.get(number, [])
            labels = [each for row in of_game for each in _seen(row, asked)]
            yield Answer(target, labels, turns=[row["turn"] for row in of_game])


def _seen(row: dict[str, Any], asked: set[str]) -> Iterator[Suggested]:
    for name in row["labels"]:
        if name in asked:
            yield Suggested(Label(label=name, value=True, turn=row["turn"]), row["probabilities"][name])


def of_turns(codebook: Codebook) -> set[str]:
    """Return the names of the labels that are a yes or no about a turn."""
    return {label_type.name for label_type in codebook.labels if label_type.about == "turn" and label_type.yes_no}


def _write(file: Path, targets: Sequence[Target]) -> tuple[list[Target], list[Answer]]:
    """Write the games of targets as a dataset, a scenario per game; return those written, and why others are not."""
    written: list[Target] = []
    unread: list[Answer] = []
    with file.open("w", encoding="utf-8") as lines:
        for target in targets:
            try:
                game = games.judgeable(target)
                episode = game.episode()
            except BadInput as error:
                unread.append(Answer(target, why=str(error)))
                continue
            scenario = episode.scenario.model_copy(update={"id": f"game-{len(written)}"})
            conversation = Conversation(source=game.source, episode=episode)
            lines.write(DatasetLine(scenario=scenario, conversations=(conversation,)).dumps() + "\n")
            written.append(target)
    return written, unread


class Judges:
    """The judge models of this site."""

    def names(self, queue: Queue) -> list[str]:
        """Return all."""
        return list(JudgeModel.objects.order_by("name").values_list("name", flat=True))

    def filled(self, name: str, codebook: Codebook) -> set[str] | None:
        """Return all."""
        return {label_type.name for label_type in codebook.labels}

    def answers(self, name: str, targets: Sequence[Target], run: Run) -> Iterator[Answer]:
        """Ask about each seat or game, one after the other."""
        judge = JudgeModel.objects.select_related("remote").filter(name=name).first()
        if judge is None:
            raise BadInput("it was deleted", name)
        for target in targets:
            try:
                verdict = judging.ask(judge, target)
                turns = games.game_of(target).turns_shown(hidden=True) if target.seat is None else []
            except (JudgeError, BadInput, IllegalMove) as error:
                yield Answer(target, why=str(error))
            else:
                yield Answer(target, [Suggested(label) for label in verdict.labels], turns=turns)


SOURCES: dict[str, Source] = {"rule": Rules(), "classifier": Classifiers(), "judge": Judges()}
"""The kinds of sources, by what stands before the colon of a suggestion's source."""


def offered(queue: Queue) -> list[str]:
    """Return the sources that have something to suggest in a queue, as `KIND:NAME`."""
    return [f"{kind}:{name}" for kind, source in SOURCES.items() for name in source.names(queue)]


def filled(source: str, codebook: Codebook) -> set[str] | None:
    """Return the names of the label types that a source `KIND:NAME` can fill; None if it is lost."""
    kind, _, name = source.partition(":")
    return SOURCES[kind].filled(name, codebook)


def answers(source: str, targets: Sequence[Target], run: Run) -> Iterator[Answer]:
    """Yield the answers of a source `KIND:NAME` for targets."""
    kind, _, name = source.partition(":")
    return SOURCES[kind].answers(name, targets, run)
