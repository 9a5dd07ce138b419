"""Who may use the ladder: members, each with the models that are open to them."""

from typing import Any

from tests.trust.matrix.base import MEMBERS, Route
from tests.webapp.ladder.make import shown


def stored(owner: Any) -> dict[str, Any]:
    """A ladder with rows, so that who looks at every page looks at them, too."""
    shown(owner)
    return {}


ROUTES = [Route("ladder:ladder", MEMBERS, MEMBERS, make=stored)]
