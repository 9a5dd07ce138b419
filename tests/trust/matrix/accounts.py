"""Who may use the account pages."""

from typing import Any

from tests.trust.matrix.base import MEMBERS, NOBODY, Route
from webapp.accounts import services


def key(owner: Any) -> dict[str, Any]:
    made, _ = services.create_key(user=owner, name="notebook")
    return {"key_id": made.pk}


def somebody(owner: Any) -> dict[str, Any]:
    return {"user_id": owner.pk}


ROUTES = [
    Route("account_login", (), public=True),
    Route("account_logout", (), public=True, method="POST"),
    Route("account_inactive", (), public=True),
    Route("account_signup", (), public=True),
    Route("account_reauthenticate", (*MEMBERS, "guest")),
    Route("account_change_password", MEMBERS),
    Route("accounts:account", MEMBERS),
    Route("accounts:revoke-key", MEMBERS, NOBODY, method="POST", make=key),
    Route("accounts:people", ("admin",)),
    Route(
        "accounts:change-person",
        ("admin",),
        ("admin",),
        method="POST",
        make=somebody,
        data={"role": "player", "active": "on"},
    ),
]
