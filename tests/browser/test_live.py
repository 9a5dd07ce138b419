"""A run's page stays correct without a reload: silence, stopping, an unavailable site."""

import re
from itertools import pairwise

import pytest
from playwright.sync_api import expect

from tests.browser.test_pages import SMALL, WIDE
from tests.browser.wire import wire

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def silent(site):
    return site.seed("silent_run")


def seconds_of_silence(page):
    text = page.get_by_text("No progress for").inner_text()
    minutes, seconds = re.search(r"No progress for (?:(\d+) min ?)?(?:(\d+) s)?", text).groups()
    return 60 * int(minutes or 0) + int(seconds or 0)


def test_a_silent_run_says_since_when_and_counts_on(visit, silent):
    page = visit("rosa").page
    page.goto(f"/runs/{silent}/")
    page.evaluate("window.stayed = true")
    first = seconds_of_silence(page)
    assert 90 <= first < 600
    expect(page.locator("#run-header")).to_contain_text("sampling")
    page.wait_for_timeout(5000)
    assert seconds_of_silence(page) >= first + 2
    assert page.evaluate("window.stayed") is True


def test_what_is_read_stays_scrolled_while_it_is_replaced(visit, site):
    """On a phone the table of processes is wider than the screen; the names stay beside what is read."""
    page = visit("rosa", viewport=SMALL).page
    page.goto(f"/runs/{site.seed('spread_run')}/")
    table = page.locator("[data-scrolled=processes]")
    table.evaluate("box => { box.scrollLeft = 200; window.before = box; }")
    for _ in range(2):
        with page.expect_response(re.compile("/live/")):
            pass
    page.wait_for_function("() => !window.before.isConnected")
    expect(table).to_have_js_property("scrollLeft", 200)
    lefts = table.evaluate("box => [box, box.querySelector('tbody th')].map((part) => part.getBoundingClientRect().x)")
    assert abs(lefts[0] - lefts[1]) <= 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_an_edge_beyond_which_a_table_goes_on_has_a_shadow(visit, site, scheme):
    page = visit("rosa", viewport=SMALL, color_scheme=scheme).page
    page.goto(f"/runs/{site.seed('spread_run')}/")
    table = page.locator("[data-scrolled=processes]")

    def edges():
        """Pictures of the first and of the last pixel of the head, above its words; the name covers the first ones."""
        box = table.bounding_box()
        places = (box["x"] + 1, box["x"] + box["width"] - 2)
        return tuple(page.screenshot(clip={"x": x, "y": box["y"] + 4, "width": 1, "height": 1}) for x in places)

    background, shadow = edges()
    assert shadow != background
    table.evaluate("box => { box.scrollLeft = box.scrollWidth; }")
    assert edges() == (background, background)


def test_the_columns_of_the_processes_keep_their_widths(visit, site):
    page = visit("rosa", viewport={"width": 1600, "height": 860}).page
    page.goto(f"/runs/{site.seed('spread_run')}/")
    heads = page.locator(".processes thead th")
    before = heads.evaluate_all("all => all.map((each) => each.offsetWidth)")
    changed = {2: "waiting for requests", 3: "1024", 4: "23 min 59 s ago", 5: "128.0", 6: "1,023.9 GB", 7: "100 %"}
    for place, text in changed.items():
        cell = page.locator(f".processes tbody td:nth-child({place})").last
        cell.evaluate("(cell, text) => { cell.textContent = text; }", text)
    assert heads.evaluate_all("all => all.map((each) => each.offsetWidth)") == before
    page.locator(".processes tbody td").evaluate_all("all => { for (const cell of all) cell.textContent = '—'; }")
    assert heads.evaluate_all("all => all.map((each) => each.offsetWidth)") == before, "as while all are starting"


