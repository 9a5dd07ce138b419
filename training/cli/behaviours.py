"""`python -m training behaviours`: the behaviours of surviving and eliminated Werewolf players, from files of judged
games.

A file is a dataset (JSONL, as the site exports judged games) or a run's episodes (`.jsonl.gz`). A game that is in
several files, for instance because people and a model judged it, counts once, with all its judgments.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from typing import Any

from training.errors import BadInput
from training.evaluate.behaviours import JudgedGame, Share, judged_game, report
from training.evaluate.intervals import Interval
from training.labels.codebooks import BEHAVIOURS
from training.labels.turns import merged, read
from training.records import Episode, Judgment


def main(arguments: Namespace) -> dict[str, Any]:
    """Return the report and the number of games that were left out; raise `BadInput` if no game remains."""
    games, left_out = [], 0
    for episode, judgments in merged(read(path) for path in arguments.files):
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
