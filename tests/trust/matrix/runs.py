"""Who may use the addresses of the runs app."""

from tests.trust.matrix.base import Route

ROUTES: list[Route] = []
