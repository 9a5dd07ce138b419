"""What the contract tests need to know of each game: varied scenarios, worlds that a seat must not tell apart, and
secrets with those who may read them. A new game adds its module of `tests.games.cases` here, or `test_games.py` fails.
"""

from tests.games.cases import among_us as crews
from tests.games.cases import dialogue as talks
from tests.games.cases import negotiation as deals
from tests.games.cases import strategic as boards
from tests.games.cases import werewolf as villages

_ONE_EACH = {"negotiation": deals, "dialogue": talks, "werewolf": villages, "among_us": crews}

CASES = {name: module.CASES for name, module in _ONE_EACH.items()} | boards.CASES
WORLDS = {name: module.WORLDS for name, module in _ONE_EACH.items()} | boards.WORLDS
SECRETS = {name: module.SECRETS for name, module in _ONE_EACH.items()} | boards.SECRETS
