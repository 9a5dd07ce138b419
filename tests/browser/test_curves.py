"""Curves as a person draws them: smoothing, logarithmic axes, order and absence, kept for the next visit."""

import statistics

import pytest
from playwright.sync_api import expect
from scipy import stats

pytestmark = pytest.mark.slow


@pytest.fixture
def page(visit, site):
    page = visit("rosa").page
    page.goto(f"/runs/{site.seed('curves')}/")
    expect(page.locator("#curves canvas").first).to_be_visible()
    page.get_by_role("button", name="Reset charts").click()
    return page


def titles(page):
    return page.locator(".curve:visible h4").all_inner_texts()


def menu(page, title, item):
    page.keyboard.press("Escape")  # closes another chart's menu, which lies above this one's
    chart = page.locator(".curve", has=page.get_by_role("heading", name=title, exact=True))
    if not chart.get_by_role("button", name=item).is_visible():
        chart.locator("summary").click()
    return chart.get_by_role("button", name=item)


def stored(page):
    """Wait until the choices are on the server, then load the page again."""
    page.wait_for_timeout(800)
    page.reload()
    expect(page.locator("#curves canvas").first).to_be_visible()


def test_smoothing_is_a_corrected_average_and_the_means_have_students_interval(page):
    assert page.evaluate("series.smoothed([1, null, 3, 2], .5)") == [1, None, 3.5 / 1.5, 3.75 / 1.75]
    columns = [[1.0, 2.0, None, 9.0], [2.0, 4.0, 5.0, None], [4.0, 3.0, 6.0, None]]
    quantiles = [float(stats.t.ppf(0.975, n - 1)) for n in (2, 3)]
    mean = page.evaluate("([columns, quantiles]) => series.mean(columns, quantiles)", [columns, quantiles])
    assert mean["n"] == [3, 3, 0, 1]  # a gap in the third row; in the fourth two runs are over
    assert mean["mean"][2] is None
    assert mean["mean"][3] == 9
    assert mean["low"][2:] == [None, None]
    for row in (0, 1):
        values = [column[row] for column in columns]
        error = statistics.stdev(values) / len(values) ** 0.5
        low, high = stats.t.interval(0.95, 2, loc=statistics.fmean(values), scale=error)
        assert [mean["low"][row], mean["high"][row]] == pytest.approx([low, high])


def test_smoothing_is_kept_for_the_next_visit_until_it_is_reset(page):
    slider = page.get_by_role("slider", name="Smoothing")
    slider.focus()
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    expect(page.locator("output[for=smoothing]")).to_have_text("0.05")
    stored(page)
    expect(slider).to_have_value("0.05")
    page.get_by_role("button", name="Reset charts").click()
    stored(page)
    expect(slider).to_have_value("0")


def test_charts_are_moved_by_keyboard_and_by_dragging(page):
    assert titles(page)[:3] == ["Reward", "Agreement rate", "Parse rate"]
    later = menu(page, "Reward", "Move later")
    later.focus()
    page.keyboard.press("Enter")
    assert titles(page)[:3] == ["Agreement rate", "Reward", "Parse rate"]
    expect(later).to_be_focused()
    page.keyboard.press("Escape")
    page.get_by_role("heading", name="Parse rate").drag_to(page.get_by_role("heading", name="Agreement rate"))
    assert titles(page)[:3] == ["Parse rate", "Agreement rate", "Reward"]
    stored(page)
    assert titles(page)[:3] == ["Parse rate", "Agreement rate", "Reward"]


def test_a_chart_is_hidden_and_shown_again(page):
    menu(page, "Agreement rate", "Hide").click()
    assert titles(page)[:2] == ["Reward", "Parse rate"]
    stored(page)
    assert titles(page)[:2] == ["Reward", "Parse rate"]
    page.locator("#curve-tools summary").click()
    page.get_by_label("Agreement rate").check()
    expect(page.get_by_role("heading", name="Agreement rate")).to_be_visible()
    assert titles(page)[:3] == ["Reward", "Agreement rate", "Parse rate"]


def test_axes_become_logarithmic(page):
    values = menu(page, "Loss", "Logarithmic values")
    values.click()
    expect(values).to_have_attribute("aria-pressed", "true")
    menu(page, "Loss", "Logarithmic steps").click()
    stored(page)
    expect(menu(page, "Loss", "Logarithmic steps")).to_have_attribute("aria-pressed", "true")
    below = menu(page, "KL divergence from the reference", "Logarithmic values")
    below.click()
    expect(page.get_by_text("No value above zero")).to_be_visible()


def test_seeds_are_compared_by_mean_and_band(visit, site):
    page = visit("rosa").page
    runs = site.seed("seeds")
    page.goto("/runs/compare/?" + "&".join(f"run={run}" for run in runs))
    expect(page.locator("#curves canvas").first).to_be_visible()
    expect(page.locator(".run-keys li")).to_have_count(1)
    expect(page.locator(".run-keys")).to_contain_text("and 2 more seeds")
    canvas = page.locator("#curves .u-over").first
    canvas.hover()
    # rewards of the seeds are 0, 0.1 and 0.2 above one tenth of the step: 4.303 · 0.1 / √3 on both sides of the mean
    expect(page.locator(".readout").first).to_contain_text("n = 3")
    page.get_by_label("Mean of seeds").uncheck()
    expect(page.locator(".run-keys li")).to_have_count(3)
    page.get_by_label("Mean of seeds").check()
