"""What the tests need to know of each game, collected from its module in `tests.games.cases`.

`CASES` are varied scenarios, `WORLDS` pairs that a seat must not tell apart, `SECRETS` texts with those who may read
them, `PLAYTHROUGHS` fixed replies. The environment variable PARLEY_CASES names further modules, separated by commas:
those of games that other distributions add.
"""

import os
import pkgutil
from importlib import import_module

from tests.games import cases
from training.games import REGISTRY

_INNER = [f"{cases.__name__}.{module.name}" for module in pkgutil.iter_modules(cases.__path__) if module.name != "base"]
_OUTER = [name for name in os.environ.get("PARLEY_CASES", "").split(",") if name]
_MODULES = [import_module(name) for name in (*_INNER, *_OUTER)]


class ByGame(dict):
    """The entries of one list of every module, by the game that they are about, in the order of the registry."""

    def __init__(self, name, game_of):
        entries = [entry for module in _MODULES for entry in getattr(module, name, ())]
        by_game = {game: [entry for entry in entries if game_of(entry) == game] for game in REGISTRY}
        super().__init__((game, listed) for game, listed in by_game.items() if listed)
        self.name = name

    def __missing__(self, game):
        raise AssertionError(f"no module in tests/games/cases has {self.name} of {game}")


CASES = ByGame("CASES", lambda scenario: scenario.game)
WORLDS = ByGame("WORLDS", lambda worlds: worlds.a.game)
SECRETS = ByGame("SECRETS", lambda secret: secret.scenario.game)
PLAYTHROUGHS = ByGame("PLAYTHROUGHS", lambda playthrough: playthrough[1].game)
