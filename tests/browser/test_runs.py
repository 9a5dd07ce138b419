"""The pages with which people keep order among runs: the list, sweeps, alerts and reports, each as a whole story."""

import csv
import hashlib
import hmac
import json
import re
import statistics
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from uuid import uuid4

import pytest
from playwright.sync_api import Error, expect
from scipy import stats

from tests.browser.test_pages import AXE, CHECK, LOOK, SMALL, TAGS, WIDE

pytestmark = pytest.mark.slow


@pytest.fixture
def name():
    """A name that no other test has used."""
    return f"n{uuid4().hex[:8]}"


def is_sound(page):
    """Nothing to complain about for axe, and no sideways scroll on a small screen."""
    page.evaluate(AXE.read_text())
    assert page.evaluate(CHECK, TAGS) == []
    size = page.viewport_size
    page.set_viewport_size(SMALL)
    fits(page)
    page.set_viewport_size(size)


def fits(page):
    """No sideways scroll; charts take the new width after a moment."""
    try:
        page.wait_for_function("() => document.scrollingElement.scrollWidth <= innerWidth", timeout=5000)
    except Error:
        assert page.evaluate(LOOK)["scroll"] == []
        raise


def names(page):
    return page.locator("table.runs td.name a:first-of-type").all_inner_texts()


def chosen(page, *runs):
    """Choose rows by the space bar."""
    for run in runs:
        page.get_by_role("checkbox", name=f"Select {run}", exact=True).focus()
        page.keyboard.press("Space")
    expect(page.locator("[data-count]")).to_have_text(f"{len(runs)} selected")


def test_the_list_of_runs_is_put_in_order(visit, site, name):
    first, second, third = (f"{name} {n}" for n in range(3))
    site.seed("listed", name)
    page = visit("rosa", viewport=WIDE).page
    page.goto(f"/runs/?q={name}")
    assert names(page) == [third, second, first]

    page.locator(".filters [name=state]").select_option("failed")
    expect(page.locator("table.runs tbody tr")).to_have_count(1)
    expect(page).to_have_url(re.compile(r"state=failed"))
    page.reload()
    assert names(page) == [third]
    page.locator(".filters [name=state]").select_option("")
    expect(page.locator("table.runs tbody tr")).to_have_count(3)

    chosen(page, first, third)
    page.locator(".bulk [name=tag]").fill(f"{name} tag")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status").first).to_contain_text("2 tagged")
    page.get_by_role("link", name=f"{name} tag").first.click()
    assert names(page) == [third, first]
    page.goto(f"/runs/?q={name}")
    page.get_by_role("checkbox", name="Select all runs on this page").check()
    expect(page.locator("[data-count]")).to_have_text("3 selected")
    page.locator(".bulk [name=group]").fill(f"{name} group")
    page.keyboard.press("Enter")
    page.locator(".filters [name=group]").select_option(f"{name} group")
    expect(page).to_have_url(re.compile(r"group="))
    is_sound(page)

    page.goto(f"/runs/?q={name}")
    chosen(page, first)
    page.get_by_role("button", name="Pin", exact=True).click()
    expect(page.locator("table.runs td.name").first).to_contain_text(first)
    chosen(page, second, third)
    page.get_by_role("button", name="Archive", exact=True).click()
    expect(page.locator("table.runs tbody tr")).to_have_count(1)
    undo = page.get_by_role("form", name="Undo")
    expect(undo).to_contain_text("2 archived")
    is_sound(page)
    undo.get_by_role("button", name="Undo").click()
    expect(page.locator("table.runs tbody tr")).to_have_count(3)
    assert names(page) == [first, third, second], "the pinned run is first"


def test_the_columns_are_kept_and_the_csv_has_what_is_shown(visit, site, name, tmp_path):
    site.seed("listed", name)
    page = visit("rosa", viewport=WIDE).page
    page.goto("/runs/columns/")
    page.get_by_role("button", name="Reset to the standard columns").click()
    for column in ("seed", "metric:parse_rate", "config:learn.steps"):
        page.get_by_label("Add a column").select_option(column)
        page.get_by_role("button", name="Add", exact=True).click()
        expect(page.get_by_label("Add a column").locator(f"option[value='{column}']")).to_have_count(0)
    for title in ("Trend", "Age", "Key metric"):
        page.get_by_role("button", name=f"Remove {title}", exact=True).click()
        expect(page.get_by_role("button", name=f"Remove {title}", exact=True)).to_have_count(0)
    page.get_by_role("button", name="Move Seed to the left").press("Enter")
    is_sound(page)
    shown = ["State", "Name", "Kind", "Method", "Game", "Base", "Seed", "Step", "Parse rate", "learn.steps"]
    page.goto(f"/runs/?q={name}&sort=name")
    page.reload()
    assert page.locator("table.runs thead th").all_inner_texts()[1:] == shown
    cells = [row.locator("td").all_inner_texts()[1:] for row in page.locator("table.runs tbody tr").all()]
    assert [row[shown.index("Seed")] for row in cells] == ["40", "41", "42"]
    assert {row[shown.index("Parse rate")] for row in cells} == {"0.75"}
    with page.expect_download() as downloading:
        page.get_by_role("link", name="CSV of 3 runs").click()
    downloading.value.save_as(tmp_path / "runs.csv")
    head, *rows = csv.reader((tmp_path / "runs.csv").read_text("utf-8-sig").splitlines())
    assert head == ["id", *shown]
    plain = {"self-play training": "train", "5/5": "5", "■ stopped": "stopped"}
    assert [row[1:] for row in rows] == [[plain.get(cell, cell) for cell in row] for row in cells]
    page.goto("/runs/columns/")
    page.get_by_role("button", name="Reset to the standard columns").click()


