"""Fixtures of the browser tests: one running site for all of them, a Chromium for each file, people who visit.

Without a Chromium every test here is skipped with one line that says so.
"""

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.browser.site import Site
from tests.browser.visitor import Visitor, visiting
from tools import setup
from tools.test import BROWSERS

CHROMIUM = next((path for name in BROWSERS if (path := shutil.which(name))), None)
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test of this folder drives a browser and needs the machine to itself."""
    for item in items:
        if "tests/browser/" in item.nodeid:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="package")
def site() -> Iterator[Site]:
    """A whole installation, with one person of each role; stopped after the last browser test."""
    if CHROMIUM is None:
        pytest.skip(f"no Chromium ({', '.join(BROWSERS)}): browser tests are not run")
    if not (setup.DOCS / "index.html").exists():
        setup.build_docs()  # `make test` has done so; every page links to it
    made = Site()
    try:
        made.start()
        made.seed("people")
        yield made
    finally:
        made.stop()


@pytest.fixture(scope="package")
def tiny(site: Site) -> None:
    """The tiny model, ready to be chosen."""
    site.prepare_tiny()
    site.seed("models")


@pytest.fixture(scope="module")
def browser(site: Site) -> Iterator[Browser]:
    """One Chromium a file: while Playwright runs, its event loop would be in the way of asynchronous tests."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        yield chromium
        chromium.close()


@pytest.fixture
def visit(site: Site, browser: Browser) -> Iterator[Callable[..., Visitor]]:
    """Makes people with browsers: `visit("rosa")` is signed in, `visit()` is nobody yet.

    At the end of the test nobody's browser may have complained.
    """
    with ExitStack() as stack:
        visitors: list[Visitor] = []

        def make(name: str = "", *, address: str = "", **options: Any) -> Visitor:
            visitor = stack.enter_context(visiting(browser, address or site.address, **options))
            visitors.append(visitor)
            if name and not visitor.comes_back(site.sessions.get(name, [])):
                visitor.sign_in(*(site.admin if name == "admin" else (name,)))
                site.sessions[name] = visitor.context.cookies()
            return visitor

        yield make
        assert [trouble for visitor in visitors for trouble in visitor.troubles] == []
