"""At the table with a browser: a game by keyboard alone, and nothing lost by reloads, second tabs and dead networks."""

import re
from itertools import pairwise
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect

from tests.browser.at_table import OURS, TURN, connected, say, set_up
from tests.browser.test_pages import LOOK, SMALL, WIDE
from tests.browser.visitor import Visitor
from tests.browser.wire import wire

pytestmark = pytest.mark.slow


def rows(page: Page) -> list[int]:
    return page.eval_on_selector_all("#log > li", "lines => lines.map((line) => Number(line.dataset.number))")


def speeches(page: Page) -> list[str]:
    return page.locator("#log > li").all_inner_texts()


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def tab_to(page: Page, what: str, most: int = 80) -> None:
    """Press Tab until the focused element is the one that a selector names."""
    page.wait_for_load_state("domcontentloaded")  # a page that has just begun has nothing that could be focused
    for _ in range(most):
        press(page, "Tab")
        if page.evaluate("what => document.activeElement.matches(what)", what):
            return
    pytest.fail(f"{what} cannot be reached by keyboard on {page.url}")


def test_a_whole_negotiation_by_keyboard(visit):
    page = visit("pia").page
    page.goto("/play/")
    press(page, "Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    press(page, "Enter")
    tab_to(page, "a[href='/play/new/']")
    press(page, "Enter")
    page.wait_for_url("**/play/new/")
    tab_to(page, "button[name=consent][value=yes]")
    press(page, "Enter")
    page.wait_for_url(re.compile(r"/play/\d+/$"))
    expect(page.locator(".turn")).to_have_text(TURN)
    tab_to(page, "#say")
    page.keyboard.type("Hello, let us share fairly.")
    press(page, "Enter")
    expect(page.locator("#log")).to_contain_text("let us share fairly")
    for _ in range(20):
        expect(page.locator(".turn")).to_have_text(OURS)
        if "over" in page.locator(".turn").inner_text():
            break
        count = len(rows(page))
        if page.locator("button[name=action][value=accept]").count():
            tab_to(page, "button[name=action][value=accept]")
        else:
            tab_to(page, "#say")
            page.keyboard.type("What would you propose?")
        press(page, "Enter")
        page.wait_for_function("count => document.querySelectorAll('#log > li').length > count", arg=count)
    expect(page.locator(".turn")).to_contain_text("The game is over")
    tab_to(page, "a[href^='/judgments/rate/']")
    press(page, "Enter")
    page.wait_for_url("**/judgments/rate/*/")
    rate_by_keyboard(page)


def rate_by_keyboard(page: Page) -> None:
    names = "all => all.map((row) => row.querySelector('input').name)"
    first, *others = page.eval_on_selector_all("fieldset.question-row", names)
    tab_to(page, f"input[name='{first}']")
    press(page, "ArrowRight")
    tab_to(page, "form.judging summary")
    press(page, "Enter")
    for name in others:
        tab_to(page, f"input[name='{name}']")
        press(page, "ArrowRight")
    tab_to(page, "form.judging button:not([name])")
    press(page, "Enter")
    expect(page.locator("main")).to_contain_text("Who sat at the table")
    expect(page.locator("main")).to_contain_text("Scripted", ignore_case=True)


def test_a_pause_is_said_where_one_moves(site, visit):
    page = visit("pia").page
    page.goto(site.seed("bargain", "items"))
    expect(page.locator(".turn")).to_have_text(TURN)
    page.locator(".hosting summary").click()
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("#part-act").get_by_text("The game is paused")).to_be_visible()
    page.locator(".hosting summary").click()
    page.get_by_role("button", name="Resume").click()
    expect(page.locator(".turn")).to_have_text(TURN)


def test_enter_sends_what_one_is_writing_in(site, visit):
    page = visit("pia").page
    page.goto(site.seed("bargain", "items"))
    expect(page.locator(".turn")).to_have_text(TURN)
    page.locator("#say").fill("A fair share for both.")
    fields = page.locator("#part-stage input[type=number]")
    for number in range(fields.count()):
        fields.nth(number).fill("1")
    fields.last.press("Enter")
    expect(page.locator("#log")).to_contain_text("A fair share for both.")
    expect(page.locator("#log")).to_contain_text("and keep food × 1")


def test_a_tray_of_long_names_fits_a_phone(site, visit):
    page = visit("pia", viewport=SMALL).page
    page.goto(site.seed("bargain", "long names"))
    connected(page)
    expect(page.locator(".tray thead")).to_contain_text("Bartholomew")
    expect(page.locator(".tray tbody")).to_contain_text("binoculars")
    assert page.evaluate(LOOK)["scroll"] == []
    page.get_by_role("button", name="Propose this split").click()
    expect(page.locator("#log")).to_contain_text("keep ornaments × 2")
    assert page.evaluate(LOOK)["scroll"] == []


