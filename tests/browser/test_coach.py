"""The coach with a browser: asked by keyboard after one confirmation, read where the focus is, on small screens too."""

import os
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.at_table import TURN, connected, set_up
from tests.browser.test_pages import AXE, CHECK, CONTRAST, LOOK, SMALL, TAGS, WIDE
from tests.browser.test_table import press, tab_to

pytestmark = pytest.mark.slow


def test_a_coach_is_asked_by_keyboard_after_one_confirmation(visit):
    visitor = visit("pia", viewport=WIDE)
    page = visitor.page
    asked = []
    page.on(
        "dialog", lambda dialog: (asked.append(dialog.message), dialog.accept() if len(asked) > 1 else dialog.dismiss())
    )
    set_up(page)
    connected(page)
    expect(page.locator(".turn")).to_have_text(TURN)
    page.locator("#say").fill("A draft")
    tab_to(page, ".coach summary")
    press(page, "Enter")
    expect(page.locator("#coach-note")).to_contain_text("does not count on the ladder")
    tab_to(page, "#ask-coach")
    press(page, "Enter")
    assert "does not count on the ladder" in asked[0]
    expect(page.locator("#coach-said")).to_have_text("")
    press(page, "Enter")
    advice = page.locator("#coach-said .advised")
    expect(advice).to_contain_text("a scripted player, for this turn")
    assert page.evaluate("document.activeElement.closest('.coach') !== null"), "the focus is not lost"
    assert page.locator("#coach-said").get_attribute("aria-live") == "polite"
    assert not [address for address in visitor.requested if address.endswith("/coach/")], "it went over the socket"
    assert page.locator("#say").input_value() == "A draft"
    page.locator("#say").press("Enter")
    expect(page.locator("#log")).to_contain_text("A draft")
    expect(page.locator(".turn")).to_have_text(TURN)
    page.locator("#ask-coach").click()
    expect(page.locator("#coach-said")).to_contain_text("Earlier advice")
    assert len(asked) == 2, "one confirmation is enough"
    page.reload()
    expect(advice).to_contain_text("for this turn")


def test_a_refusal_is_said_beside_the_button_without_a_socket(visit):
    visitor = visit("pia")
    page = visitor.page
    page.on("dialog", lambda dialog: dialog.accept())
    set_up(page)
    expect(page.locator(".turn")).to_have_text(TURN)
    page.locator(".coach summary").click()
    page.evaluate("document.querySelector('#coach').options[0].value = 'nobody'")
    page.evaluate("HTMLFormElement.prototype.submit.call(document.getElementById('coach-form'))")
    page.wait_for_url(re.compile("/coach/$"))
    expect(page.locator("#coach-refusal")).to_have_text(
        "No coach was asked: there is no such coach: choose one of the list."
    )
    visitor.forget("400")


@pytest.mark.parametrize("viewport", [SMALL, WIDE], ids=["small", "wide"])
def test_an_open_coach_fits_and_breaks_no_rule_in_light_or_dark(visit, viewport):
    page = visit("pia", viewport=viewport).page
    page.on("dialog", lambda dialog: dialog.accept())
    set_up(page)
    connected(page)
    expect(page.locator(".turn")).to_have_text(TURN)
    page.locator(".coach summary").click()
    page.locator("#ask-coach").click()
    expect(page.locator("#coach-said .advised")).to_be_visible()
    page.evaluate(AXE.read_text())
    for scheme, rules in (("light", TAGS), ("dark", CONTRAST)):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        assert page.evaluate(CHECK, rules) == []
        assert page.evaluate(LOOK)["scroll"] == []
        if folder := os.environ.get("SHOTS"):
            page.screenshot(path=Path(folder) / f"coach-{viewport['width']}-{scheme}.png", full_page=True)
