"""What a person does at a table with a browser: set it up, wait, say, propose, accept."""

import re
import time

from playwright.sync_api import Page, expect

TURN = re.compile("Your turn")
OURS = re.compile("Your turn|The game is over")


def set_up(page: Page, second_seat: str = "scripted:scripted") -> None:
    """A negotiation with plenty of time, oneself at the first seat."""
    page.goto("/play/new/")
    page.get_by_label("Seat 2").select_option(second_seat)
    page.get_by_text("The table:").click()
    page.get_by_label("Seconds for a move").fill("600")
    page.get_by_role("button", name="Yes: start the game").click()
    page.wait_for_url(re.compile(r"/play/\d+/$"))


def connected(page: Page) -> None:
    """Wait until the socket is open: only then does a move go over it."""
    page.wait_for_function(
        "() => document.getElementById('table')['htmx-internal-data']?.webSocket?.socket?.readyState === 1"
    )


def say(page: Page, text: str) -> None:
    """Say something when it is one's turn, beside a no if something was proposed, and see it in the log."""
    expect(page.locator(".turn")).to_have_text(TURN)
    page.locator("#say").fill(text)
    if (no := page.locator("button[name=action][value=reject]")).count():
        no.click()
    else:
        page.locator("#say").press("Enter")
    expect(page.locator("#log")).to_contain_text(text)


def propose(page: Page) -> None:
    """Propose to keep one of everything, or a price of 1."""
    for field in page.locator(".zone input[type=number]").all():
        field.fill("1")
    page.locator(".zone button[name=action]").click()


def play_to_the_end(page: Page, opening: str, seconds: float) -> None:
    """Talk first, then propose, accept what is offered; until the game is over. Models may take `seconds` to start."""
    connected(page)
    expect(page.locator(".turn")).to_have_text(TURN, timeout=seconds * 1000)
    say(page, opening)
    ends = time.monotonic() + seconds
    while True:
        expect(page.locator(".turn")).to_have_text(OURS, timeout=seconds * 1000)
        if "over" in page.locator(".turn").inner_text():
            return
        assert time.monotonic() < ends, "the game does not end"
        step = page.locator("#part-act input[name=turn]").get_attribute("value")
        accept = page.locator("button[name=action][value=accept]")
        if accept.count():
            accept.click()
        else:
            propose(page)
        expect(page.locator(f"#part-act input[name=turn][value='{step}']")).to_have_count(0)