def test_a_tray_says_what_one_would_have(site, visit):
    """Food is worth 5, water 4 and firewood 3, three units of each; no deal is worth 5."""
    page = visit("pia").page
    page.goto(site.seed("bargain", "items"))
    status, fields = page.locator(".tray-sum"), page.locator(".tray input[type=number]")
    expect(status).to_have_text(
        "You would have 24 of 36 points; Ben gets food × 1, water × 1, firewood × 1. No deal: 5."
    )
    for _ in range(3):  # there are no more than three
        page.get_by_role("button", name="One food more").click()
    expect(fields.first).to_have_value("3")
    expect(status).to_contain_text("You would have 29 of 36 points; Ben gets water × 1, firewood × 1.")
    page.get_by_role("button", name="One firewood less").click()
    expect(status).to_contain_text("You would have 26 of 36 points; Ben gets water × 1, firewood × 2.")
    expect(page.locator(".tray-gets")).to_have_text(["0", "1", "2"])
    for number in range(3):
        fields.nth(number).fill("0")
    expect(status).to_contain_text("You would have 0 of 36 points; Ben gets food × 3, water × 3, firewood × 3.")
    expect(status).to_contain_text("No deal: 5, which is more.")


def test_a_price_is_compared_with_ones_target(site, visit):
    """The buyer hopes for 180 and begins with the listing price, 300."""
    page = visit("pia").page
    page.goto(site.seed("bargain", "price"))
    status, slider = page.locator(".price-sum"), page.get_by_role("slider", name="Your price")
    expect(status).to_have_text("At 300: short of your target by 120.")
    page.locator("#price-value").fill("150")
    expect(status).to_have_text("At 150: better than your target by 30.")
    expect(slider).to_have_value("150")
    slider.press("ArrowRight")
    expect(page.locator("#price-value")).to_have_value("151")
    page.locator("#price-value").fill("180")
    expect(status).to_have_text("At 180: your target.")
    page.locator(".price button").click()
    expect(page.locator("#log")).to_contain_text("You offer to buy for 180 (your target)")


FOCUSED = """() => {
  const element = document.activeElement;
  const { left, top, right, bottom, width, height } = element.getBoundingClientRect();
  const at = document.elementFromPoint((left + right) / 2, (Math.max(top, 0) + Math.min(bottom, innerHeight)) / 2);
  return {
    name: element.outerHTML.slice(0, 100), left: left + scrollX, top: top + scrollY, bottom: bottom + scrollY,
    seen: element.checkVisibility() && width > 1 && height > 1 && element.contains(at), body: element === document.body,
  };
}"""


@pytest.mark.parametrize("size", [SMALL, WIDE], ids=["small", "wide"])
def test_tab_follows_the_order_of_reading(visit, size):
    page = visit("pia", viewport=size).page
    set_up(page)
    expect(page.locator(".turn")).to_have_text(TURN)
    page.evaluate("document.activeElement.blur()")
    stops = []
    for _ in range(80):
        press(page, "Tab")
        stop = page.evaluate(FOCUSED)
        if stop["body"]:
            break
        stops.append(stop)
    assert [stop["name"] for stop in stops if not stop["seen"]] == [], "what cannot be seen has the focus"
    names = " ".join(stop["name"] for stop in stops)
    assert names.index('id="say"') < names.index("Consent and stored data")
    if size == SMALL:  # one column: each stop is below the last, or to the right of it in the same line
        for above, below in pairwise(stops):
            beside = below["top"] < above["bottom"] and below["left"] > above["left"]
            assert beside or below["top"] >= above["top"], (above["name"], below["name"])
    else:  # the column of what lies on the table, that of the conversation, and what one rarely needs below
        columns = [stop["left"] for stop in stops if stop["top"] > 100]
        assert names.index("propose.") < names.index('id="say"') < names.index("Rules")
        assert columns[0] <= min(columns) + 20, "the first stop is in the first column"


def two_people(host: Visitor, guest: Visitor) -> tuple[Visitor, Visitor]:
    """Seat both at one table; return who begins and who waits."""
    set_up(host.page, "open")
    guest.page.goto(urlsplit(host.page.url).path)
    guest.page.get_by_role("button", name="Sit down").click()
    guest.page.get_by_role("button", name="Yes, it may be used").click()
    for page in (host.page, guest.page):
        connected(page)
    expect(host.page.locator(".turn")).to_have_text(re.compile("Your turn|is thinking"))
    return (host, guest) if host.page.locator("#say").count() else (guest, host)


