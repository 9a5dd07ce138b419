"""Judging in a real browser: the next seat is there before it is asked for; judgments are a layer of the replay."""

import json
import re

import pytest
from playwright.sync_api import expect

from tests.browser.test_journey import fill_scales, fits

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def replay(site):
    return site.seed("judged_match")


def test_the_next_seat_is_there_before_the_first_is_saved(visit, site):
    visitor = visit("anna")
    page = visitor.page
    page.goto(site.seed("judging"))
    expect(page.get_by_text("0 of 4 done")).to_be_visible()
    second = page.locator("#next > article")
    expect(second).to_have_count(1)
    expect(second).to_be_hidden()
    name = second.get_attribute("id")
    page.evaluate("name => { document.getElementById(name).dataset.mark = 'the same element'; }", name)
    fill_scales(page)
    page.get_by_role("button", name="Save and next").click()
    expect(page.get_by_text("1 of 4 done")).to_be_visible()
    shown = page.locator(f"#{name}")
    expect(shown).to_be_visible()
    expect(shown).to_have_attribute("data-mark", "the same element")
    expect(page.locator("#next > article")).to_have_count(1)
    page.set_viewport_size({"width": 360, "height": 740})  # what is refused stands far below the conversation there
    page.locator("#on-screen").get_by_role("button", name="Could not score").click()
    expect(page.get_by_role("alert")).to_contain_text("state briefly why it cannot be scored")
    expect(page.get_by_role("alert")).to_be_in_viewport()
    expect(page.locator("#on-screen [name=reason]")).to_be_focused()
    page.locator("#on-screen").get_by_text("Skip", exact=True).click()
    page.locator("#on-screen").get_by_role("button", name="Skip this target").click()
    expect(page.get_by_role("alert")).to_contain_text("state briefly why you skip it")
    expect(page.get_by_role("alert")).to_be_in_viewport()
    expect(page.locator("#on-screen [name=why]")).to_be_focused()
    visitor.forget("422")
    page.get_by_label("Comment").first.fill("too short")
    page.get_by_role("button", name="Could not score").click()
    expect(page.get_by_text("2 of 4 done")).to_be_visible()
    fill_scales(page)
    page.get_by_role("button", name="Save and next").click()
    expect(page.get_by_text("3 of 4 done")).to_be_visible()


def test_yes_and_no_are_chosen_by_1_and_0_and_the_table_stands_on_the_queues_page(visit, site):
    village = site.seed("village")
    page = visit("anna").page
    page.goto(village["annotate"])
    expect(page.get_by_role("heading", name="Judge Ada")).to_be_visible()
    rows = page.locator("form.judging:visible fieldset[data-scale]")
    expect(rows).to_have_count(3)
    for number, digit in enumerate("101"):
        rows.nth(number).locator("input").first.focus()
        page.keyboard.press(digit)
        expect(rows.nth(number).get_by_role("radio", checked=True)).to_have_value(digit)
    page.get_by_role("button", name="Save and next").click()
    expect(page.get_by_text("1 of 12 done")).to_be_visible()
    expect(page.get_by_role("heading", name="Judge Ben")).to_be_visible()
    expect(page.locator("form.judging:visible fieldset[data-scale]")).to_have_count(2)
    page = visit("rosa").page
    page.goto(village["queue"])
    bar = page.get_by_role("progressbar", name="Recognising deception, surviving")
    table = page.get_by_role("table").filter(has=bar)
    expect(bar).to_be_visible()
    expect(table.get_by_role("row")).to_have_count(6)


def test_a_game_is_labelled_by_keyboard_alone(visit, site):
    """A turn, a word, a relation and a value; the next game is preloaded, and what was saved is opened again."""
    address = site.seed("turns_to_label")["annotate"]
    visitor = visit("anna")
    page = visitor.page
    page.goto(address)
    expect(page.get_by_role("heading", name="Judge the game")).to_be_visible()
    expect(page.locator("#next > article")).to_have_count(1)
    shown = page.locator("[data-annotatable]:visible")
    turns = shown.locator("li[data-turn]")
    turns.first.focus()
    page.keyboard.press("o")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("1")
    page.keyboard.press("Escape")
    page.keyboard.press("m")
    page.keyboard.press("k")
    page.keyboard.press("2")
    labels = json.loads(shown.locator("input[name=labels]").input_value())
    assert [(label["label"], label["turn"]) for label in labels] == [("offer", 0), ("number", 1), ("answers", 1)]
    assert labels[2]["other_turn"] == 0
    fair = page.locator("form.judging:visible fieldset[data-scale] input").first
    fair.focus()
    page.keyboard.press("1")
    page.get_by_role("button", name="Save and next").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("1 of 2 done")).to_be_visible()
    second = page.locator("[data-annotatable]:visible li[data-turn]")
    second.first.focus()
    page.keyboard.press("o")
    sent = page.locator("[data-annotatable]:visible input[name=labels]").input_value()
    assert json.loads(sent) == [{"label": "offer", "turn": 0}], "what was preloaded works as well"
    page.get_by_role("link", name="Review or change your judgments").click()
    page.get_by_role("link", name="Open again").first.click()
    again = json.loads(page.locator("[data-annotatable]:visible input[name=labels]").input_value())
    assert sorted(again, key=str) == sorted(labels, key=str)


