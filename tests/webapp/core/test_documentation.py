"""The documentation at `/docs/`: static files for everybody, a page that says what to do where there are none."""

import gzip

import pytest
from django.test import Client


@pytest.fixture
def built(settings, tmp_path):
    settings.DOCS_ROOT = tmp_path / "docs"
    (settings.DOCS_ROOT / "_static").mkdir(parents=True)
    (settings.DOCS_ROOT / "index.html").write_text("<h1>Documentation</h1>" + " " * 500)
    (settings.DOCS_ROOT / "_static" / "a.js").write_text("1;" * 500)
    (tmp_path / "secret.txt").write_text("secret")
    return settings.DOCS_ROOT


def test_pages_are_for_everybody_under_the_policy_of_the_site(built):
    answer = Client().get("/docs/", headers={"Accept-Encoding": "gzip"})
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert answer.content == Client().get("/docs/index.html").content == b"<h1>Documentation</h1>" + b" " * 500
    assert "script-src 'self'" in answer.headers["Content-Security-Policy"]
    assert "no-store" in answer.headers["Cache-Control"]


def test_files_are_kept_by_the_browser_and_compressed(built):
    client = Client()
    answer = client.get("/docs/_static/a.js", headers={"Accept-Encoding": "gzip"})
    assert gzip.decompress(answer.content) == b"1;" * 500
    assert answer.headers["Content-Type"] == "text/javascript; charset=utf-8"
    assert answer.headers["Cache-Control"] == "no-cache"
    again = client.get("/docs/_static/a.js", headers={"If-Modified-Since": answer.headers["Last-Modified"]})
    assert again.status_code == 304
    assert "immutable" in client.get("/docs/_static/a.js?v=1a2b").headers["Cache-Control"]


@pytest.mark.parametrize(
    "path", ["nothing.html", "_static/", "../secret.txt", "%2e%2e/secret.txt", "/etc/passwd", "a%00b"]
)
def test_nothing_else_is_served(built, path):
    assert Client().get(f"/docs/{path}").status_code == 404


def test_where_it_was_not_built_a_page_says_what_to_do(settings, tmp_path):
    settings.DOCS_ROOT = tmp_path / "nothing"
    answer = Client().get("/docs/methods/omar.html")
    assert answer.status_code == 503
    assert "python -m tools.docs" in answer.content.decode()


def test_it_takes_no_form(built):
    assert Client().post("/docs/").status_code == 405
