"""The numbers of a conversation's tokens, by mouse, finger and keyboard."""

import pytest
from playwright.sync_api import expect

from tests.browser.test_pages import AXE, CHECK, SMALL, TAGS, WIDE

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def address(site):
    return site.seed("tokens")


def test_the_numbers_of_a_token_are_shown_by_click_arrow_key_and_button(visit, address):
    page = visit("rosa", viewport=SMALL).page
    page.goto(address)
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


def test_choosing_begins_at_the_first_sampled_token_and_goes_on_by_turns(visit, address):
    """Of the tokens 1 2 3 4 1 2 3 4 … each 2 begins a turn, which 3 ends."""
    page = visit("rosa", viewport=SMALL).page
    page.goto(address)
    chosen, tokens = page.locator(".tokens .chosen"), page.locator(".tokens .tk")
    page.get_by_role("button", name="Next token").click()
    expect(tokens.nth(1)).to_contain_class("chosen")
    for name, place in (("Next turn", 5), ("Next turn", 9), ("Next token", 10), ("Previous turn", 9)):
        page.get_by_role("button", name=name).click()
        expect(tokens.nth(place)).to_contain_class("chosen")
    page.get_by_role("button", name="Previous turn").click()
    tokens.nth(5).focus()
    for key, place in (("Shift+ArrowRight", 9), ("ArrowRight", 10), ("Shift+ArrowLeft", 9), ("Shift+ArrowLeft", 5)):
        page.keyboard.press(key)
        expect(tokens.nth(place)).to_be_focused()
        expect(tokens.nth(place)).to_contain_class("chosen")
    expect(chosen).to_have_count(1)
    last = tokens.nth(597)  # far below
    last.click()
    page.keyboard.press("Shift+ArrowRight")  # there is no further turn
    expect(last).to_be_focused()
    page.keyboard.press("Shift+ArrowLeft")
    expect(tokens.nth(593)).to_be_focused()
    page.wait_for_function(
        "() => document.querySelector('.chosen').getBoundingClientRect().bottom"
        " <= document.getElementById('token-bar').getBoundingClientRect().top"
    )


def test_the_prompt_opens_for_a_token_that_is_chosen_in_it(visit, address):
    page = visit("rosa", viewport=WIDE).page
    page.goto(address)
    prompt, shown = page.locator("details.prompt"), page.locator("#token-bar [role=status]")
    first, sampled = prompt.locator(".tk"), page.locator(".stretch.sampled .tk").first
    expect(first).to_be_hidden()
    expect(sampled).to_be_in_viewport(ratio=1)
    sampled.focus()
    page.keyboard.press("ArrowLeft")
    expect(first).to_be_focused()
    expect(shown).to_have_text('"1 ": read, not sampled · id 1')
    prompt.locator("summary").click()
    expect(first).to_be_hidden()
    expect(shown).to_have_text("No token is chosen.")
    prompt.locator("summary").focus()
    page.keyboard.press("Tab")
    expect(sampled).to_be_focused()
    page.get_by_role("button", name="Previous token").click()
    expect(first).to_be_visible()
    expect(shown).to_contain_text("id 1")
    sampled.click()
    first.click()
    expect(shown).to_contain_text("id 1")


def test_the_prompt_opens_without_scripts(visit, site, address):
    page = visit("rosa", viewport=WIDE, java_script_enabled=False).page
    page.goto(address)
    expect(page.locator("details.prompt .tk")).to_be_hidden()
    page.locator("details.prompt summary").click()
    expect(page.locator("details.prompt .tk")).to_be_visible()


@pytest.mark.parametrize("size", [SMALL, WIDE])
def test_the_margin_leaves_no_blank_below_a_turn(visit, address, size):
    page = visit("rosa", viewport=size).page
    page.goto(address)
    expect(page.locator(".stretch .margin").nth(1)).to_have_text("turn 0 advantage 0.8")
    heights = page.evaluate(
        """() => {
          const [turn, read] = document.querySelectorAll(".stretch");
          const line = parseFloat(getComputedStyle(turn.querySelector(".tokens")).lineHeight);
          const between = read.querySelector(".tk").getBoundingClientRect().top -
            [...turn.querySelectorAll(".tk")].at(-1).getBoundingClientRect().bottom;
          const note = document.querySelector(".stretch .margin span:last-of-type");
          return {
            between: between / line,
            note: note.getBoundingClientRect().height / parseFloat(getComputedStyle(note).fontSize),
          };
        }"""
    )
    assert heights["between"] < 1
    assert heights["note"] < 1.7  # one line
