"""The numbers of a conversation's tokens, by mouse, finger and keyboard."""

import pytest
from playwright.sync_api import expect

from tests.browser.test_pages import AXE, CHECK, SMALL, TAGS

pytestmark = pytest.mark.slow


def test_the_numbers_of_a_token_are_shown_by_click_arrow_key_and_button(visit, site):
    page = visit("rosa", viewport=SMALL).page
    page.goto(site.seed("tokens"))
    shown, tokens = page.locator("#token-bar [role=status]"), page.locator(".tokens .tk")
    tokens.nth(1).click()
    expect(shown).to_have_text('"2 ": advantage +0.800 · log-prob -0.250 · trainer -0.260 · id 2')
    page.keyboard.press("ArrowRight")
    expect(shown).to_contain_text("log-prob -1.500")
    expect(tokens.nth(2)).to_be_focused()
    page.get_by_role("button", name="Next token").click()
    expect(shown).to_have_text('"4 ": read, not sampled · id 4')
    page.get_by_role("button", name="Previous token").press("Enter")
    expect(shown).to_contain_text("id 3")
    expect(page.locator(".tokens [tabindex]")).to_have_count(1)
    expect(page.locator("#token-bar")).to_be_in_viewport(ratio=1)
    page.evaluate(AXE.read_text())
    assert page.evaluate(CHECK, TAGS) == []