def test_deleting_runs_asks_and_says_what_goes(visit, site, name):
    site.seed("listed", name)
    page = visit("rosa", viewport=WIDE).page
    page.goto(f"/runs/?q={name}")
    chosen(page, f"{name} 1")
    dialog = page.get_by_role("dialog", name="Delete the selected runs?")
    page.get_by_role("button", name="Delete selected…").press("Enter")
    expect(dialog).to_contain_text("cannot be brought back")
    expect(dialog.get_by_role("button", name="Keep them")).to_be_focused()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    page.get_by_role("button", name="Delete selected…").press("Enter")
    is_sound(page)
    dialog.get_by_role("button", name="Delete selected", exact=True).click()
    expect(page.get_by_role("status").first).to_contain_text("1 deleted")
    assert names(page) == [f"{name} 2", f"{name} 0"]


def test_a_grid_is_swept_and_its_page_shows_what_mattered(visit, site, name):
    made = site.seed("swept", name)
    visitor = visit("rosa", viewport=WIDE)
    page = visitor.page
    page.goto("/runs/sweeps/new/?preset=quick")
    page.get_by_label("Field 1").fill("learn.lr")
    page.get_by_label("Values").first.fill("1e-4, -3")
    page.get_by_role("button", name="Preview the runs").click()
    expect(page.locator(".field", has=page.get_by_label("Values")).first).to_contain_text("greater than 0")
    visitor.forget("400")

    page.goto(f"/runs/{made['run']}/")
    page.get_by_role("button", name="Sweep", exact=True).click()
    page.get_by_label("Name", exact=True).fill(f"{name} grid")
    for number, (path, values) in enumerate((("learn.lr", "1e-4, 3e-4"), ("seed", "1, 2"))):
        page.get_by_label(f"Field {number + 1}").fill(path)
        page.get_by_label("Values").nth(number).fill(values)
    page.get_by_role("button", name="Preview the runs").press("Enter")
    expect(page.get_by_role("heading", name="4 runs")).to_be_visible()
    expect(page.locator("tbody tr").last).to_contain_text(re.compile("learn.lr = 0.0003.*seed = 2", re.DOTALL))
    is_sound(page)
    page.get_by_role("button", name="Start 4 runs").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(f"{name} grid")
    expect(page.locator("#trials tbody tr")).to_have_count(4)
    page.get_by_role("button", name="Stop all").click()
    expect(page.locator("#trials .state-stopped")).to_have_count(4)
    page.get_by_role("link", name="In the list").or_(page.get_by_role("button", name="In the list")).click()
    expect(page.locator("table.runs tbody tr")).to_have_count(4)

    page.goto(f"/runs/sweeps/{made['sweep']}/")
    chart = page.locator(".coordinates svg")
    assert chart.locator("text.title").all_text_contents() == ["learn.lr", "method.advantage", "Reward"]
    expect(chart.locator("polyline")).to_have_count(6)
    best = chart.locator("polyline.best").get_attribute("points").split()
    assert best == ["0.0,0.0", "300.0,0.0", "600.0,0.0"], "the last trial has the largest values and the best result"
    rows = page.locator("table", has_text="Importance").first.locator("tbody tr")
    # ranks of learn.lr with ties are 1.5, 1.5, 3.5, 3.5, 5.5, 5.5 beside 1 to 6: ρ = 16 / √(16 · 17.5) = 0.956
    assert rows.first.locator("th, td").all_inner_texts()[0::2] == ["learn.lr", "0.96"]
    expect(rows.first).to_contain_text("rises")
    # means of both values are 0.3 and 0.4, of all 0.35: η² = 6 · 0.05² / (2 · (0.25² + 0.15² + 0.05²)) = 0.086
    assert rows.last.locator("th, td").all_inner_texts()[0::2] == ["method.advantage", "0.29"]
    expect(page.locator("#trials table").last.locator("tbody tr").first).to_contain_text("best")
    is_sound(page)


class Receiver(ThreadingHTTPServer):
    """Keeps the headers and bodies of what was posted to the address that the site may post to."""

    def __init__(self, port):
        self.received = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                receiver.received.append((self.headers["authorization"], body))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                """Stay silent."""

        super().__init__(("127.0.0.1", port), Handler)


