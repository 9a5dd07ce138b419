"""The page of a visitor and the search over every page, in a real browser."""

import re
import time
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_pages import AXE, CHECK, SMALL, TAGS
from tests.browser.visitor import Visitor

pytestmark = pytest.mark.slow
Visit = Callable[..., Visitor]
FIRST_MOVE_S = 20.0


def step(page: Page) -> str:
    return page.locator(".recorded progress").get_attribute("aria-label") or ""


def violations(page: Page) -> list[object]:
    page.evaluate(AXE.read_text())
    listed: list[object] = page.evaluate(CHECK, TAGS)
    return listed


def test_a_recorded_game_replays_itself_until_it_is_paused(visit: Visit) -> None:
    page = visit(viewport=SMALL).page
    page.goto("/")
    first = step(page)
    expect(page.locator(".recorded progress")).not_to_have_attribute("aria-label", first)
    page.get_by_role("button", name="Pause the recording").click()
    paused = step(page)
    page.wait_for_timeout(4500)  # longer than a step
    assert step(page) == paused
    page.get_by_role("button", name="One step forward").click()
    expect(page.locator(".recorded progress")).not_to_have_attribute("aria-label", paused)


def test_a_recorded_game_stands_still_for_who_wishes_for_less_motion(visit: Visit) -> None:
    page = visit(viewport=SMALL, reduced_motion="reduce").page
    page.goto("/")
    first = step(page)
    page.wait_for_timeout(4500)
    assert step(page) == first
    expect(page.get_by_role("button", name="Play the recording")).to_be_visible()


def test_a_guest_is_at_a_table_after_two_taps(visit: Visit) -> None:
    page = visit(viewport=SMALL, has_touch=True).page
    page.goto("/")
    page.get_by_role("button", name="Play it yourself").tap()
    page.get_by_role("button", name="Yes, it may be used").tap()
    expect(page.locator("#table .banner")).to_be_visible()


@pytest.mark.parametrize("account", [False, True])
def test_the_first_move_takes_three_taps_and_the_next_game_two(visit: Visit, account: bool) -> None:
    """In the featured negotiation. Fields of the sign-up are filled at once, as by a password manager."""
    page = visit(viewport=SMALL, has_touch=True).page
    page.on("dialog", lambda dialog: dialog.accept())
    if account:
        page.goto("/accounts/signup/")
        page.locator("[name=username]").fill("newcomer")
        page.locator("[name=password1]").fill("seven green herons")
        page.locator("[name=password2]").fill("seven green herons")
        page.get_by_role("button", name="Sign up").or_(page.locator("main form button")).first.tap()
        page.wait_for_url("/")
    began = time.monotonic()
    page.goto("/")
    play = 'form[action="/play/now/negotiation/"] button'
    page.locator(play).first.tap()
    page.get_by_role("button", name="Yes, it may be used").tap()
    say = page.locator("#say")
    say.fill("Hello. What do you need most?")
    page.locator(".say-button").first.tap()
    expect(page.locator("#log")).to_contain_text("What do you need most?")
    assert time.monotonic() - began < FIRST_MOVE_S
    page.locator(".give-up").tap()
    page.get_by_role("button", name="Next game").tap()
    page.get_by_role("button", name="Yes, it may be used").tap()
    expect(page.locator("#table .banner")).to_be_visible()


def test_the_search_is_used_by_keyboard_alone(visit: Visit) -> None:
    page = visit("rosa").page
    page.goto("/accounts/")
    page.keyboard.press("Control+k")
    field = page.get_by_role("combobox")
    expect(field).to_be_focused()
    page.keyboard.type("checkp")
    expect(page.get_by_role("option", name="Checkpoints")).to_have_attribute("aria-selected", "true")
    assert field.get_attribute("aria-activedescendant") == page.get_by_role("option").first.get_attribute("id")
    page.keyboard.press("Escape")
    expect(page.locator("#palette")).to_be_hidden()
    page.keyboard.press("/")
    expect(field).to_be_focused()
    page.keyboard.type("runs")
    expect(page.get_by_role("option").first).to_have_text(re.compile("Runs"))
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/runs/$"))


def test_a_key_pressed_before_the_closed_search_is_drawn_is_not_written_in_it(visit: Visit) -> None:
    page = visit("rosa").page
    page.goto("/accounts/")
    page.keyboard.press("Control+k")
    expect(page.get_by_role("combobox")).to_be_focused()
    opened_again = page.evaluate(
        """() => {
          for (const key of ["Escape", "/"]) {
            const press = new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true });
            document.activeElement.dispatchEvent(press);
          }
          return document.getElementById("palette").open;
        }"""
    )
    assert opened_again


def test_keys_are_listed_and_do_nothing_in_fields(visit: Visit) -> None:
    page = visit("rosa").page
    page.goto("/search/")
    page.locator("main input[type=search]").focus()
    page.keyboard.type("?/")
    expect(page.locator("dialog[open]")).to_have_count(0)
    page.locator("h1").click()
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()
    expect(page.get_by_text("A new line in what you say")).to_be_hidden()  # this page has no table
    page.locator("#keys [data-single]").uncheck()
    page.get_by_role("button", name="Close").click()
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_hidden()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_here_breaks_the_accessibility_rules(visit: Visit, scheme: str) -> None:
    stranger = visit(viewport=SMALL, color_scheme=scheme, reduced_motion="reduce").page
    stranger.goto("/?game=negotiation&step=4")
    assert violations(stranger) == []
    page = visit("rosa", color_scheme=scheme).page
    page.goto("/search/?q=run")
    assert violations(page) == []
    page.keyboard.press("Control+k")
    page.keyboard.type("run")
    expect(page.get_by_role("option").first).to_be_visible()
    assert violations(page) == []
