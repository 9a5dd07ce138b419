"""Who may use the account pages."""

from typing import Any

from tests.trust.matrix.base import EVERYONE, MEMBERS, NOBODY, RESEARCHERS, Route
from webapp.accounts import services


def key(owner: Any) -> dict[str, Any]:
    made, _ = services.create_key(user=owner, name="notebook")
    return {"key_id": made.pk}


def wrong_link(owner: Any) -> dict[str, Any]:
    return {"key": "of-nobody"}


def somebody(owner: Any) -> dict[str, Any]:
    return {"user_id": owner.pk}


ADMIN = ("admin",)
PASSWORDS = {"new_password1": "correct horse battery", "new_password2": "correct horse battery"}
ROUTES = [
    Route("account_login", (), public=True),
    Route("account_login", (), public=True, method="POST", data={"login": "nobody", "password": "wrong"}),
    Route("account_logout", (), public=True),
    Route("account_logout", (), public=True, method="POST"),
    Route("account_confirm_email", (), public=True, make=wrong_link),
    Route("account_confirm_email", (), public=True, make=wrong_link, method="POST", status=404),
    Route("account_inactive", (), public=True),
    Route("account_signup", (), public=True),
    Route("account_signup", (), public=True, method="POST", data={"username": "nina"}),
    Route("account_reauthenticate", EVERYONE),
    Route("account_reauthenticate", EVERYONE, method="POST", data={"password": "wrong"}),
    Route("account_change_password", MEMBERS),
    Route("account_change_password", MEMBERS, method="POST", data={"oldpassword": "wrong"}),
    Route("accounts:account", MEMBERS),
    Route("accounts:account", MEMBERS, method="POST", data={"name": "notebook"}),
    Route("accounts:confirm-email", RESEARCHERS, method="POST"),
    Route("accounts:revoke-key", MEMBERS, NOBODY, method="POST", make=key),
    Route("accounts:people", ADMIN),
    Route("accounts:new-password", ADMIN, ADMIN, make=somebody),
    Route("accounts:new-password", ADMIN, ADMIN, method="POST", make=somebody, data=PASSWORDS),
    Route(
        "accounts:change-person",
        ADMIN,
        ADMIN,
        method="POST",
        make=somebody,
        data={"role": "player", "active": "on"},
    ),
]