@pytest.fixture
def receiver(site):
    with Receiver(site.hook_port) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def test_an_alert_is_set_tested_sent_and_removed(visit, site, name, receiver):
    visitor = visit("otto", viewport=WIDE)
    page = visitor.page
    page.goto("/runs/alerts/")
    expect(page.locator("main")).to_contain_text("You have no alerts yet")
    page.get_by_role("button", name="Set the alert").press("Enter")
    expect(page.locator(".field", has=page.get_by_label("By", exact=True))).to_contain_text("this site sends no email")
    page.get_by_label("By", exact=True).select_option("webhook")
    page.get_by_label("Address").fill("https://elsewhere.example/hook")
    page.get_by_role("button", name="Set the alert").click()
    expect(page.get_by_label("Address")).to_be_focused()
    expect(page.locator(".field", has=page.get_by_label("Address"))).to_contain_text("WEBHOOK_ADDRESSES")
    is_sound(page)
    visitor.forget("400")

    page.get_by_label("Address").fill(f"http://127.0.0.1:{site.hook_port}/hooks/lab")
    page.get_by_role("button", name="Set the alert").click()
    expect(page.get_by_role("status")).to_contain_text("The alert is set")
    page.get_by_text("Secret", exact=True).click()
    secret = page.locator("details code").first.inner_text()
    page.get_by_role("button", name="Send a test").click()
    arrives(page, "sent")
    site.seed("ends", name, "otto")
    arrives(page, name)
    kinds = [json.loads(body)["event"] for _, body in receiver.received]
    assert sorted(kinds) == ["failed", "test"]
    for header, body in receiver.received:
        at, mark = re.fullmatch(r"Parley-HMAC-SHA256 t=(\d+),v=([0-9a-f]{64})", header).groups()
        assert hmac.new(secret.encode(), at.encode() + b"." + body, hashlib.sha256).hexdigest() == mark
    is_sound(page)
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Remove", exact=True).click()
    expect(page.locator("main")).to_contain_text("You have no alerts yet")


def arrives(page, text):
    """Load the page again until the first delivery has this text and is sent."""
    row = page.get_by_role("heading", name="Deliveries").locator("~ div tbody tr").first
    for _ in range(60):
        page.reload()
        shown = row.inner_text()
        if text in shown and "sent" in shown:
            return
        page.wait_for_timeout(500)
    raise AssertionError(shown)


def test_a_report_has_live_charts_and_numbers_that_say_where_they_come_from(visit, site):
    runs = site.seed("seeds")
    # rewards at the last step are 1.0, 1.1 and 1.2
    low, high = stats.t.interval(0.95, 2, loc=1.1, scale=statistics.stdev([1.0, 1.1, 1.2]) / 3**0.5)
    listed = ",".join(map(str, runs))
    visitor = visit("rosa", viewport=WIDE)
    page = visitor.page
    page.goto("/runs/reports/new/")
    page.get_by_label("Title").fill("Do seeds differ?")
    page.get_by_role("textbox", name="Text").fill("# Result")
    page.get_by_role("group", name="Insert into the text").get_by_label("Run").select_option(str(runs[0]))
    page.get_by_label("Metric").select_option("reward")
    page.get_by_role("button", name="Insert a chart").press("Enter")
    page.keyboard.type("It is ")
    page.get_by_role("button", name="Insert the number").press("Enter")
    inserted = f"# Result\n\n```chart\nrun:{runs[0]} reward\n```\n\nIt is {{{{ run:{runs[0]} reward }}}}"
    expect(page.get_by_role("textbox", name="Text")).to_have_value(inserted)
    expect(page.locator("#preview canvas").first).to_be_visible()
    is_sound(page)
    page.get_by_role("textbox", name="Text").fill("# Result\n<script>alert(1)</script> is {{ run:999999 reward }}")
    expect(page.locator("#preview")).to_contain_text("there is no run 999999")
    text = f"# Result\nThe reward is {{{{ run:{listed} reward }}}}, on average.\n\n```chart\n"
    text += " ".join(f"run:{run}" for run in runs) + " reward\n```\n"
    page.get_by_role("textbox", name="Text").fill(text)
    expect(page.locator("#preview canvas").first).to_be_visible()
    is_sound(page)
    page.get_by_role("button", name="Save").press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Do seeds differ?")
    number = page.get_by_role("button", name=re.compile(r"^1\.10 \["))
    assert number.inner_text() == f"1.10 [{low:.2f}, {high:.2f}]"
    expect(page.locator(".report p").first).to_contain_text(f"{high:.2f}], on average.")
    expect(page.locator(".report-chart canvas")).to_have_count(1)
    page.set_viewport_size(SMALL)
    number.press("Enter")
    card = page.locator(".provenance:popover-open")
    expect(card).to_contain_text("3 runs")
    for run in runs:
        expect(card.get_by_role("link", name=f"#{run}")).to_be_visible()
    box = card.bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= SMALL["width"]
    is_sound(page)
    page.keyboard.press("Escape")
    expect(card).to_have_count(0)
    page.get_by_role("button", name="Delete this report…").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Reports")
