"""The labelled turns of judged games, from which a classifier learns.

A file of games is a dataset (JSONL, as the site exports judged games) or a run's episodes (`.jsonl.gz`). Raises
`BadInput` naming the place for a file that cannot be read, and for games without labels to learn from.
"""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from training import dataset
from training.errors import BadInput
from training.records import Episode, Judgment, SeatMove
from training.store import dumps, loads

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Flags = NDArray[np.bool_]

Judged = tuple[Episode, Sequence[Judgment]]
OF_PROGRAMS = ("model:", "rule:")
"""How authors that are no people are named."""


@dataclass(frozen=True)
class LabelledTurns:
    """Turns in the order of their dialogues, with labels.

    `labels` has a row of flags for each turn (n, L); `rated` (n,) says which turns were labelled. The other turns are
    context alone. `codebook` and its version say what the labels mean, where they have one.
    """

    texts: Sequence[str]
    dialogues: Sequence[str]
    names: tuple[str, ...]
    labels: Flags
    rated: Flags
    codebook: str = ""
    codebook_version: int | None = None

    def digest(self) -> str:
        """Return the hex SHA-256 of the texts, dialogues and labels."""
        rows = zip(self.texts, self.dialogues, self.labels.tolist(), self.rated.tolist(), strict=True)
        return hashlib.sha256(dumps([self.names, *rows]).encode()).hexdigest()


def spoken(moves: Sequence[SeatMove]) -> list[int]:
    """Return the places of the moves whose words a seat chose: the turns of a classifier."""
    return [place for place, entry in enumerate(moves) if entry.move.origin == "seat" and entry.move.text.strip()]


def read(path: Path) -> Iterator[Judged]:
    """Yield the games of a file with their judgments."""
    if not path.is_file():
        raise BadInput("no such file", str(path))
    if path.suffix == ".gz":
        yield from _episodes(path)
        return
    for line in dataset.read(path):
        yield from ((conversation.episode, conversation.judgments) for conversation in line.conversations)


def _episodes(path: Path) -> Iterator[Judged]:
    """Yield the episodes of a run's file."""
    try:
        with gzip.open(path) as file:
            for number, text in enumerate(file, 1):
                record = loads(text)
                if not isinstance(record, dict) or "episode" not in record:
                    raise BadInput("not an episode of a run", f"{path.name} line {number}")
                judgments = [Judgment.from_dict(judgment) for judgment in record.get("judgments", ())]
                yield Episode.from_dict(record["episode"]), judgments
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise BadInput(f"cannot be read: {error}", str(path)) from error


def merged(files: Iterable[Iterable[Judged]]) -> Iterator[Judged]:
    """Yield each game once with the judgments of all files; equal games within one file stay separate."""
    games_by_content: dict[tuple[str, int], tuple[Episode, list[Judgment]]] = {}
    for games in files:
        repeats: Counter[str] = Counter()
        for episode, judgments in games:
            content = dumps([episode.scenario.to_dict(), [move.to_dict() for move in episode.moves]])
            _, known = games_by_content.setdefault((content, repeats[content]), (episode, []))
            known += [judgment for judgment in judgments if judgment not in known]
            repeats[content] += 1
    yield from games_by_content.values()


def labelled(games: Iterable[Judged], codebook: tuple[str, int] | None = None) -> LabelledTurns:
    """Return the turns of the games that people judged as a whole, with the labels that most of them gave.

    A turn has a label if more than half of the authors answered yes for it, or marked words in it; where an adjudicator
    decided, if they did. What nobody marked is a no. Judgments of judge models and rules do not count. `codebook` is
    the name and version under which judgments count; None where all are under one. Labels that no turn has are left
    out.
    """
    rows: list[tuple[str, str, frozenset[str]]] = []
    codebooks: set[tuple[str, int]] = set()
    for number, (episode, judgments) in enumerate(games):
        counted = [each for each in judgments if _counts(each) and codebook in (None, _codebook(each))]
        if decided := [each for each in counted if each.decides]:
            counted = decided[:1]
        codebooks |= {_codebook(each) for each in counted}
        if not counted or episode.error is not None:
            continue
        marks = Counter(mark for each in counted for mark in _marks(each))
        for place in spoken(episode.moves):
            has = {name for (turn, name), votes in marks.items() if turn == place and 2 * votes > len(counted)}
            rows.append((f"{number}", episode.moves[place].move.text, frozenset(has)))
    if len(codebooks) > 1:
        listed = ", ".join(f"{name} v{version}" for name, version in sorted(codebooks))
        raise BadInput(
            f"the judgments are under several codebooks, of which labels of one are learned: {listed}", "--codebook"
        )
    names = tuple(sorted({name for *_, has in rows for name in has}))
    if not names:
        under = f" under {codebook[0]} v{codebook[1]}" if codebook else ""
        raise BadInput(f"no person labelled a turn of a game{under}: there is nothing to learn", "LABELS")
    ((name, version),) = codebooks
    return LabelledTurns(
        [text for _, text, _ in rows],
        [dialogue for dialogue, *_ in rows],
        names,
        np.array([[name in has for name in names] for *_, has in rows], dtype=bool),
        np.ones(len(rows), dtype=bool),
        name,
        version,
    )


def _counts(judgment: Judgment) -> bool:
    return judgment.labels is not None and judgment.seat is None and not judgment.author.startswith(OF_PROGRAMS)


def _codebook(judgment: Judgment) -> tuple[str, int]:
    return judgment.codebook, judgment.codebook_version


def _marks(judgment: Judgment) -> set[tuple[int, str]]:
    """Return the turns with a yes or with marked words, each with the label's name."""
    return {
        (label.turn, label.label)
        for label in judgment.labels or ()
        if label.turn is not None
        and label.other_turn is None
        and (label.value is True or (label.value is None and label.start is not None))
    }
