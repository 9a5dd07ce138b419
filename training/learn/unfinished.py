"""The games and scores of training steps that are not saved yet, on disk, so that a later attempt need not repeat them.

They count for an attempt that has the very weights that played them: those of the checkpoint that it begins from, or
of the start, or, with a lag, older ones. What a killed process was writing is left out, and so is a game that ended by
an error, perhaps because that process was dying. Raises what reading an
`Episode` raises.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from training.records import Episode
from training.rewards import Score
from training.rundir import AttemptDir, RunDir
from training.store import append_line, read_lines


class Unfinished:
    """One training step: `episodes` and `scores` by the game's number, from earlier attempts and from this one.

    Of `earlier` attempts games count that no weights after step `begun` have sampled: these are others this time.
    """

    def __init__(self, file: Path, earlier: Iterable[Path] = (), begun: int = 0) -> None:
        self.episodes: dict[int, Episode] = {}
        self.scores: dict[int, Score] = {}
        self._file = file
        for path in earlier:
            for line, _ in read_lines(path):
                if "episode" in line:
                    self._take(line["game"], Episode.from_dict(line["episode"]), begun)
                elif line["game"] in self.episodes:
                    self.scores[line["game"]] = Score.from_dict(line["score"])

    def _take(self, game: int, episode: Episode, begun: int) -> None:
        if not episode.error and all(step <= begun for trace in episode.traces for _, step in trace.versions):
            self.episodes[game] = episode

    def add_episode(self, game: int, episode: Episode) -> None:
        """Keep a game that has been played."""
        self.episodes[game] = episode
        self._append({"game": game, "episode": episode.to_dict()})

    def add_score(self, game: int, score: Score | None) -> None:
        """Keep a game's score; None, of a game that could not be scored, is left out."""
        if score is not None:
            self._append({"game": game, "score": score.to_dict()})

    def _append(self, line: dict[str, Any]) -> None:
        self._file.parent.mkdir(exist_ok=True)
        append_line(self._file, line)


def open_step(run_dir: RunDir, attempt: AttemptDir, step: int, version: int, begun: int) -> Unfinished:
    """Return what is kept of training step `step` for an attempt that began after step `begun`.

    `version` is the step after which the weights are that play it: if it is later, they are other weights this time.
    """
    name = f"step_{step:06d}.jsonl"
    attempts = run_dir.attempts() if version <= begun else []
    if begun:
        attempts = [number for number in attempts if number >= _saved_by(run_dir, begun)]
    earlier = [run_dir.attempt(number).unfinished / name for number in attempts]
    return Unfinished(attempt.unfinished / name, earlier, begun)


def _saved_by(run_dir: RunDir, step: int) -> int:
    """Return the attempt whose checkpoint after `step` a new attempt begins from."""
    return int(run_dir.checkpoint_of(step).parents[1].name)


def clear(run_dir: RunDir, step: int) -> None:
    """Delete what is kept of the steps up to `step`, after which there is a checkpoint now."""
    for number in run_dir.folders():
        for file in run_dir.attempt(number).unfinished.glob("step_*.jsonl"):
            if int(file.stem.removeprefix("step_")) <= step:
                file.unlink(missing_ok=True)
