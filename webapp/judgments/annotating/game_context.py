"""The context of a game that annotators read beside its conversation: situation, rules and hidden information."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from training.games import make
from training.records import ALL, SPECTATOR
from training.views import Brief, TableView
from webapp.core.stage import Stage
from webapp.judgments.games import GameRecord


@dataclass(frozen=True)
class GameContext:
    """The situation and the rules as everybody knew them when the game began.

    `table` is the table at the end with everything face up, with the private cards of the seats; None where annotators
    may not see it.
    """

    story: str
    rules: Sequence[str]
    briefs: Sequence[tuple[str, Brief]] = ()
    table: TableView | None = None
    stage: Stage | None = None


def game_context(game: GameRecord, *, hidden: bool) -> GameContext:
    """Return the context of a game; raise `BadInput` if its moves are no longer legal."""
    before = make(game.scenario).show(SPECTATOR)
    if not hidden:
        return GameContext(before.story, before.rules)
    after, names = game.replayed(), game.scenario.seats
    all_briefs = [(name, after.show(seat).brief) for seat, name in enumerate(names)]
    briefs = [(name, brief) for name, brief in all_briefs if brief is not None]
    return GameContext(before.story, before.rules, briefs, after.show(ALL), Stage(names, ALL))
