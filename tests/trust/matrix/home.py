"""Who may use the first page."""

from tests.trust.matrix.base import EVERYONE, RESEARCHERS, Route

ROUTES = [
    Route("home:index", EVERYONE),
    Route("home:running", RESEARCHERS),
    Route("home:watch", RESEARCHERS, method="POST"),
]
