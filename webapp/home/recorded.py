"""Recorded games, which the page of a visitor shows: how each was played, and its course.

A file below `recordings/` is the output of the command that `Recording.command` states, at the commit beside it;
playing it again gives the same moves.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from training.games import lookup
from training.records import ALL, SPECTATOR
from training.store import read_lines
from webapp.arena import opponents
from webapp.runs.episodes.replaying import Course, course
from webapp.runs.episodes.viewer import ReplayView, view_of_course

FOLDER = Path(__file__).parent / "recordings"


@dataclass(frozen=True)
class Recording:
    """One recorded game and how it was played."""

    game: str
    players: tuple[str, ...]
    seed: int
    commit: str

    @property
    def path(self) -> Path:
        """The file with its only episode."""
        return FOLDER / f"{self.game}.jsonl"

    @property
    def title(self) -> str:
        """The game's title."""
        return lookup(self.game).title

    @property
    def summary(self) -> str:
        """The game in one sentence."""
        return lookup(self.game).summary

    @property
    def command(self) -> str:
        """The command that wrote the file."""
        players = ",".join(self.players)
        return f"python -m training play {self.game} --players {players} --episodes 1 --seed {self.seed} --out FILE"

    @property
    def between(self) -> str:
        """Who played, in words."""
        titles = list(dict.fromkeys(opponents.title(player) for player in self.players))
        return " and ".join(titles) if len(titles) > 1 else f"{len(self.players)} scripted players"


RECORDINGS = {
    recording.game: recording
    for recording in (
        Recording("negotiation", ("scripted", "scripted"), 7, "7face099"),
        Recording("connect_four", ("scripted", "mcts:200"), 3, "7face099"),
        Recording("werewolf", ("scripted",) * 6, 7, "7face099"),
    )
}
"""The recorded games in the order of the page."""


@cache
def played(game: str) -> Course:
    """The course of a recorded game."""
    ((episode, _),) = read_lines(RECORDINGS[game].path)
    replayed = course(episode)
    assert replayed is not None, f"the recorded game of {game} cannot be replayed"
    return replayed


@cache
def view(game: str, step: int) -> ReplayView:
    """A recorded game after `step` joint steps: all-seeing where somebody hides something."""
    return view_of_course(played(game), (), ALL if lookup(game).hidden else SPECTATOR, step)
