"""Judging in a real browser: the next seat is there before it is asked for; judgments are a layer of the replay."""

import pytest
from playwright.sync_api import expect

from tests.browser.test_journey import fill_scales

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def replay(site):
    return site.seed("judged_match")


def test_the_next_seat_is_there_before_the_first_is_saved(visit, site):
    visitor = visit("anna")
    page = visitor.page
    page.goto(site.seed("judging"))
    expect(page.get_by_text("0 of 4 done")).to_be_visible()
    second = page.locator("#next > .two")
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
    expect(page.locator("#next > .two")).to_have_count(1)
    page.get_by_role("button", name="Could not score").click()
    expect(page.get_by_role("alert")).to_contain_text("say in a word")
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
    table = page.get_by_role("table").first
    expect(table.get_by_role("progressbar", name="Recognising deception, surviving")).to_be_visible()
    expect(table.get_by_role("row")).to_have_count(6)


def test_judgments_are_a_layer_of_the_replay_that_stays_from_step_to_step(visit, replay):
    page = visit("admin").page
    page.goto(replay)
    reason = page.get_by_text("because of mutual_benefit").first
    expect(reason).to_have_count(0)
    page.locator("summary", has_text="Judgments").click()
    expect(reason).to_be_visible()
    page.get_by_role("button", name="One step back").click()
    expect(page.locator("output")).to_have_text("step 1 of 2")
    expect(reason).to_be_visible()
    page.locator("summary", has_text="Judgments").click()
    expect(reason).to_be_hidden()


def test_what_swaps_elsewhere_leaves_the_log_where_it_is_read(visit, replay):
    page = visit("admin").page
    page.goto(replay)
    expect(page.locator("#running")).to_contain_text("run")
    log = page.locator("#replay .log")
    log.evaluate("log => { log.style.height = '3rem'; log.scrollTop = 0; }")
    page.evaluate("htmx.ajax('GET', document.getElementById('running').getAttribute('hx-get'), '#running')")
    page.evaluate("new Promise(done => document.body.addEventListener('htmx:afterSettle', done, {once: true}))")
    assert log.evaluate("log => log.scrollTop") == 0
    assert log.evaluate("log => log.scrollHeight > log.clientHeight")


def test_who_signed_out_in_another_tab_is_told_and_keeps_what_was_entered(visit, site):
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
