"""An annotator's day in a real browser, by keyboard alone; drafts, dead connections, and pages on small screens."""

import json

import pytest
from playwright.sync_api import expect

from tests.browser.test_journey import fits
from tests.browser.test_pages import AXE, CHECK, CONTRAST, SMALL, TAGS, WIDE

pytestmark = pytest.mark.slow
QUICK = 100
"""Milliseconds from Save to the next target on the screen."""


@pytest.fixture(scope="module")
def day(site):
    return site.seed("annotators_day")


def press(page, *keys):
    for key in keys:
        page.keyboard.press(key)


def labels(page):
    return json.loads(page.locator("#on-screen [name=labels]").input_value())


def said(page):
    return page.locator("#on-screen .label-said")


def done(page, text):
    expect(page.locator("#progress")).to_contain_text(text)
    expect(page.locator("#unsaved article")).to_have_count(0)


def preloaded(page):
    expect(page.locator("#next article")).to_have_count(1)


def accessible(page):
    page.evaluate(AXE.read_text())
    for scheme, rules in (("light", TAGS), ("dark", CONTRAST)):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        assert page.evaluate(CHECK, rules) == [], scheme
    page.emulate_media(color_scheme="light")


def test_a_whole_day_by_keyboard_alone(visit, site, day):
    page = visit("anna", viewport=WIDE).page
    page.clock.install()
    page.goto("/judgments/")
    page.get_by_role("link", name="Judge: 4 left").first.focus()
    press(page, "Enter")
    expect(page.get_by_text("0 of 4 done")).to_be_visible()
    preloaded(page)
    accessible(page)

    # values of a turn and of words, a relation, painting, undo and redo over answers and labels
    press(page, "Shift+t", "t", "2")
    assert labels(page) == [{"label": "tone", "turn": 0, "value": 2}]
    press(page, "j", "Enter", "c", "1")  # "Then" is a claim about pens
    claim = {"label": "claim", "turn": 1, "start": 0, "end": 4}
    about = {"label": "about", "turn": 1, "start": 0, "end": 4, "value": "pens"}
    assert labels(page)[1:] == [claim, about]
    press(page, "h")  # the label has the focus: another type, in place, which asks for no detail
    assert labels(page)[1:] == [{**claim, "label": "threat"}]
    press(page, "Control+z")
    assert labels(page)[1:] == [claim, about]
    press(page, "Escape", "Shift+t", "m", "k", "a")
    answers = {"label": "answers", "turn": 1, "other_turn": 0}
    assert labels(page)[3:] == [answers]
    press(page, "h", "Enter", "Enter", "ArrowRight", "Enter", "Escape", "Escape")  # painted
    painted = [
        {"label": "threat", "turn": 0, "start": 0, "end": 3},
        {"label": "threat", "turn": 0, "start": 4, "end": 7},
    ]
    assert labels(page)[4:] == painted
    press(page, "Shift+q", "4")
    expect(page.locator("#on-screen [name=value-fair]:checked")).to_have_value("4")
    press(page, "Control+z", "Control+z")
    expect(page.locator("#on-screen [name=value-fair]:checked")).to_have_count(0)
    assert labels(page)[4:] == painted[:1]
    press(page, "Control+Shift+z", "Control+y")
    expect(page.locator("#on-screen [name=value-fair]:checked")).to_have_value("4")
    assert labels(page)[4:] == painted
    page.locator("#on-screen").get_by_label("Add a turn to the ranking").focus()
    press(page, "ArrowDown", "ArrowDown")  # a closed list changes with the arrows
    expect(page.locator("#on-screen [name=value-best]")).to_have_value("1, 2")
    page.get_by_role("button", name="Turn 2 earlier").focus()
    press(page, "Enter")
    expect(page.locator("#on-screen [name=value-best]")).to_have_value("2, 1")
    press(page, "Shift+g")
    expect(page.get_by_role("dialog")).to_contain_text("Mark every claim.")
    press(page, "Shift+g", "Shift+u", "Control+Enter")
    done(page, "1 of 4 done")

    # suggestions: one accepted, one corrected, one dismissed, one of a question accepted
    preloaded(page)
    press(page, "Shift+t", "Shift+j", "Shift+a", "1", "Shift+j")
    assert [(each["label"], "suggestion" in each) for each in labels(page)] == [("claim", True), ("about", False)]
    press(page, "Shift+d")
    expect(page.locator("#on-screen .label-button.is-suggested")).to_have_count(1)
    press(page, "Shift+j", "t", "1")  # corrected: the suggestion says 3
    expect(page.locator("#on-screen .label-button.is-suggested")).to_have_count(0)
    page.locator("#on-screen [data-accept]").focus()
    press(page, "Enter")
    expect(page.locator("#on-screen [name=value-fair]:checked")).to_have_value("4")
    page.clock.run_for(40_000)
    press(page, "Shift+t")
    page.clock.run_for(40_000)
    expect(page.locator(".break-note")).to_contain_text("Take a break")
    page.get_by_role("button", name="Go on").focus()
    press(page, "Enter")
    expect(page.locator(".break-note")).to_have_count(0)
    accessible(page)
    press(page, "Control+Enter")
    done(page, "2 of 4 done")

    # put aside with a reason, then the last one, and the change of an earlier judgment
    press(page, "Shift+s")
    page.keyboard.type("not my language")
    press(page, "Enter")
    done(page, "2 of 3 done")
    press(page, "Shift+q", "1", "Control+Enter")
    expect(page.get_by_text("Nothing is left for you to judge.")).to_be_visible()
    page.goto(day["annotate"] + "?earlier=1")
    press(page, "Shift+q", "5", "Control+Enter")
    expect(page.get_by_role("heading", name="Your judgments")).to_be_visible()

    first, second, third, last = site.seed("judged_day", day["queue"])
    assert [each["judgments"] for each in (first, second, third, last)] == [1, 1, 0, 1]
    assert first["unsure"]
    assert (first["shown"], second["shown"]) == (False, True)
    assert ["tone", 2.0, False] in first["labels"]
    assert ["about", "pens", False] in first["labels"]
    assert ["best", [1, 0], False] in first["labels"]
    assert ["claim", None, True] in second["labels"]
    assert ["tone", 1.0, True] in second["labels"]
    assert "threat" not in [name for name, _, _ in second["labels"]]
    assert ["fair", 4.0, True] in second["labels"]
    assert third["skipped"] == "not my language"
    assert last["labels"] == [["fair", 5.0, False]]
    assert last["changes"] == 1


