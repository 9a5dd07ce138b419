"""Who may use the addresses of the serving app."""

from tests.trust.matrix.base import Route

ROUTES: list[Route] = []