def test_reload_and_second_tab_show_the_same(visit):
    mover, waiter = two_people(visit("pia"), visit("ben"))
    page = mover.page
    say(page, "first words")
    say(waiter.page, "an answer")
    expect(page.locator(".turn")).to_have_text(TURN)
    before = speeches(page)
    page.locator("#say").fill("half a sentence")
    page.reload()
    assert speeches(page) == before
    expect(page.locator("#say")).to_have_value("half a sentence")

    second = mover.context.new_page()
    second.goto(page.url)
    connected(second)
    connected(page)
    assert speeches(second) == before
    say(second, "from the second tab")
    expect(page.locator("#log")).to_contain_text("from the second tab")
    say(waiter.page, "another answer")
    for tab in (page, second):
        expect(tab.locator(".turn")).to_have_text(TURN)
    assert speeches(page) == speeches(second)
    assert rows(page) == sorted(set(rows(page)))


def test_a_lost_connection_loses_nothing(visit, site):
    with wire(site.port) as line:
        pia, ben = visit("pia", address=line.address), visit("ben")
        mover, waiter = two_people(pia, ben)
        say(mover.page, "before the storm")
        say(waiter.page, "I hear you")
        expect(pia.page.locator("#log")).to_contain_text("I hear you")

        line.cut()
        expect(pia.page.locator("#connection")).to_contain_text("connection is lost")
        shown = rows(pia.page)
        if mover is ben:
            say(ben.page, "said while you were away")
        line.mend()
        expect(pia.page.locator("#connection")).to_have_text("", timeout=60_000)
        if mover is pia:
            say(pia.page, "said after the storm")
        for page in (pia.page, ben.page):
            expect(page.locator("#log")).to_contain_text(re.compile("while you were away|after the storm"))
        assert rows(pia.page)[: len(shown)] == shown
        assert common_speeches(pia.page) == common_speeches(ben.page)
        pia.forget("WebSocket connection", "ERR_", "[object Event]")  # the browser, and htmx about the same event


def common_speeches(page: Page) -> list[str]:
    """The log without what differs by reader: the mark of own lines, and the button that answers others'."""
    return [re.sub(r"\s*Reply\b", "", line.replace(" (you)", "")) for line in speeches(page)]


def test_a_reply_begins_with_a_name_and_whoever_is_named_sees_it(visit):
    mover, waiter = two_people(visit("pia"), visit("ben"))
    say(mover.page, "what do you need?")
    expect(waiter.page.locator("#log")).to_contain_text("what do you need?")
    (line,) = [row for row in waiter.page.locator("#log > li").all() if "what do you need?" in row.inner_text()]
    name = line.locator(".author").inner_text().split("\n")[0].removesuffix("Reply").strip()
    waiter.page.get_by_role("button", name=f"Reply to {name}").click()
    expect(waiter.page.locator("#say")).to_be_focused()
    expect(waiter.page.locator("#say")).to_have_value(f"{name}, ")
    expect(mover.page.get_by_role("button", name="Reply")).to_have_count(0)
    waiter.page.keyboard.type("water")
    waiter.page.keyboard.press("Enter")
    expect(mover.page.locator(".mentioned")).to_contain_text(f"{name}, water")
    expect(waiter.page.locator(".mentioned")).to_have_count(0)


def test_what_is_sent_without_a_socket_arrives_as_a_form(visit, site):
    visitor = visit("pia")
    visitor.context.route_web_socket(
        re.compile("/ws/"), lambda socket: socket.close(code=1008, reason="no sockets here")
    )
    page = visitor.page
    set_up(page)
    expect(page.locator("#connection")).to_contain_text("Reload the page")
    expect(page.locator(".turn")).to_have_text(re.compile("Your turn|is thinking"))
    for _ in range(20):
        if page.locator("#say").count():
            break
        page.reload()
    page.locator("#say").fill("by form")
    page.locator(".say-button").click()
    expect(page.locator("#log")).to_contain_text("by form")
    assert page.locator("#refusal").inner_text() == ""
    visitor.forget("WebSocket")


def test_two_seats_see_their_own_cards_only(visit):
    pia, ben = visit("pia"), visit("ben")
    two_people(pia, ben)
    cards: list[str] = []
    for visitor in (pia, ben):
        expect(visitor.page.locator(".turn")).to_have_text(re.compile("Your turn|is thinking"))
        cards.append(visitor.page.locator("details.card").inner_text())
    assert cards[0] != cards[1]
    for seat, other in ((0, 1), (1, 0)):
        page = (pia, ben)[seat].page
        secret = next(line for line in cards[other].splitlines() if line not in cards[seat] and len(line) > 12)
        assert secret not in page.content()
