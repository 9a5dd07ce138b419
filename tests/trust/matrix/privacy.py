"""Who may use the pages about one's own data and the deletion of accounts."""

from typing import Any

from tests.trust.matrix.base import EVERYONE, Route


def somebody(owner: Any) -> dict[str, Any]:
    return {"user_id": owner.pk}


ADMIN = ("admin",)
ROUTES = [
    Route("privacy:data", EVERYONE),
    Route("privacy:data", EVERYONE, method="POST"),
    Route("privacy:delete", EVERYONE),
    Route("privacy:delete", EVERYONE, method="POST"),
    Route("privacy:delete-person", ADMIN, ADMIN, make=somebody),
    Route("privacy:delete-person", ADMIN, ADMIN, method="POST", make=somebody),
]
