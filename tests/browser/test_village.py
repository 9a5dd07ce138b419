"""A village with a browser: its rules chosen and the game played by buttons, and wolves trained from the page."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.at_table import OURS, connected
from tests.browser.test_journey import TRAIN_SECONDS, choose

pytestmark = pytest.mark.slow
GAME_SECONDS = 120
SHORT = {"Rounds": "1", "Day limit": "1", "Wolf talk": "0"}
CHOSEN = {"Order": "simultaneous", "Last words": "nobody", "Tie": "random"}
VILLAGE = '{"rounds": 1, "day_limit": 1, "wolf_talk": 0, "order": "simultaneous", "last_words": "nobody"}'
QUICK = {
    "game": {"game · settings": VILLAGE},
    "rollout": {"rollout · scenarios": "2"},
    "sampling": {"sampling · max tokens": "24"},
    "reward": {"reward · malformed": "-0.5"},  # babble never earns anything, so there must be something to lose
    "learn": {"learn · steps": "1", "learn · critic warmup": "0", "learn · save every": "1", "learn · threads": "1"},
}


def test_a_village_with_chosen_rules_is_played_by_buttons(visit):
    visitor = visit("pia")
    page = visitor.page
    page.goto("/play/new/?game=werewolf&seats=8")
    expect(page.get_by_label("Scenario").locator("option:checked")).to_have_text("A plain start")
    page.get_by_text("Rules of Werewolf:").click()
    for label, value in SHORT.items():
        page.get_by_label(label, exact=True).fill(value)
    for label, value in CHOSEN.items():
        page.get_by_label(label, exact=True).select_option(value)
    page.get_by_label("Roles", exact=True).fill(
        "werewolf, werewolf, seer, villager, villager, villager, villager, ogre"
    )
    page.get_by_role("button", name="Yes: start the game").click()
    expect(page.get_by_text("There is no 'ogre'")).to_be_visible()
    visitor.forget("400 (Bad Request)")
    page.get_by_label("Roles", exact=True).fill(
        "werewolf, werewolf, seer, villager, villager, villager, villager, witch"
    )
    page.get_by_role("button", name="Yes: start the game").click()
    page.wait_for_url(re.compile(r"/play/\d+/$"))
    page.set_viewport_size({"width": 360, "height": 740})
    play(page)
    page.get_by_role("button", name="Rate it, and see who they were").click()
    page.get_by_role("link", name="Back to the game").click()
    roles = page.locator("article.reveal .role").all_inner_texts()
    assert sorted(role.lower() for role in roles) == ["seer", *["villager"] * 4, *["werewolf"] * 2, "witch"]


def play(page: Page) -> None:
    """Say something by day, else press the first button; who is dead waits for the end."""
    connected(page)
    while True:
        expect(page.locator(".turn")).to_have_text(OURS, timeout=1000 * GAME_SECONDS)
        if "over" in page.locator(".turn").inner_text():
            return
        step = page.locator("#part-act input[name=turn]").get_attribute("value")
        if page.locator(".say-button").count():
            assert page.locator("#say").bounding_box()["width"] > 200, "on a phone there is room to write"
            page.locator("#say").fill("I have seen nothing yet.")
            page.locator("#say").press("Enter")
        else:
            page.locator("#part-act, #part-stage").locator("button[name=choice]").first.click()
        expect(page.locator(f"#part-act input[name=turn][value='{step}']")).to_have_count(0)


def test_wolves_are_trained_from_the_page(visit, tiny):
    page = visit("rosa").page
    page.goto("/runs/new/?preset=werewolf")
    page.get_by_label("Name", exact=True).fill("Wolves")
    choose(page, "Model", "tiny")
    page.get_by_label("Weights").select_option("all")
    for section, fields in QUICK.items():
        folded = page.locator("details", has=page.locator("summary", has_text=re.compile(rf"^\s*{section}\b")))
        if folded.get_attribute("open") is None:
            folded.locator("summary").click()
        for label, value in fields.items():
            folded.get_by_label(label, exact=True).fill(value)
    page.get_by_role("button", name="Start the run").first.click()
    page.wait_for_url(re.compile(r"/runs/\d+/$"))
    expect(page.locator("#run-header .state")).to_have_text("succeeded", timeout=TRAIN_SECONDS * 1000)
    page.get_by_role("navigation", name="This run").get_by_role("link", name="Conversations").click()
    page.locator("td a[href*='/conversations/']").first.click()
    expect(page.locator("ol.dialogue .turn").first).to_be_visible()
    expect(page.locator("main")).to_contain_text("werewolf")
