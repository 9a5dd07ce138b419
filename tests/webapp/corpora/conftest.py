"""A home of its own for every test, and corpora in it."""

import pytest


@pytest.fixture(autouse=True)
def home(home):
    return home


@pytest.fixture
def corpus(db, researcher):
    from tests.webapp.corpora import making

    return making.corpus(researcher)
