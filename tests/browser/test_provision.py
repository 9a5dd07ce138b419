"""The information-provision game in a real browser: sliders and text change the map and the table in place."""

import re

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.slow


def test_a_slider_moves_the_point_by_keyboard_and_keeps_the_focus(visit):
    page = visit("pia").page
    page.goto("/provision/")
    point = page.locator(".region-map circle")
    assert float(point.get_attribute("cy")) == 162
    slider = page.get_by_role("slider", name="Player 2’s accuracy")
    slider.focus()
    for _ in range(15):  # .5 → .65: within 2c = .1 of .7, so either may search
        page.keyboard.press("ArrowRight")
    expect(page.locator("output[for=id_p2]")).to_have_text("0.65")
    expect(page.get_by_role("status")).to_contain_text("(S,G) and (G,S)")
    expect(point).to_have_attribute("cy", "117.0")  # 12 + 300 · (1 − .65)
    expect(slider).to_be_focused()
    assert "p2=0.65" in page.url
    page.reload()
    expect(page.get_by_role("status")).to_contain_text("(S,G) and (G,S)")


def test_wrong_text_is_explained_at_its_field_and_can_be_corrected(visit):
    page = visit("pia").page
    page.goto("/provision/")
    others = page.get_by_label("Accuracies of further players")
    others.fill("0.4, x")
    expect(page.locator("#id_others_error")).to_have_text(re.compile("'x' is not a number"))
    expect(others).to_have_value("0.4, x")
    expect(page.locator("#results table")).to_have_count(0)
    others.fill("0.4")
    expect(page.locator("#id_others_error")).to_be_empty()
    expect(page.get_by_role("row", name="(S,G,G)")).to_contain_text("0.650")


def test_without_scripts_a_button_shows_the_results(visit):
    page = visit("pia", java_script_enabled=False).page
    page.goto("/provision/")
    page.get_by_label("Accuracies of further players").fill("0.4")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_role("row", name="(S,G,G)")).to_contain_text("0.650")
    expect(page.get_by_label("Accuracies of further players")).to_have_value("0.4")