def test_judgments_are_a_layer_of_the_replay_that_stays_from_step_to_step(visit, replay):
    page = visit("admin").page
    page.goto(replay)
    reason = page.get_by_text("because of mutual_benefit").first
    expect(reason).to_have_count(0)
    page.locator("summary", has_text="Judgments").click()
    expect(reason).to_be_visible()
    page.get_by_role("button", name="One step back").click()
    expect(page.locator("output")).to_have_text("game step 1 of 2")
    expect(reason).to_be_visible()
    page.locator("summary", has_text="Judgments").click()
    expect(reason).to_be_hidden()


def test_what_swaps_elsewhere_leaves_the_log_where_it_is_read(visit, replay):
    page = visit("admin").page
    page.goto(replay)
    expect(page.locator("#running")).to_contain_text(re.compile("run|queued"))
    log = page.locator("#replay .log")
    log.evaluate("log => { log.style.height = '3rem'; log.scrollTop = 0; }")
    page.evaluate("htmx.ajax('GET', document.getElementById('running').getAttribute('hx-get'), '#running')")
    page.evaluate("new Promise(done => document.body.addEventListener('htmx:afterSettle', done, {once: true}))")
    assert log.evaluate("log => log.scrollTop") == 0
    assert log.evaluate("log => log.scrollHeight > log.clientHeight")


def test_signing_out_in_another_tab_is_reported_and_keeps_the_input(visit, site):
    visitor = visit("anna")
    page = visitor.page
    page.goto(site.seed("judging"))
    fill_scales(page)
    other = visitor.context.new_page()
    other.goto("/accounts/logout/")
    other.locator("main").get_by_role("button", name="Sign out").click()
    expect(other.get_by_role("heading", name="Sign in")).to_be_visible()
    entered = page.locator("input[type=radio]:checked").count()
    page.get_by_role("button", name="Save and next").click()
    expect(page.locator(".request-problem")).to_contain_text("You are signed out")
    assert page.get_by_role("link", name="Sign in").get_attribute("href") == "/accounts/login/"
    assert page.locator("input[type=radio]:checked").count() == entered > 0
    visitor.forget("401")


@pytest.fixture(scope="module")
def compared(site):
    return site.seed("compared")


@pytest.mark.parametrize(
    "who, name", [("rosa", "dataset"), ("rosa", "queue"), ("anna", "annotate"), ("anna", "own"), ("pia", "rate")]
)
def test_pages_of_judgments_fit_a_small_screen(visit, compared, who, name):
    page = visit(who).page
    page.goto(compared[name])
    page.evaluate("document.querySelectorAll('main details').forEach((each) => { each.open = true; })")
    fits(page)


def test_authors_of_an_import_stand_beside_people(visit, compared):
    page = visit("rosa").page
    page.goto(compared["dataset"])
    table = page.get_by_role("table").first
    for name, coverage in (("gpt-4", "12 of 12"), ("rater 7", "6 of 12"), ("annotator 1", "12 of 12")):
        expect(table.get_by_role("row", name=name)).to_contain_text(coverage)


def test_a_label_type_shows_the_fields_of_its_kind(visit, site):
    page = visit("rosa").page
    page.goto("/judgments/codebooks/new/")
    low, options, kind = (page.locator(f"[name=labels-0-{name}]") for name in ("low", "options", "kind"))
    expect(low).to_be_hidden()
    kind.select_option("scale")
    expect(low).to_be_visible()
    expect(options).to_be_hidden()
    kind.select_option("one_of")
    expect(low).to_be_hidden()
    expect(options).to_be_visible()


def test_revealing_without_rating_is_confirmed(visit, compared):
    page = visit("pia").page
    page.goto(compared["rate"])
    page.get_by_role("button", name="Show me without rating").click()
    expect(page.get_by_text("No guess was recorded")).to_be_visible()
    expect(page.locator(".reveals")).to_contain_text("scripted")
