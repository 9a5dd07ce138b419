"""`python -m training behaviours`: the behaviours of surviving and eliminated Werewolf players, from files of judged
games.

A file is a dataset (JSONL, as the site exports judged games) or a run's episodes (`.jsonl.gz`). A game that is in
several files, for instance because people and a model judged it, counts once, with all its judgments.
"""

from __future__ import annotations

import gzip
import zlib
from argparse import Namespace
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from training import dataset
from training.errors import BadInput
from training.evaluate.behaviours import JudgedGame, Share, judged_game, report
from training.evaluate.intervals import Interval
from training.labels.codebooks import BEHAVIOURS
from training.records import Episode, Judgment
from training.store import dumps, loads

Judged = tuple[Episode, Sequence[Judgment]]


def main(arguments: Namespace) -> dict[str, Any]:
    """Return the report and the number of games that were left out; raise `BadInput` if no game remains."""
    games, left_out = [], 0
    for episode, judgments in _merged(_read(path) for path in arguments.files):
        try:
            games.append(_game(episode, judgments))
        except BadInput:
            left_out += 1
    if not games:
        raise BadInput(f"of {_games(left_out)} none is a game of Werewolf with roles and survivors", "FILE")
    return report(games, BEHAVIOURS).to_dict() | {"left_out": left_out}


def _game(episode: Episode, judgments: Sequence[Judgment]) -> JudgedGame:
    if episode.error or not any(BEHAVIOURS.asks(role) for role in episode.roles):
        raise BadInput("it failed, or is another game", "episode")
    return judged_game(episode, judgments)


def _merged(files: Iterable[Iterable[Judged]]) -> Iterator[Judged]:
    """Yield each game once with the judgments of all files; equal games within one file stay separate."""
    games_by_content: dict[tuple[str, int], tuple[Episode, list[Judgment]]] = {}
    for games in files:
        repeats: Counter[str] = Counter()
        for episode, judgments in games:
            content = dumps([episode.scenario.to_dict(), [move.to_dict() for move in episode.moves]])
            _, merged = games_by_content.setdefault((content, repeats[content]), (episode, []))
            merged += [judgment for judgment in judgments if judgment not in merged]
            repeats[content] += 1
    yield from games_by_content.values()


def _read(path: Path) -> Iterator[Judged]:
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
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise BadInput(f"cannot be read: {error}", str(path)) from error


def show(result: dict[str, Any]) -> str:
    """Return a table for every kind of judge, in per cent and percentage points."""
    left_out = f", {result['left_out']} others left out" if result["left_out"] else ""
    lines = [f"{_games(result['games'])}{left_out}; {result['codebook']} v{result['version']}"]
    if not result["tables"]:
        lines.append("nobody has judged them under this codebook")
    for table in result["tables"]:
        lines += ["", f"judged by {table['by']}, {_games(table['games'])}"]
        lines.append(_line("", "surviving", "eliminated", "difference"))
        for row in table["rows"]:
            surviving, eliminated = (_share(Share.from_dict(row[name])) for name in ("surviving", "eliminated"))
            lines.append(_line(row["title"], surviving, eliminated, _points(row["difference"])))
    return "\n".join(lines)


def _games(count: int) -> str:
    return f"{count} game" if count == 1 else f"{count} games"


def _line(title: str, surviving: str, eliminated: str, difference: str) -> str:
    return f"{title:26}  {surviving:>24}  {eliminated:>24}  {difference:>18}".rstrip()


def _share(share: Share) -> str:
    scored = f"(scored {share.scored} of {share.asked})"
    return f"- {scored}" if share.share is None else f"{100 * share.share:.0f} % {scored}"


def _points(difference: dict[str, Any] | None) -> str:
    if difference is None:
        return "-"
    points = Interval.from_dict(difference)
    return f"{100 * points.mean:+.0f} [{100 * points.low:+.0f}, {100 * points.high:+.0f}]"
