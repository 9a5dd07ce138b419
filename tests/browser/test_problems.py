"""A request that fails says so beside what was pressed, wherever pages ask by htmx; the next success takes it away."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.browser.visitor import Visitor

pytestmark = pytest.mark.slow
FAILURES = {
    0: "The site does not answer.",
    400: "This did not work (400).",
    401: "You are signed out.",
    403: "You are signed out, or the page is old.",
    404: "This no longer exists",
    429: "Too many requests.",
    500: "This did not work (500).",
}
"""What a page says by status; 0 is a connection that breaks."""
CONSOLE = ("Failed to load resource", "Response Status Error Code", "htmx:", ": 500")
NEAR = 120  # pixels


def failing(page: Page, address: str, status: int) -> None:
    """Let htmx's requests for an address fail."""

    def answer(route: Route) -> None:
        if route.request.headers.get("hx-request") != "true":
            route.continue_()
        elif status:
            route.fulfill(status=status, body="<h1>An error page</h1>")
        else:
            route.abort("connectionreset")

    page.unroute_all()
    page.route(address, answer)


def distance(first: Locator, second: Locator) -> float:
    """The vertical gap between two elements, in pixels."""
    above, below = sorted((first.bounding_box(), second.bounding_box()), key=lambda box: box["y"])
    return below["y"] - (above["y"] + above["height"])


def check(visitor: Visitor, address: str, pressed: Locator, press: Callable[[], Any]) -> None:
    """Press with every failure, then without one."""
    page = visitor.page
    problem = page.locator("main .request-problem")
    for status, text in FAILURES.items():
        failing(page, address, status)
        press()
        expect(problem).to_have_count(1)
        expect(problem).to_contain_text(text)
        expect(problem).to_have_attribute("role", "alert")
        assert distance(problem, pressed) < NEAR
        assert "An error page" not in page.locator("main").inner_text()
    page.unroute_all()
    press()
    expect(problem).to_have_count(0)
    visitor.forget(*CONSOLE)


def test_a_form_of_a_run(visit, site):
    visitor = visit("rosa")
    page = visitor.page
    page.goto(f"/runs/{site.seed('ended_run')}/")
    page.get_by_role("link", name="Add tags").or_(page.locator("#run-about a")).first.click()
    button = page.locator("#run-about").get_by_role("button", name="Save")
    page.locator("#run-about [name=note]").fill("kept while the site is silent")
    check(visitor, "**/about/", button, button.click)
    expect(page.locator("#run-about")).to_contain_text("kept while the site is silent")


def test_a_button_of_a_form(visit):
    visitor = visit("rosa")
    visitor.page.goto("/runs/reports/new/")
    button = visitor.page.get_by_role("button", name="Preview")
    check(visitor, "**/preview/", button, button.click)


def test_what_is_looked_up_while_somebody_writes(visit):
    visitor = visit("rosa")
    page = visitor.page
    page.goto("/search/")
    field = page.locator("main [name=q]")
    check(visitor, "**/search/**", field, lambda: field.press("Enter"))
    page.goto("/experiments/power/")
    button = page.get_by_role("button", name="Calculate")
    check(visitor, "**/power/**", button, button.click)


def test_the_bar_which_asks_by_itself_stays_silent(visit):
    visitor = visit("rosa")
    page = visitor.page
    failing(page, "**/running/", 500)
    with page.expect_response("**/running/"):
        page.goto("/")
    expect(page.locator("#running")).to_be_attached()
    expect(page.locator(".request-problem")).to_have_count(0)
    visitor.forget(*CONSOLE)
