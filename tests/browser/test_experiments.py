"""A study from the researcher's first page to a participant's code, in two browsers."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise

from playwright.sync_api import expect

from tests.browser.test_pages import SMALL, WIDE
from tests.browser.visitor import Visitor

WIDER = """() => [document.scrollingElement, ...document.querySelectorAll("#live .scroll")]
  .filter((box) => box.scrollWidth > box.clientWidth).map((box) => box.outerHTML.slice(0, 120))"""
"""What scrolls sideways."""


def test_a_study_is_made_opened_and_taken(visit: Callable[..., Visitor]) -> None:
    rosa = visit("rosa").page
    rosa.goto("/experiments/")
    rosa.get_by_role("button", name="New experiment").click()
    rosa.get_by_text("How many participants?").click()
    rosa.get_by_label("Participants per arm").first.fill("64")
    expect(rosa.locator("#power-answer")).to_contain_text("64 per arm have a power of 0.796")
    rosa.get_by_label("Title").fill("A browser's study")
    rosa.get_by_label("Consent", exact=True).fill("You negotiate once.")
    rosa.locator("[name=debriefing]").fill("You played against a script.")
    rosa.locator("[name=per_arm]").fill("2")
    expect(rosa.locator("[name=shortest_wait_s]")).to_have_value("20")
    rosa.locator("[name=shortest_wait_s]").fill("0")
    rosa.get_by_label("Code when complete").fill("C0DE")
    rosa.get_by_role("button", name="Save the draft").click()
    rosa.get_by_role("button", name="Add an arm").click()
    rosa.get_by_label("Name").fill("only")
    rosa.locator("[name=seat_1]").select_option("scripted:scripted")
    rosa.get_by_role("button", name="Save the arm").click()
    expect(rosa.locator(".note-warning")).to_contain_text("suggests a machine")
    rosa.get_by_role("button", name="Add a question after the game").click()
    rosa.locator("[name=name]").fill("trust")
    rosa.locator("[name=text]").fill("Did you trust the other player?")
    rosa.locator("[name=options]").fill("not at all\na little\nquite\nfully")
    rosa.get_by_role("button", name="Save the question").click()
    rosa.on("dialog", lambda dialog: dialog.accept())
    rosa.get_by_role("button", name="Open the experiment").click()
    link = rosa.locator("#link").inner_text().partition("?")[0]
    guest = visit().page
    guest.goto(f"{link}?PROLIFIC_PID=P-77")
    guest.get_by_role("button", name="I agree, and take part").click()
    expect(guest).to_have_url(re.compile(r"/play/\d+/"))
    rosa.get_by_role("link", name="Monitor").click()
    expect(rosa.locator("#live")).to_contain_text("P-77")
    expect(rosa.locator("#live")).to_contain_text("Playing")
    rosa.set_viewport_size(SMALL)
    assert rosa.evaluate(WIDER) == []
    rosa.set_viewport_size(WIDE)
    guest.on("dialog", lambda dialog: dialog.accept())
    guest.get_by_role("button", name="Give up").click()
    guest.get_by_role("button", name="Continue").click()
    answers = guest.locator(".scale label")
    expect(answers).to_have_count(4)
    guest.set_viewport_size(SMALL)
    tops = answers.evaluate_all("(labels) => labels.map((label) => label.getBoundingClientRect().top)")
    assert all(below - above >= 44 for above, below in pairwise(tops)), "each answer has a line that a finger can hit"
    guest.get_by_label("3: quite").check()
    guest.get_by_role("button", name="Continue").click()
    expect(guest.locator("main")).to_contain_text("a scripted player")
    guest.get_by_role("button", name="Continue to your code").click()
    expect(guest.locator("#code")).to_have_text("C0DE")
    expect(rosa.locator("#live")).to_contain_text("Completed")
    rosa.get_by_role("link", name="Results").click()
    expect(rosa.locator("main")).to_contain_text("1 participant in 1 group")
