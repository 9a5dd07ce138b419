"""The address of the mail server becomes Django's settings."""

import pytest
from django.core.exceptions import ImproperlyConfigured

from webapp.core.addresses import mail


def test_an_address_becomes_settings() -> None:
    assert mail("smtp+tls://me%40x:pa%2Fss@mail.example") == {
        "EMAIL_HOST": "mail.example",
        "EMAIL_PORT": 587,
        "EMAIL_HOST_USER": "me@x",
        "EMAIL_HOST_PASSWORD": "pa/ss",
        "EMAIL_USE_SSL": False,
        "EMAIL_USE_TLS": True,
    }
    assert mail("smtps://mail.example:4650")["EMAIL_PORT"] == 4650


@pytest.mark.parametrize("url", ["http://x", "smtp:", "mail.example"])
def test_another_address_is_refused(url: str) -> None:
    with pytest.raises(ImproperlyConfigured):
        mail(url)
