"""Who may use the first page."""

from tests.trust.matrix.base import MEMBERS, RESEARCHERS, Route

ROUTES = [
    Route("home:index", MEMBERS),
    Route("home:running", RESEARCHERS),
    Route("home:watch", RESEARCHERS, method="POST"),
]