def test_a_draft_survives_a_reload_and_a_dead_connection_and_is_saved_once(visit, site):
    address = site.seed("turns_to_label", "drafts")["annotate"]
    visitor = visit("anna", viewport=WIDE)
    page = visitor.page
    page.goto(address)
    preloaded(page)
    press(page, "Shift+t", "o", "Shift+q", "1")
    page.get_by_label("Comment").first.fill("in between")
    page.reload()
    expect(page.locator(".draft-note")).to_contain_text("Restored your draft")
    assert labels(page) == [{"label": "offer", "turn": 0}]
    expect(page.get_by_label("Comment").first).to_have_value("in between")
    preloaded(page)
    visitor.context.set_offline(True)
    press(page, "Shift+t", "Control+Enter")
    problem = page.locator(".request-problem")
    expect(problem).to_contain_text("The site does not answer. What you entered is kept on this device.")
    assert labels(page) == [{"label": "offer", "turn": 0}]
    visitor.context.set_offline(False)
    visitor.forget("ERR_INTERNET_DISCONNECTED")
    press(page, "Enter", "Enter")  # twice: the button has the focus, then the next target's first turn
    done(page, "1 of 2 done")
    times = page.evaluate("performance.getEntriesByName('judging:next').map(({ duration }) => duration)")
    assert min(times) <= QUICK
    assert page.evaluate("Object.keys(localStorage).filter((name) => name.startsWith('draft:'))") == []
    press(page, "Shift+t", "o")
    page.reload()
    page.get_by_role("button", name="Discard it").click()
    assert labels(page) == []
    press(page, "Control+z")
    assert labels(page) == [{"label": "offer", "turn": 0}], "discarding is undone, too"


def test_a_refused_answer_comes_back_with_its_reason_and_what_was_entered(visit, site):
    address = site.seed("judging")
    visitor = visit("anna", viewport=WIDE)
    page = visitor.page
    page.goto(address)
    preloaded(page)
    page.locator("#on-screen [name=reason]").fill("kept")
    page.locator("#on-screen form.judging").evaluate("form => { form.noValidate = true; }")
    press(page, "Control+Enter")
    expect(page.locator("#on-screen")).to_contain_text("This field is required")
    expect(page.locator("#on-screen [name=reason]")).to_have_value("kept")
    expect(page.locator("#progress")).to_contain_text("0 of 4 done")
    visitor.forget("422")


def test_a_game_that_is_withdrawn_meanwhile_says_why_it_was_not_saved(visit, site):
    page = visit("anna", viewport=SMALL).page
    page.goto(site.seed("judging"))
    preloaded(page)
    article = page.locator("#on-screen article")
    target = article.get_attribute("data-target")
    site.seed("refuse_consent", target)
    page.locator("#on-screen [name=reason]").fill("too late")
    page.get_by_role("button", name="Could not score").click()
    note = page.locator("#judging-notes").get_by_role("alert")
    expect(note).to_contain_text("was withdrawn. Your answer was not stored.")
    expect(page.locator("#progress")).to_contain_text("0 of 2 done")
    expect(article).not_to_have_attribute("data-target", target)
    accessible(page)
    fits(page)
    for _ in range(3):  # the other seat of the game may have been loaded before
        if "1 of 2" in page.locator("#progress").inner_text():
            break
        preloaded(page)
        page.locator("#on-screen [name=reason]").fill("no words")
        page.get_by_role("button", name="Could not score").click()
        expect(page.locator("#unsaved article")).to_have_count(0)
    expect(note).to_have_count(0)


def test_keys_are_chosen_by_pressing_them_and_a_clash_is_reported_at_once(visit):
    visitor = visit("anna", viewport=WIDE)
    page = visitor.page
    page.goto("/judgments/annotating/")
    field = page.get_by_label("The next turn", exact=True)
    field.fill("")
    field.press("k")
    expect(field).to_have_value("k")
    expect(page.locator(".key-clash")).to_contain_text("“The previous turn” has it")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("has it. Nothing was saved.")
    visitor.forget("400 (Bad Request)")
    field.fill("")
    field.press("n")
    expect(page.locator(".key-clash")).to_have_text("")
    accessible(page)


@pytest.mark.parametrize("viewport", [SMALL, {"width": 800, "height": 740}, WIDE])
def test_the_pages_fit_the_screen(visit, day, viewport):
    page = visit("anna", viewport=viewport).page
    for address in (day["annotate"] + "?earlier=1", "/judgments/annotating/"):
        page.goto(address)
        fits(page)
