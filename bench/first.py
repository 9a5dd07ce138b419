"""How far it is to a first move: taps and seconds from the address, and from a last move to the next game.

Chromium shows the site at 390 by 844 CSS pixels with touch. The whole site runs (`python -m tools.up --demo`) in a
temporary folder, without models, so that the opponent is a scripted player. A visit begins with an empty browser. Its
seconds include the opponent's time where it begins; fields of the sign-up are filled at once, as by a password manager.
The last move of a game is to give up. Fails if a page does not show what is pressed next within `PATIENCE_S`.
"""

from __future__ import annotations

import statistics
import time
from argparse import Namespace
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from bench import vitals
from bench.start import installed, site

SCREEN = {"width": 390, "height": 844}
GAMES = ("tic_tac_toe", "connect_four", "kuhn_poker")
FIRST_LIMITS, NEXT_LIMIT = (3, 20.0), 2
PATIENCE_S = 30.0
PASSWORD = "seven green herons"  # noqa: S105 (of an account that a temporary installation forgets)


class Visit:
    """One person with an empty browser: counts taps from the address on."""

    def __init__(self, browser: Any, address: str) -> None:
        context = browser.new_context(viewport=SCREEN, has_touch=True, is_mobile=True)
        self.page = context.new_page()
        self.page.set_default_timeout(1000 * PATIENCE_S)
        self.page.on("dialog", lambda dialog: dialog.accept())
        self.began, self.taps = time.perf_counter(), 0
        self.page.goto(address)

    def tap(self, selector: str) -> None:
        """Tap the first visible element; waits for it."""
        self.page.locator(selector).locator("visible=true").first.tap()
        self.taps += 1

    def since(self) -> dict[str, float]:
        """Return taps and seconds since the last call, or since the address was opened."""
        now = time.perf_counter()
        spent = {"taps": self.taps, "seconds": round(now - self.began, 2)}
        self.began, self.taps = now, 0
        return spent

    def play(self, game: str) -> dict[str, float]:
        """Sit down, agree, and make the first move that is offered."""
        self.tap(f'form[action="/play/now/{game}/"] button')
        self.tap("button[name=consent][value=yes]")
        return self.move()

    def move(self) -> dict[str, float]:
        """Make the first move that is offered; wait until it is made."""
        self.page.wait_for_selector("#table [data-turn]")
        turn = self.page.get_attribute("#table [data-turn]", "data-turn")
        self.tap("#table button[name=choice]")
        self.page.wait_for_function(
            "turn => document.querySelector('#table [data-turn]')?.dataset.turn !== turn", arg=turn
        )
        return self.since()

    def next(self) -> dict[str, float]:
        """Give up, and go on to the next game until its table is there."""
        self.page.wait_for_selector("#table [data-turn], .ending")
        if self.page.locator(".ending").count() == 0:
            self.page.locator(".give-up").first.tap()
        self.page.wait_for_selector(".ending")
        self.began, self.taps = time.perf_counter(), 0
        self.tap(".ending button:has-text('Next game')")
        self.tap("button[name=consent][value=yes]")
        self.page.wait_for_selector("#table .banner")
        return self.since()


def main(arguments: Namespace) -> dict[str, Any]:
    """Visit every game as a guest and with a new account; return taps and seconds of each visit."""
    playwright = import_module("playwright.sync_api").sync_playwright
    visits: list[dict[str, Any]] = []
    with installed() as environment, site(environment), playwright() as started:
        browser = vitals.launch(started, arguments.chromium)
        address = f"http://127.0.0.1:{environment['PORT']}/"
        guest(browser, address, GAMES[0])  # not counted: it loads the site's code
        for number in range(arguments.rounds):
            visits += [guest(browser, address, game) for game in GAMES]
            visits.append(account(browser, address, GAMES[0], f"visitor{number}"))
        browser.close()
    return summary(visits)


def guest(browser: Any, address: str, game: str) -> dict[str, Any]:
    """A guest's first move and next game."""
    visit = Visit(browser, address)
    return {"who": "guest", "game": game, "first": visit.play(game), "next": visit.next()}


def account(browser: Any, address: str, game: str, name: str) -> dict[str, Any]:
    """The same with a new account."""
    visit = Visit(browser, address)
    visit.tap('a[href="/accounts/signup/"]')
    for field, value in (("username", name), ("password1", PASSWORD), ("password2", PASSWORD)):
        visit.page.fill(f"[name={field}]", value)
    visit.tap("main button[type=submit]")
    return {"who": "account", "game": game, "first": visit.play(game), "next": visit.next()}


def summary(visits: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the most taps and the median seconds of each kind of visit, with the visits."""
    result: dict[str, Any] = {"screen": SCREEN, "visits": list(visits)}
    for who in ("guest", "account"):
        for part in ("first", "next"):
            rows = [visit[part] for visit in visits if visit["who"] == who]
            spent = [row["seconds"] for row in rows]
            result[f"{who}_{part}"] = {
                "taps": max(row["taps"] for row in rows),
                "median_s": round(statistics.median(spent), 2),
                "spread_s": [min(spent), max(spent)],
            }
    taps, seconds = FIRST_LIMITS
    within = result["guest_first"]["taps"] <= taps and result["guest_first"]["median_s"] <= seconds
    nexts = max(result[f"{who}_next"]["taps"] for who in ("guest", "account")) <= NEXT_LIMIT
    return {**result, "first_taps": taps, "first_s": seconds, "next_taps": NEXT_LIMIT, "ok": within and nexts}


def show(result: dict[str, Any]) -> str:
    """Return one line for each kind of visit."""
    titles = {"guest": "without an account", "account": "with a new account"}
    parts = {"first": "first move", "next": "next game"}
    lines = []
    for who, title in titles.items():
        for part, name in parts.items():
            row = result[f"{who}_{part}"]
            low, high = row["spread_s"]
            lines.append(f"{name}, {title}: {row['taps']} taps, {row['median_s']:.1f} s ({low:.1f} to {high:.1f})")
    return "\n".join([*lines, f"within the limits: {result['ok']}"])
