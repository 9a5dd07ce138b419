"""Who may use the pages about one's own data."""

from tests.trust.matrix.base import EVERYONE, Route

ROUTES = [
    Route("privacy:data", EVERYONE),
    Route("privacy:data", EVERYONE, method="POST"),
]
