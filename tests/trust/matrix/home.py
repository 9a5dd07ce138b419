"""Who may use the addresses of the home app."""

from tests.trust.matrix.base import Route

ROUTES: list[Route] = []
