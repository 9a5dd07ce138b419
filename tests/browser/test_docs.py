"""The documentation in a real browser: signed out, on a phone and wide, light and dark, with search and formulas."""

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.slow
PAGES = ("index", "methods/omar", "reference/configuration", "reference/rest-api", "notebooks/sweep", "table", "games")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_no_page_scrolls_sideways_or_breaks_the_policy(visit, width, scheme):
    visitor = visit(viewport={"width": width, "height": 800}, color_scheme=scheme)
    for name in PAGES:
        visitor.page.goto(f"/docs/{name}.html")
        over = visitor.page.evaluate("document.scrollingElement.scrollWidth - innerWidth")
        assert over <= 0, name
        expect(visitor.page.locator("h1").first).to_be_visible()
    assert {address.split("/docs/")[0].removesuffix("/static/icon.svg") for address in visitor.requested} == {
        visitor.address
    }, "nothing comes from elsewhere"


def test_search_finds_pages_without_a_server(visit):
    page = visit().page
    page.goto("/docs/")
    page.get_by_role("textbox", name="Search").fill("advantage")
    page.keyboard.press("Enter")
    expect(page.locator("#search-results")).to_contain_text("omar: one model, all roles")


def test_formulas_are_drawn_and_a_chosen_theme_stays(visit):
    page = visit().page
    page.goto("/docs/methods/omar.html")
    box = page.locator(".formula math").first.bounding_box()
    assert box is not None
    assert box["height"] > 15
    page.locator(".theme-toggle-content .theme-toggle").click()
    chosen = page.evaluate("document.body.dataset.theme")
    page.goto("/docs/games.html")
    assert (chosen != "auto", page.evaluate("document.body.dataset.theme")) == (True, chosen)


def test_the_way_there_is_on_the_sign_in_page_and_in_the_bar(visit):
    page = visit().page
    page.goto("/accounts/login/")
    page.get_by_role("link", name="Docs").click()
    expect(page.locator("h1")).to_contain_text("Parley’s documentation")
    page = visit("pia").page
    page.goto("/")
    page.locator("header.bar details summary").click()
    page.get_by_role("link", name="Documentation").click()
    expect(page.locator("h1")).to_contain_text("Parley’s documentation")
