"""Who may use the addresses of the judgments app."""

from tests.trust.matrix.base import Route

ROUTES: list[Route] = []
