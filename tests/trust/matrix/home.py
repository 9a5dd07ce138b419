"""Who may use the first page."""

from tests.trust.matrix.base import RESEARCHERS, Route

ROUTES = [
    Route("home:index", (), public=True),
    Route("home:running", RESEARCHERS),
    Route("home:watch", RESEARCHERS, method="POST"),
]
