"""Reports on games of deduction in a browser: charts are drawn, and no page scrolls sideways or breaks a rule."""

import json

import pytest
from playwright.sync_api import expect

from tests.browser.test_pages import AXE, CHECK, CONTRAST, LOOK, SMALL, TAGS, WIDE

pytestmark = pytest.mark.slow
EDGE = 10
"""Pixels by which the round ends of a line reach over its points."""


@pytest.fixture(scope="module")
def pages(site):
    return site.seed("deduction")


def test_reports_fit_a_small_screen_and_break_no_rule(visit, pages):
    visitor = visit("admin", viewport=SMALL)
    axe, wrong = AXE.read_text(), {}
    for name, address in pages.items():
        visitor.page.emulate_media(color_scheme="light", reduced_motion="reduce")
        visitor.page.goto(address)
        if problems := visitor.page.evaluate(LOOK)["scroll"]:
            wrong[name] = problems
        visitor.page.evaluate(axe)
        for scheme, rules in (("light", TAGS), ("dark", CONTRAST)):
            visitor.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            if problems := visitor.page.evaluate(CHECK, rules):
                wrong[f"{name} {scheme}"] = problems
    assert not wrong, json.dumps(wrong, indent=1)


BOXES = "line => [line, line.closest('svg')].map((part) => part.getBoundingClientRect().toJSON())"
"""The boxes of a line and of its chart at one moment: the page may still grow above them."""


def test_lines_reach_over_their_charts(visit, pages):
    """Every line of a chart is drawn inside it, over at least half of its width, and in a colour of its own."""
    page = visit("admin", viewport=WIDE).page
    for name, charts, lines in (("by role", 1, 2), ("match", 1, 3), ("comparison", 3, 9)):
        page.goto(pages[name])
        plots = page.locator(".trend-plot svg")
        expect(plots).to_have_count(charts)
        drawn = plots.locator("polyline")
        expect(drawn).to_have_count(lines)
        colours = set()
        for place in range(lines):
            line = drawn.nth(place)
            inner, outer = line.evaluate(BOXES)
            assert outer["width"] / 2 <= inner["width"] <= outer["width"] + EDGE
            assert outer["y"] - EDGE <= inner["y"]
            assert inner["y"] + inner["height"] <= outer["y"] + outer["height"] + EDGE
            colours.add(line.evaluate("one => getComputedStyle(one).stroke"))
        assert len(colours) == lines // charts


def test_curves_by_role_are_drawn(visit, pages):
    page = visit("admin", viewport=WIDE).page
    page.goto(pages["by role"])
    expect(page.locator("#curves canvas")).to_have_count(2)
    expect(page.locator("#curves summary")).to_have_text("What messages of each role change, by step")


def test_a_message_opens_its_step_of_the_replay(visit, pages):
    page = visit("admin", viewport=WIDE).page
    page.goto(pages["match"])
    speaker = page.locator("table.heard tbody a").first
    speaker.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".scrubber output")).not_to_contain_text("step 15 of 15")
    expect(page.locator("table.heard")).to_be_visible()


def test_arrow_keys_step_through_a_replay(visit, pages):
    page = visit("admin", viewport=WIDE).page
    page.goto(pages["match"])
    shown = page.locator(".scrubber output")
    for key, step in (("ArrowLeft", 14), ("ArrowLeft", 13), ("ArrowRight", 14), ("ArrowRight", 15)):
        page.keyboard.press(key)
        expect(shown).to_contain_text(f"step {step} of 15")
    for key in ("ArrowLeft", "ArrowLeft", "ArrowLeft", "ArrowRight"):  # without waiting for what each shows
        page.keyboard.press(key)
    expect(shown).to_contain_text("step 13 of 15")


def test_models_are_compared_from_a_suite(visit, pages):
    page = visit("admin", viewport=SMALL).page
    page.goto(pages["suite"])
    for model in ("RL+L", "RL+L+S"):
        page.get_by_label(f"Among Us suite of {model} #").check()
    page.get_by_role("button", name="Compare selected").click()
    expect(page.get_by_role("heading", name="Evaluation suites")).to_be_visible()
    expect(page.locator(".suite-chart")).to_have_count(3)
