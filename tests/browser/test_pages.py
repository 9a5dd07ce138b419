"""Every page in a real browser: nothing to complain about, and no sideways scroll on a small screen, light or dark."""

import json
import re
from dataclasses import dataclass
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.at_table import connected
from tests.browser.visitor import visiting
from tools import setup

pytestmark = pytest.mark.slow
SMALL = {"width": 360, "height": 740}
WIDE = {"width": 1280, "height": 860}
MOST_LINKS = 50
AXE = setup.TESTING / "axe.min.js"
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
CONTRAST = ["color-contrast", "link-in-text-block"]  # of the rules with these tags those that a theme can break
CHECK = """async (rules) => {
  const { violations } = await axe.run({ runOnly: rules, resultTypes: ["violations"], selectors: false });
  return violations.flatMap(({ id, nodes }) => nodes.map((node) => [
    id, node.html.slice(0, 160), node.any.concat(node.all, node.none)[0]?.message ?? "",
  ]));
}"""
LOOK = """() => {
  const root = document.scrollingElement;
  const wide = [...document.querySelectorAll("body *")]
    .filter((element) => element.getBoundingClientRect().right > innerWidth + 1)
    .filter((element) => !element.closest(".scroll, pre, .log"))
    .slice(0, 3).map((element) => element.outerHTML.slice(0, 120));
  const fresh = document.createElement("form");
  const bare = (form) => form.method === "post" && !form.elements.csrfmiddlewaretoken?.value;
  return {
    scroll: root.scrollWidth > innerWidth ? [root.scrollWidth, ...wide] : [],
    unsafe: [...document.forms].filter(bare).map((form) => form.outerHTML.slice(0, 120)),
    hidden: [...document.forms].flatMap((form) => [...form.elements].map((control) => control.name)
      .filter((name) => typeof fresh[name] === "function")),
    unnamed: [...document.querySelectorAll("input:not([type=hidden]), select, textarea, button, a[href]")]
      .filter((control) => control.checkVisibility() && !control.labels?.length && !control.textContent.trim() &&
        !control.ariaLabel && !control.title && !control.value)
      .map((control) => control.outerHTML.slice(0, 120)),
    headings: document.querySelectorAll("h1").length,
    title: document.title,
  };
}"""


def look(page, address):
    answer = page.goto(address)
    assert answer is not None
    expect(page.locator(".htmx-request")).to_have_count(0)
    return answer.status, page.evaluate(LOOK)


@dataclass(frozen=True)
class Visit:
    """What one visit found at a page: its status, what `LOOK` saw by viewport and theme, the rules of axe it breaks."""

    name: str
    status: int
    small: dict[str, dict[str, Any]]
    wide: dict[str, Any]
    broken: list[tuple[str, str]]


@pytest.fixture(scope="module")
def walk(site, browser):
    """One visit to every page by an administrator, with what the browser complained about on the way.

    A page is loaded once, on a small screen, and then made dark and wide: to load it for every check takes three times
    as long.
    """
    with visiting(browser, site.address, viewport=SMALL) as visitor:
        visitor.context.add_init_script(AXE.read_text())
        visitor.sign_in(*site.admin)
        spread = {"name": "a run on several processes", "address": f"/runs/{site.seed('spread_run')}/"}
        entries = [{"name": "home", "address": "/"}, spread, *site.seed("pages")]
        yield [walk_through(visitor.page, **entry) for entry in entries], visitor.troubles


def walk_through(page, name, address):
    page.set_viewport_size(SMALL)
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    status, light = look(page, address)
    page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    small = {"light": light, "dark": page.evaluate(LOOK)}
    page.set_viewport_size(WIDE)
    wide = page.evaluate(LOOK)
    broken = [("dark", each) for each in page.evaluate(CHECK, CONTRAST)]
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    broken += [("light", each) for each in page.evaluate(CHECK, TAGS)]
    return Visit(name, status, small, wide, broken)


def test_no_browser_complains_about_any_page(walk):
    visits, troubles = walk
    assert [(visit.name, visit.status) for visit in visits if visit.status != 200] == []
    assert troubles == []


def test_every_page_on_a_small_screen_in_light_and_dark(walk):
    seen = [(visit.name, scheme, shown["scroll"]) for visit in walk[0] for scheme, shown in visit.small.items()]
    assert [entry for entry in seen if entry[-1]] == []


def test_every_page_has_a_heading_names_and_protected_forms(walk):
    wrong = []
    for visit in walk[0]:
        seen = visit.wide
        problems = {name: seen[name] for name in ("scroll", "unsafe", "hidden", "unnamed") if seen[name]}
        if problems or seen["headings"] != 1 or not seen["title"].endswith("· Parley"):
            wrong.append((visit.name, problems, seen["headings"], seen["title"]))
    assert wrong == []


