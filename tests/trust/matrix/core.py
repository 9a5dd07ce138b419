"""Who may use what the core app answers."""

from tests.trust.matrix.base import Route

ROUTES = [Route("healthz", (), public=True)]