def test_a_log_begins_at_its_end_and_stays_where_it_is_read(visit, site):
    page = visit("rosa", viewport=SMALL).page
    page.goto(f"/runs/{site.seed('chatty_run')}/log/")
    interrupted = "Attempt 1 was interrupted: learner rank 0 (process 5754 on gpu-node-01) died while learning."
    expect(page.locator("#run-header")).to_contain_text(f"{interrupted} Attempt 2 continues from step 4.")
    log = page.locator("pre.log")
    assert log.evaluate("box => box.scrollHeight - box.clientHeight - box.scrollTop") <= 1
    assert log.evaluate("box => box.scrollTop") > 100
    log.evaluate("box => { box.scrollTop = 50; window.before = box; }")
    page.wait_for_function("() => !window.before.isConnected")
    expect(log).to_have_js_property("scrollTop", 50)


def test_a_button_returns_to_the_address_that_a_filter_has_pushed(visit, site):
    page = visit("rosa", viewport=WIDE).page
    log = f"{site.address}/runs/{site.seed('chatty_run')}/log/"
    page.goto(f"{log}?attempt=1")
    page.get_by_role("button", name="Pin", exact=True).click()
    expect(page.get_by_role("button", name="Unpin")).to_be_visible()
    expect(page).to_have_url(f"{log}?attempt=1")
    page.evaluate("history.pushState(null, '', '?attempt=2')")
    page.get_by_role("button", name="Unpin").click()
    expect(page.get_by_role("button", name="Pin", exact=True)).to_be_visible()
    expect(page).to_have_url(f"{log}?attempt=2")


def test_a_page_whose_site_is_away_says_that_it_is_stale(visit, site, silent):
    with wire(site.port) as line:
        visitor = visit("rosa", address=line.address)
        page = visitor.page
        page.goto(f"/runs/{silent}/")
        expect(page.get_by_text("No progress for")).to_be_visible()
        line.cut()
        expect(page.locator("#run-header.stale")).to_be_visible()
        line.mend()
        expect(page.locator("#run-header:not(.stale)")).to_be_visible()
        visitor.forget("ERR_", "Failed to fetch", "error: htmx:")


def test_a_run_that_is_over_is_not_asked_about_any_more(visit, site):
    visitor = visit("rosa")
    page = visitor.page
    page.goto(f"/runs/{site.seed('ended_run')}/")
    expect(page.locator("#curves canvas").first).to_be_visible()
    page.wait_for_timeout(1000)
    before = len([address for address in visitor.requested if "/live/" in address or "metrics" in address])
    page.wait_for_timeout(5000)
    after = len([address for address in visitor.requested if "/live/" in address or "metrics" in address])
    assert after == before


def test_curves_stay_monotone_in_step_when_a_run_is_resumed(visit, site):
    """A second attempt rewrites what came after its start: no step is drawn twice, and none before an earlier one."""
    run = site.seed("interrupted")
    page = visit("rosa").page
    page.goto(f"/runs/{run}/")
    expect(page.locator("#curves canvas").first).to_be_visible()
    page.evaluate("""() => {
      window.seen = [];
      const take = series.take;
      series.take = (run, data) => {
        take(run, data);
        seen.push({ steps: [...run.steps], rewards: [...run.series.get("reward")] });
      };
    }""")
    for change, last in (("", 6), ("resumed", 5), ("resumed_further", 7)):
        if change:
            site.seed(change, run)
        page.wait_for_function("last => window.seen.at(-1)?.steps.at(-1) === last", arg=last)
    seen = page.evaluate("seen")
    assert all(step < later for each in seen for step, later in pairwise(each["steps"]))
    assert seen[0] == {"steps": [1, 2, 3, 4, 5, 6], "rewards": [0.1] * 6}
    assert seen[-1] == {"steps": [1, 2, 3, 4, 5, 6, 7], "rewards": [0.1] * 3 + [0.9] * 4}


