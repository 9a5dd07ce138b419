"""Who may use the first page."""

from tests.trust.matrix.base import MEMBERS, RESEARCHERS, Route

ROUTES = [
    Route("home:index", (), public=True),
    Route("home:running", RESEARCHERS),
    Route("home:search", MEMBERS),
    Route("home:palette", MEMBERS),
    Route("home:store-samples", RESEARCHERS, method="POST"),
    Route("home:remove-samples", RESEARCHERS, method="POST"),
    Route("home:tour", RESEARCHERS),
    Route("home:hide", RESEARCHERS, method="POST", data={"hidden": "1"}),
    Route("home:begin", RESEARCHERS, method="POST", make=lambda owner: {"step": "watch"}),
]