def test_no_page_breaks_the_accessibility_rules_in_light_or_dark(walk):
    """axe's rules for WCAG 2.0 to 2.2, levels A and AA, contrast among them."""
    wrong = {}
    for visit in walk[0]:
        for scheme, (rule, element, why) in visit.broken:
            wrong.setdefault(f"{rule}: {element}: {why}", []).append(f"{visit.name} {scheme}")
    assert not wrong, json.dumps(wrong, indent=1)


BORDERS = """() => {
  const rgb = (colour) => colour.match(/[\\d.]+/g).slice(0, 3).map(Number);
  const behind = rgb(getComputedStyle(document.documentElement).backgroundColor);
  return [...document.querySelectorAll("main :is(input:not([type=hidden]), select, textarea):not(:checked)")]
    .map((control) => [control.name, rgb(getComputedStyle(control).borderTopColor), behind]);
}"""


def luminance(colour):
    """Relative luminance of a colour from 0 to 255 (WCAG 2.2)."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (value / 255 for value in colour)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_borders_of_controls_can_be_seen_in_light_and_dark(visit):
    """WCAG 2.2, 1.4.11: 3 to 1. axe measures the contrast of text alone."""
    page = visit("rosa", viewport=WIDE).page
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.goto("/runs/new/")
        borders = page.evaluate(BORDERS)
        assert len(borders) > 10
        for name, border, behind in borders:
            dark, light = sorted((luminance(border), luminance(behind)))
            assert (light + 0.05) / (dark + 0.05) >= 3, (scheme, name, border, behind)


def test_the_bar_takes_one_line_on_a_small_screen_and_its_menu_opens_by_keyboard(visit):
    page = visit("admin", viewport=SMALL).page
    page.goto("/")
    expect(page.locator("#running")).to_contain_text(re.compile("run|queued"))
    assert page.locator("header.bar").bounding_box()["height"] < 60
    runs = page.locator("header.bar").get_by_role("link", name="Runs", exact=True)
    expect(runs).to_be_hidden()
    page.get_by_role("button", name="Menu").focus()
    page.keyboard.press("Enter")
    expect(runs).to_be_visible()
    page.keyboard.press("Escape")
    expect(runs).to_be_hidden()
    expect(page.get_by_role("button", name="Menu")).to_be_focused()
    page.keyboard.press("Space")
    for _ in range(4):  # Play, Datasets, Corpora, Runs
        page.keyboard.press("Tab")
    expect(runs).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Runs")
    page.set_viewport_size(WIDE)
    expect(runs).to_be_visible()
    expect(page.get_by_role("button", name="Menu")).to_be_hidden()
    assert page.locator("header.bar").bounding_box()["height"] < 60


def guest_of_a_finished_game(visit, site):
    visitor = visit()
    page = visitor.page
    page.goto(site.seed("invitation"))
    page.get_by_role("button", name="Sit down").click()
    page.get_by_role("button", name="Yes, it may be used").click()
    connected(page)
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Give up").click()
    expect(page.locator(".turn")).to_contain_text("The game is over")
    return visitor


LINKS = """(html) => {
  const shown = html === null ? document : new DOMParser().parseFromString(html, "text/html");
  return [...shown.querySelectorAll("a[href^='/']:not([download])")]
    .map((link) => link.getAttribute("href").split(/[?#]/)[0]);
}"""
"""The links of the page that is drawn, or of a text of HTML."""


@pytest.mark.parametrize("name", ["rosa", "anna", "pia", "guest"])
def test_links_that_a_role_is_shown_lead_somewhere(visit, site, name):
    """Every page is asked for; of pages that differ in numbers alone the browser draws the first."""
    visitor = guest_of_a_finished_game(visit, site) if name == "guest" else visit(name)
    seen, ahead, drawn, broken = set(), ["/"], set(), []
    while ahead and len(seen) < MOST_LINKS:
        address = ahead.pop(0)
        seen.add(address)
        kind = re.sub(r"\d+", "0", address)
        draws = kind not in drawn
        drawn.add(kind)
        answer = visitor.page.goto(address) if draws else visitor.context.request.get(address)
        if answer.status != 200:
            broken.append((address, answer.status))
        links = visitor.page.evaluate(LINKS, None if draws else answer.text())
        ahead += sorted({link for link in links if not link.endswith(".jsonl")} - seen - set(ahead))
    assert broken == []
    assert len(seen) > 3


def test_a_visitor_who_is_not_signed_in_is_asked_to(visit):
    visitor = visit(viewport=SMALL)
    page = visitor.page
    page.goto("/runs/")
    assert page.url.endswith("/accounts/login/?next=/runs/")
    for address in ("/accounts/login/", "/accounts/signup/"):
        _, seen = look(page, address)
        assert seen["scroll"] == []
        assert seen["unsafe"] == []