def test_a_running_head_to_head_becomes_its_result_by_itself(visit, site):
    run = site.seed("head_to_head")
    visitor = visit("rosa")
    page = visitor.page
    page.goto(f"/runs/{run}/")
    page.evaluate("window.stayed = true")
    expect(page.locator("#evaluation")).to_contain_text("3 of 12 conversations; about 3 min left")
    expect(page.locator("#run-header")).to_contain_text("about 3 min")
    site.seed("head_to_head_over", run)
    expect(page.locator("#evaluation")).to_contain_text("12 of 12 conversations count")
    expect(page.locator("#run-header .state")).to_have_text("succeeded")
    expect(page.locator(".verdict")).to_have_count(1)
    assert page.evaluate("window.stayed") is True
    page.wait_for_timeout(1000)
    before = len([address for address in visitor.requested if "/evaluation/" in address])
    page.wait_for_timeout(5000)
    assert len([address for address in visitor.requested if "/evaluation/" in address]) == before


def test_curves_that_could_not_be_loaded_are_not_called_empty(visit, site):
    visitor = visit("rosa")
    page = visitor.page
    page.route("**/metrics.json*", lambda route: route.fulfill(status=500))
    page.goto(f"/runs/{site.seed('ended_run')}/")
    note = page.locator("#curves-note")
    expect(note).to_contain_text("could not be loaded")
    page.unroute("**/metrics.json*")
    expect(page.locator("#curves canvas").first).to_be_visible(timeout=30_000)
    expect(note).to_be_hidden()
    visitor.forget("500")


WRITTEN = """
window.written = [];
const write = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
  window.written.push([text, this.textAlign, x - this.measureText(text).width]);
  return write.call(this, text, x, y);
};
"""


@pytest.mark.parametrize("low, high", [(-1.24e-4, -1.22e-4), (1234.2, 1234.9), (1e8, 1e8 + 40)])
def test_the_ticks_of_a_small_curve_are_whole_and_distinct(visit, site, low, high):
    def narrow(route):
        answer = route.fetch()
        data = answer.json()
        data["series"] = {name: [low, high] for name in data["series"]}
        route.fulfill(response=answer, json=data)

    page = visit("rosa", viewport=SMALL).page
    page.add_init_script(WRITTEN)
    page.route("**/metrics.json*", narrow)
    page.goto(f"/runs/{site.seed('ended_run')}/")
    expect(page.locator("#curves canvas").first).to_be_visible()
    page.wait_for_function("() => written.length > 0")
    page.evaluate("written.length = 0")
    page.emulate_media(color_scheme="dark")  # draws the one curve again
    page.wait_for_function("() => written.length > 0")
    ticks = [(text, left) for text, align, left in page.evaluate("written") if align == "right"]
    assert len(ticks) >= 2
    assert len({text for text, _ in ticks}) == len(ticks), ticks
    assert min(left for _, left in ticks) >= 0, f"cut off: {ticks}"


def test_curves_of_nearly_equal_values_are_drawn(visit, site):
    def nearly_equal(route):
        answer = route.fetch()
        data = answer.json()
        data["series"] = {name: [1 + 1e-9 * i for i in range(len(data["steps"]))] for name in data["series"]}
        route.fulfill(response=answer, json=data)

    visitor = visit("rosa")
    visitor.page.route("**/metrics.json*", nearly_equal)
    visitor.page.goto(f"/runs/{site.seed('ended_run')}/")
    expect(visitor.page.locator("#curves canvas").first).to_be_visible()  # `visit` fails if a script broke


@pytest.mark.parametrize("options", [{}, {"viewport": SMALL, "color_scheme": "dark"}], ids=["wide", "small and dark"])
def test_a_curve_that_needs_it_is_explained_below_it(visit, site, options):
    page = visit("rosa", **options).page
    page.goto(f"/runs/{site.seed('ended_run', 'discarded')}/")
    curve = page.get_by_role("region", name="Curves").locator("section.curve")
    expect(curve.get_by_role("heading")).to_have_text("Probability mass removed by top-p and top-k")
    expect(curve.locator(".explanation")).to_contain_text("The loss does not account for it")
    inside = curve.evaluate("box => box.scrollWidth <= box.clientWidth && document.body.scrollWidth <= innerWidth")
    assert inside
