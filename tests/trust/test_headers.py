"""Headers of error pages; those of every page as every role, and of cookies, are checked in `test_permissions`."""

import pytest

from tests.trust.headers import check


@pytest.mark.parametrize("address", ["/nothing-here/", "/accounts/keys/1/revoke/"])
def test_error_pages_have_them_too(address, db, client):
    check(client.get(address))


def test_a_page_that_fails_says_what_to_do(db, client, monkeypatch):
    from webapp.core import errors

    for handler, status, kept in (
        (errors.bad_request, 400, "Nothing was changed."),
        (errors.forbidden, 403, "Nothing was changed."),
        (errors.server_error, 500, "What you had saved before is kept; this last step was not done."),
    ):
        from django.test import RequestFactory

        response = handler(RequestFactory().get("/"))
        assert response.status_code == status
        assert kept in response.content.decode()
