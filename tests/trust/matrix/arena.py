"""Who may use the addresses of the arena app."""

from tests.trust.matrix.base import Route, SocketRoute

ROUTES: list[Route] = []
SOCKETS: list[SocketRoute] = []
