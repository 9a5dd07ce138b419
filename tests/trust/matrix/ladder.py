"""Who may use the ladder: members, each with the models that are open to them."""

from tests.trust.matrix.base import MEMBERS, Route

ROUTES = [Route("ladder:ladder", MEMBERS)]
