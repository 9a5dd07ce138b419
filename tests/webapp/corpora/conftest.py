"""A home of its own for every test, and corpora in it."""

import pytest


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch, settings):
    monkeypatch.setenv("PARLEY_HOME", str(tmp_path / "home"))
    settings.HOME = tmp_path / "home"
    settings.MEDIA_ROOT = tmp_path / "home" / "files"
    return tmp_path / "home"


@pytest.fixture
def corpus(db, researcher):
    from tests.webapp.corpora import making

    return making.corpus(researcher)
