"""Who may use the addresses of the api app."""

from tests.trust.matrix.base import Route

ROUTES: list[Route] = []
