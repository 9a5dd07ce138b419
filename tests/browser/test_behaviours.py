"""Finding a behaviour in a real browser: suggestions, the curve of a run with the words behind it, and search."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.test_pages import LOOK, SMALL, WIDE

pytestmark = pytest.mark.slow


def test_a_rule_suggests_and_the_curve_leads_to_the_very_words(visit, site):
    made, page = site.seed("behaviours"), visit("rosa", viewport=WIDE).page
    page.goto(made["run"])
    expect(page.get_by_text("No game of this run is labelled yet.")).to_be_visible()
    page.goto(made["queue"])
    page.get_by_label("Source").select_option("rule:claims")
    page.get_by_role("button", name="Suggest labels").press("Enter")
    row = page.get_by_role("row").filter(has=page.get_by_role("rowheader", name="rule:claims"))
    expect(row).to_contain_text("done", timeout=60_000)  # a worker has read all games
    page.goto(made["run"])
    expect(page.get_by_text("6 labelled games at 2 training steps")).to_be_visible()
    point = page.get_by_role("link", name=re.compile("^Step 5: 100 % of 3,"))
    expect(point).to_have_count(1)
    expect(page.get_by_role("link", name=re.compile("^Step 1: 0 % of 3,"))).not_to_have_count(0)
    point.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("status").filter(has_text="3 suggestions by rule:claims")).to_be_visible()
    expect(page.locator("main mark").first).to_have_text("I need food most")


def test_a_label_becomes_a_reward(visit, site, tiny):
    """The classifier's F1 on offers is 0.8, on rude 0.4; the limit of a warning is 0.6."""
    page = visit("rosa", viewport=SMALL).page
    page.goto(site.seed("classifier"))
    page.get_by_role("link", name="rude").press("Enter")
    section = page.locator("#section-reward")
    expect(section.get_by_label("reward · labels 1 · label")).to_have_value("rude")
    expect(section).to_contain_text("F1 0.40 (95 % interval 0.30–0.50)")
    expect(section).to_contain_text("agrees too little with people on rude")
    section.get_by_label("reward · labels 1 · weight").fill("-0.5")
    section.get_by_role("button", name="Add a label").press("Enter")
    expect(section.get_by_label("reward · labels 1 · weight")).to_have_value("-0.5")
    expect(section.get_by_label("reward · labels 2 · classifier")).to_have_value("moves")
    section.get_by_label("reward · labels 2 · label").fill("offers")
    section.get_by_label("reward · labels 2 · use").select_option("exclude")
    assert page.evaluate(LOOK)["scroll"] == []
    page.get_by_label("Name", exact=True).fill("polite")
    page.get_by_label("Place").select_option("gpu")  # nobody takes it
    page.get_by_role("button", name="Start the run").last.click()
    expect(page.locator("#run-header")).to_contain_text("Waiting for a worker")
    expect(page.get_by_text("Reward: the classifier agrees too little with people on rude")).to_be_visible()
    page.get_by_role("link", name="Clone").or_(page.get_by_role("button", name="Clone")).first.click()
    page.locator("#section-reward summary").click()
    expect(section).to_contain_text("F1 0.80 (95 % interval")
    section.get_by_role("button", name="Remove the last one").click()
    expect(section.get_by_label("reward · labels 1 · label")).to_have_value("rude")
    expect(section.get_by_label("reward · labels 2 · label")).to_have_count(0)


def test_a_search_is_narrowed_saved_opened_again_and_deleted(visit, site):
    site.seed("disputed", "warmth")
    page = visit("rosa", viewport=WIDE).page
    page.goto("/judgments/search/")
    page.get_by_label("Label").select_option("warmth/warm")
    page.get_by_label("Value").fill("yes")
    page.get_by_role("button", name="Filter").click()
    count = page.get_by_role("status").filter(has_text=" in 6 games")
    expect(count).to_have_text("18 labels in 6 games")  # three authors answer of two seats of each game, half with yes
    page.get_by_text("Save this search").click()
    page.get_by_label("Name").fill("warm words")
    page.get_by_role("button", name="Save").click()
    page.goto("/judgments/search/?q=nobody-said-this")
    expect(page.get_by_text("No label that you may read matches.")).to_be_visible()
    page.get_by_role("link", name="warm words").click()
    expect(count).to_have_text("18 labels in 6 games")
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Delete the search warm words").click()
    expect(page.get_by_text("was deleted")).to_be_visible()
    expect(page.get_by_role("link", name="warm words")).to_have_count(0)
