"""Playing alone by keyboard: the shop and the household, from the lobby to both plays side by side."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.at_table import connected
from tests.browser.test_table import press, tab_to
from training import samples
from training.games.actions import body
from training.games.household.commands import BY_NAME
from training.games.household.generated import generate
from training.games.household.settings import HouseholdSettings
from training.seeding import derive

pytestmark = pytest.mark.slow

PLACE = "() => document.activeElement.closest('#part-stage, #move') !== null"


def begin(page: Page, game: str, task: str) -> None:
    """From the lobby to the table of a sample, by its id."""
    page.goto("/play/")
    tab_to(page, f"a[href='/play/alone/?game={game}']")
    press(page, "Enter")
    page.wait_for_url(f"**/play/alone/?game={game}")
    tab_to(page, "select[name=task]")
    for _ in range(60):
        if page.locator("select[name=task]").input_value() == f"sample:{task}":
            break
        press(page, "ArrowDown")
    tab_to(page, "button[name=consent][value=yes]")
    press(page, "Enter")
    page.wait_for_url(re.compile(r"/play/\d+/$"))
    connected(page)
    expect(page.locator(".coach")).to_be_visible()


def choose(page: Page, choice: str, left: str) -> None:
    """Press the button of a choice and wait until the table says what is left; the focus is then where one goes on."""
    tab_to(page, f"button[name=choice][value='{choice}']")
    press(page, "Enter")
    expect(page.locator(".turn")).to_contain_text(left)
    page.wait_for_function(PLACE if "turn" in left else "() => document.activeElement.matches('.ending a')")


def see_both(page: Page) -> None:
    """The result is reached with one key; both plays have the best reward."""
    expect(page.locator(".coach")).to_be_hidden()  # nobody can be asked any more
    press(page, "Enter")
    page.wait_for_url("**/result/")
    for side in ("left", "right"):
        expect(page.locator(f".side-{side} .side-reward")).to_contain_text("1 reward")
    tab_to(page, "form[action$='/again/'] button")


def test_a_visit_to_the_shop_by_keyboard(visit):
    page = visit("pia").page
    begin(page, "shop", "shop-hiking-socks")
    expect(page.locator(".turn")).to_contain_text("10 turns left")
    tab_to(page, "input[name='search.words']")
    page.keyboard.type("hiking socks yellow P0395")
    press(page, "Enter")
    expect(page.locator(".turn")).to_contain_text("9 turns left")
    expect(page.locator("#log")).to_contain_text("searches for “hiking socks yellow P0395”")
    page.wait_for_function(PLACE)
    choose(page, "click:P0395", "8 turns left")
    choose(page, "click:back to search", "7 turns left")
    assert page.evaluate("document.activeElement.name") == "search.words"
    page.keyboard.type("hiking socks yellow P0395")
    press(page, "Enter")
    expect(page.locator(".turn")).to_contain_text("6 turns left")
    choose(page, "click:P0395", "5 turns left")
    choose(page, "click:yellow", "4 turns left")
    assert page.evaluate("document.activeElement.value") == "click:yellow"
    choose(page, "click:buy now", "The game is over")
    see_both(page)


def test_a_task_in_the_household_by_keyboard(visit):
    """The shortest plan, which the site does not show."""
    page = visit("pia").page
    task = next(task for task in samples.load("household") if task.id == "household-pick-bathroom")
    settings = HouseholdSettings.model_validate(task.settings)
    _, plan = generate(settings, task.seed or derive(0, "alone", task.id))
    begin(page, "household", task.id)
    for left, (action, args) in zip(range(settings.turn_limit - 1, 0, -1), plan, strict=False):
        over = left == settings.turn_limit - len(plan)
        choose(page, f"{action}:{body(BY_NAME[action], args)}", "The game is over" if over else f"{left} turns left")
    see_both(page)
