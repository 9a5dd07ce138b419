"""Every game's table in a browser: a whole game by keyboard, accessible in both themes, and nothing that jumps.

The games are those of the registry, each in every form that its cases show: another game is tested by existing.
"""

import json
import re

import pytest
from playwright.sync_api import Page, expect

from bench import vitals
from tests.browser.at_table import OURS, connected
from tests.browser.test_pages import AXE, CHECK, CONTRAST, LOOK, SMALL, TAGS, WIDE
from tests.browser.test_table import press, tab_to
from tests.games.play import steps
from tests.games.worlds import CASES
from training.games import REGISTRY, make

pytestmark = pytest.mark.slow
FEW = 4
"""Joint steps of a game that is long enough to be played."""
LARGEST_SHIFT = 0.05
GAME_SECONDS = 180.0

WATCH_FOCUS = """
window.lost = [];
addEventListener("htmx:wsBeforeMessage", () => { window.focused = document.activeElement; });
addEventListener("htmx:wsAfterMessage", () => {
  if (focused !== document.body && document.activeElement === document.body) lost.push(focused.outerHTML.slice(0, 120));
});
"""
"""Lists what had the focus before a frame and lost it to nothing."""

CONTROLS = "#part-stage button[name], #move button[name]:not(.give-up)"
NEXT = """([controls, turn]) => {
  const all = [...document.querySelectorAll(controls)].filter((control) => control.checkVisibility());
  const after = all.findIndex((control) => document.activeElement.compareDocumentPosition(control) & 4);
  const { name, value } = all[(Math.max(after, 0) + turn % 3) % all.length];
  const text = document.querySelector(`.search-field button[name=${name}][value="${value}"],
    .move-text button[name=${name}][value="${value}"]`)?.parentElement.querySelector("input");
  return text ? `input[name="${text.name}"]` : `button[name=${name}][value=${CSS.escape(value)}]`;
}"""
"""One of the controls that follow the focus, another one at each turn; the field beside it if it sends a text."""


def forms():
    """A scenario of each game for every set of zones with which its cases begin, as (game, number of its case)."""
    shortest = {}
    for game in REGISTRY:
        for number, scenario in enumerate(CASES[game]):
            start = make(scenario.with_seed(1))
            kinds = frozenset(zone.kind for zone in start.show(0).zones)
            length = sum(1 for _ in steps(make(scenario.with_seed(1)), 1))
            rank = (length < FEW, length if length >= FEW else -length)
            shortest[game, kinds] = min(shortest.get((game, kinds), (rank, number)), (rank, number))
    return [pytest.param(game, number, id=f"{game}-{number}") for (game, _), (_, number) in shortest.items()]


every_form = pytest.mark.parametrize("game, number", [*forms(), pytest.param("openspiel:nim", 0, id="openspiel-nim")])


def sit_down(page: Page, address: str) -> None:
    """Answer about consent, and wait until the table is connected."""
    page.goto(address)
    tab_to(page, "button[name=consent][value=yes]")
    press(page, "Enter")
    page.wait_for_url(re.compile(r"/play/\d+/$"))
    connected(page)


def reach(page: Page, selector: str) -> None:
    """Press Tab until the focus is there, if it is not."""
    if not page.evaluate("what => document.activeElement.matches(what)", selector):
        tab_to(page, selector, most=200)


def answer(page: Page, turn: int) -> None:
    """Say something at every second turn where one can, else press what is offered."""
    if page.locator(".say-button").count() and turn % 2 == 0:
        reach(page, "#say")
        page.keyboard.type("I have heard you. What do you think?")
    else:
        selector = page.evaluate(NEXT, [CONTROLS, turn])
        reach(page, selector)
        if selector.startswith("input"):
            page.keyboard.type("socks")
        elif page.locator("#say").count() and turn % 2:  # a proposal comes with words
            page.locator("#say").evaluate("say => { say.value = 'Shall we?'; }")
    press(page, "Enter")


@every_form
def test_a_whole_game_by_keyboard(site, visit, game, number):
    page = visit("pia", viewport=WIDE).page
    page.add_init_script(vitals.SCRIPT + WATCH_FOCUS)
    sit_down(page, site.seed("game_of", game, number))
    for turn in range(100):
        expect(page.locator(".turn")).to_have_text(OURS, timeout=1000 * GAME_SECONDS)
        if "over" in page.locator(".turn").inner_text():
            break
        step = page.locator("#part-act input[name=turn]").get_attribute("value")
        answer(page, turn)
        expect(page.locator(f"#part-act input[name=turn][value='{step}']")).to_have_count(0)
        assert page.locator("#refusal").inner_text() == ""
    assert page.evaluate("lost") == [], "a frame took the focus away"
    measured = vitals.read(page)
    if not page.locator(".table-alone").count():  # there everything that moves answers one's own press
        assert measured["shift"] < LARGEST_SHIFT, measured
    expect(page.locator(".ending .headline")).not_to_be_empty()
    reach(page, ".ending a")
    press(page, "Enter")
    page.wait_for_url(re.compile("/judgments/rate/|/result/"))
    if "/rate/" in page.url:
        if page.locator("form.judging").count():  # what there is to rate is optional to whoever chose the players
            reach(page, "form.judging button:not([name])")
            press(page, "Enter")
            expect(page.locator("form.judging")).to_have_count(0)
        tab_to(page, "a[href$='/result/']")
        press(page, "Enter")
    expect(page.locator("main .reveals, main .sides").first).to_be_visible()


@every_form
def test_a_table_is_accessible_and_fits_a_phone_in_both_themes(site, visit, game, number):
    page = visit("pia", viewport=WIDE).page
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    sit_down(page, site.seed("game_of", game, number))
    expect(page.locator(".turn")).to_have_text(OURS, timeout=1000 * GAME_SECONDS)
    page.evaluate(AXE.read_text())
    wrong = {}
    for scheme, rules in (("light", TAGS), ("dark", CONTRAST)):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        page.set_viewport_size(WIDE)
        if broken := page.evaluate(CHECK, rules):
            wrong[f"axe {scheme}"] = broken
        page.set_viewport_size(SMALL)
        if wide := page.evaluate(LOOK)["scroll"]:
            wrong[f"scroll {scheme}"] = wide
    if broken := page.evaluate(CHECK, TAGS):
        wrong["axe on a phone"] = broken
    assert not wrong, json.dumps(wrong, indent=1)
