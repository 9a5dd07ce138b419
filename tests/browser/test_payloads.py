"""Text from people, models and files stays text, wherever it is shown: nothing of it runs or asks the site for more."""

import random
import re
from urllib.parse import urlencode, urlsplit

import pytest
from playwright.sync_api import expect

from tests.browser.at_table import connected
from tests.browser.payloads import PAYLOADS
from webapp.core.visible import HIDDEN, visible

pytestmark = pytest.mark.slow
AT_ONCE = 3  # payloads of one message or form: three times as quick
SIGNS = """() => ({
  elements: [...document.querySelectorAll("[data-canary], [onerror], [onload], [onfocus], [ontoggle], base, iframe")]
    .map((element) => element.outerHTML.slice(0, 120)),
  ran: window.canary ?? null,
  hidden: [document.title, document.body.innerText, ...[...document.querySelectorAll("[aria-label], [title]")]
    .flatMap((element) => [element.getAttribute("aria-label"), element.title])]
    .filter((text) => /[\\u00ad\\u200b\\u2028-\\u202e\\u2066-\\u2069\\ufeff]/.test(text ?? "")),
})"""
QUIET = {"elements": [], "ran": None, "hidden": []}


def shown(text):
    """The payloads whose number occurs in a text."""
    return {number for number in range(len(PAYLOADS)) if re.search(rf"\bp{number:02d} ", text)}


def check(visitor):
    assert visitor.page.evaluate(SIGNS) == QUIET, visitor.page.url
    assert [address for address in visitor.requested if "canary" in "".join(urlsplit(address)[1:3])] == []


@pytest.fixture(scope="module")
def planted(site):
    return site.seed("payloads")


def test_stored_texts_do_not_run_on_any_page(visit, planted):
    visitor = visit("rosa")
    visitor.page.on("dialog", lambda dialog: pytest.fail(f"a dialog: {dialog.message}"))
    for address, at_least in planted["pages"]:
        answer = visitor.page.goto(address)
        assert answer is not None
        assert answer.status == 200, address
        visitor.page.mouse.move(300, 300)
        check(visitor)
        assert len(shown(visitor.page.locator("body").inner_text())) >= at_least, address


def test_names_of_runs_do_not_run_in_curves_and_menus(visit, planted):
    visitor = visit("rosa")
    page = visitor.page
    for run in planted["runs"]:
        page.goto(f"/runs/{run}/")
        expect(page.locator("#curves canvas").first).to_be_visible()
        check(visitor)
    page.goto("/runs/compare/?" + "&".join(f"run={run}" for run in planted["runs"][:2]))
    expect(page.locator("#curves canvas").first).to_be_visible()
    check(visitor)
    page.locator("#running summary").click()
    expect(page.locator("#running a").first).to_be_visible()
    check(visitor)


def test_scripts_show_hidden_characters_as_pages_do(visit, planted):
    """Every character alone and between letters and emoji, and texts drawn by chance, by the rule of each language."""
    page = visit("rosa").page
    page.goto(f"/runs/{planted['runs'][0]}/")
    every = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    hidden = [character for character in every if HIDDEN.match(character)]
    shown = page.evaluate("(texts) => texts.filter((text) => visible(text) !== text)", every)
    assert shown == hidden
    draw = random.Random(0)
    letters = [*hidden[:40], "\u200d", "\ufe0f", "\u20e3", "👩", "👧", "❤", "🏽", "™", "a", "é", "1", " "]
    texts = ["".join(draw.choices(letters, k=12)) for _ in range(3000)]
    assert page.evaluate("(texts) => texts.map(visible)", texts) == [visible(text) for text in texts]


def test_what_is_said_at_the_table_stays_text_on_both_sides(visit, planted):
    seats = [visit("pia"), visit("ben")]
    for visitor in seats:
        visitor.page.goto(f"/play/{planted['match']}/")
        connected(visitor.page)
        check(visitor)
    for first in range(0, len(PAYLOADS), AT_ONCE):
        payloads = PAYLOADS[first : first + AT_ONCE]
        speaker = next(visitor for visitor in seats if visitor.page.locator("#say").count())
        speaker.page.locator("#say").fill("\n".join(payloads))
        speaker.page.locator(".say-button").click()
        for visitor in seats:
            expect(visitor.page.locator("#log")).to_contain_text(payloads[-1][:4])
        other = seats[1 - seats.index(speaker)]
        expect(other.page.locator("#say")).to_be_visible()
        check(seats[0])
        check(seats[1])
    for visitor in seats:
        visitor.page.reload()
        check(visitor)
        assert shown(visitor.page.locator("#log").inner_text()) == set(range(len(PAYLOADS)))


def test_names_that_guests_choose_stay_text(visit, planted):
    host = visit("rosa")
    for link, name in zip(planted["links"], PAYLOADS, strict=False):
        guest = visit()
        guest.page.goto(link)
        guest.page.get_by_label("Your name at the table").fill(name[:60])
        guest.page.get_by_role("button", name="Sit down").click()
        guest.page.get_by_role("button", name="Yes, it may be used").click()
        expect(guest.page.locator("header.bar")).to_contain_text(name[:3])
        check(guest)
        guest.context.close()
    host.page.goto("/play/")
    check(host)


def test_what_is_typed_into_forms_comes_back_as_text(visit):
    visitor = visit("rosa")
    page = visitor.page
    for first in range(0, len(PAYLOADS), AT_ONCE):
        texts = PAYLOADS[first : first + AT_ONCE]
        together = " ".join(texts)
        page.goto("/datasets/import/")
        page.get_by_label("Name").fill(texts[0])
        page.get_by_label("Source").fill(together)
        name = f"{texts[-1].replace('/', '_')[:80]}.json"
        file = {"name": name, "mimeType": "application/json", "buffer": together.encode()}
        page.get_by_label("File").set_input_files(file)
        page.get_by_role("button", name="Read it").click()
        expect(page.get_by_role("alert").first).to_be_visible()
        check(visitor)
        page.goto("/datasets/?" + urlencode({"q": together}))
        check(visitor)
    visitor.forget("400")
