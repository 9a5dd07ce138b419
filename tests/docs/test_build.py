"""The whole site: it builds without a warning, holds nothing that the policy forbids, and a broken link stops it."""

import re
from html.parser import HTMLParser

import pytest

from tools.docs import build

pytestmark = [pytest.mark.slow, pytest.mark.process]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    out = tmp_path_factory.mktemp("docs") / "site"
    build.build(out)
    return out


class Elements(HTMLParser):
    """Everything that a page loads or runs."""

    def __init__(self):
        super().__init__()
        self.inline, self.loaded = [], []

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.inline += [tag] * (tag == "style" or (tag == "script" and "src" not in attributes))
        self.inline += [f"{tag} {name}" for name in attributes if name == "style" or name.startswith("on")]
        if tag in {"script", "img", "iframe"} or (tag == "link" and attributes.get("rel") != "canonical"):
            self.loaded.append(attributes.get("src") or attributes.get("href"))


def test_no_page_holds_what_the_policy_forbids_or_loads_from_elsewhere(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 50
    for page in pages:
        elements = Elements()
        elements.feed(page.read_text())
        assert elements.inline == [], page.name
        assert [address for address in elements.loaded if re.match(r"(https?:)?//", address)] == [], page.name


def test_everything_that_a_page_loads_or_links_is_there(site):
    for page in site.rglob("*.html"):
        elements = Elements()
        elements.feed(page.read_text())
        for address in elements.loaded:
            name = address.split("?")[0].split("#")[0]
            assert name.startswith("/static/") or not name or (page.parent / name).resolve().is_file(), (
                page.name,
                name,
            )


def test_formulas_are_mathml(site):
    page = (site / "methods" / "omar.html").read_text()
    assert '<math xmlns="http://www.w3.org/1998/Math/MathML"' in page
    assert "$$" not in page


def test_search_needs_no_server(site):
    index = (site / "searchindex.js").read_text()
    assert index.startswith("Search.setIndex(")
    assert "hierarch" in index
    assert "searchtools.js" in (site / "search.html").read_text()


def test_a_broken_link_stops_the_build_and_leaves_the_site_as_it_was(site, monkeypatch):
    before = (site / "index.html").read_bytes()
    staged = build.staged

    def broken():
        texts = staged()
        texts["glossary.md"] += "\n[nowhere](nowhere.md)\n"
        return texts

    monkeypatch.setattr(build, "staged", broken)
    with pytest.raises(build.DocsError, match=r"glossary\.md:\d+.*nowhere\.md"):
        build.build(site)
    assert (site / "index.html").read_bytes() == before
