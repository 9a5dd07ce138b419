"""Results of a queue in a real browser: deciding by keyboard alone, and pages that hold at every width and theme."""

import pytest
from playwright.sync_api import expect

from tests.browser.test_pages import AXE, CHECK, CONTRAST, SMALL, TAGS, WIDE, look

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def disputed(site):
    return site.seed("disputed")


def test_pages_of_results_break_no_rule_at_any_width_and_theme(visit, disputed):
    page, wrong = visit("rosa", viewport=SMALL).page, []
    page.context.add_init_script(AXE.read_text())
    for name, address in disputed.items():
        page.set_viewport_size(SMALL)
        page.emulate_media(color_scheme="light", reduced_motion="reduce")
        status, _ = look(page, address)
        if status != 200:
            wrong.append((name, status))
        page.evaluate("document.querySelectorAll('main details').forEach((each) => { each.open = true; })")
        for size in (SMALL, WIDE):
            page.set_viewport_size(size)
            for scheme, rules in (("light", TAGS), ("dark", CONTRAST)):
                page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
                wrong += [(name, scheme, size["width"], *each) for each in page.evaluate(CHECK, rules)]
            if (width := page.evaluate("document.scrollingElement.scrollWidth")) > size["width"]:
                wrong.append((name, size["width"], width))
    assert wrong == []


def test_a_disagreement_is_decided_by_keyboard_alone(visit, disputed):
    page = visit("rosa", viewport=WIDE).page
    page.goto(disputed["decisions"])
    page.locator("tbody th a").first.focus()  # the largest disagreement
    page.keyboard.press("Enter")
    rows = page.locator("tr[data-row]")
    expect(rows.first).to_be_visible()
    first = page.url
    chosen = page.locator("tr[data-row] > td > label > input[type=radio]:checked")
    begun = chosen.count()
    assert begun < rows.count(), "rows that differ wait for a decision"
    expect(page.locator("tr.differs input[type=radio]").first).to_be_focused()
    page.keyboard.press("2")
    expect(chosen).to_have_count(begun + 1)
    for row in rows.all():
        row.locator("input[type=radio]").first.focus()
        page.keyboard.press("2")
    expect(chosen).to_have_count(rows.count())
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("Decided.")).to_be_visible()
    assert page.url != first, "the next disagreement follows"
    page.goto(f"{disputed['decisions']}?show=decided")
    expect(page.locator("tbody tr")).to_have_count(1)
