"""Who may use the addresses of the scenarios app."""

from tests.trust.matrix.base import Route

ROUTES: list[Route] = []
