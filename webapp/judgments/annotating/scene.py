"""What annotators read of a game beside the conversation: situation and rules, and on request what was hidden."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from training.games import make
from training.records import ALL, SPECTATOR
from training.views import Brief, TableView
from webapp.core.stage import Stage
from webapp.judgments.games import GameRecord


@dataclass(frozen=True)
class Scene:
    """The situation and the rules as everybody knew them when the game began.

    `table` is the table at the end with everything face up, with the private cards of the seats; None where annotators
    may not see it.
    """

    story: str
    rules: Sequence[str]
    briefs: Sequence[tuple[str, Brief]] = ()
    table: TableView | None = None
    stage: Stage | None = None


def scene_of(game: GameRecord, *, hidden: bool) -> Scene:
    """Return the scene of a game; raise `BadInput` if its moves are not legal any more."""
    before = make(game.scenario).show(SPECTATOR)
    if not hidden:
        return Scene(before.story, before.rules)
    after, names = game.replayed(), game.scenario.seats
    cards = [(name, after.show(seat).brief) for seat, name in enumerate(names)]
    briefs = [(name, brief) for name, brief in cards if brief is not None]
    return Scene(before.story, before.rules, briefs, after.show(ALL), Stage(names, ALL))
