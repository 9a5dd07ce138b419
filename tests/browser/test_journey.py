"""The whole cycle in one browser, with the tiny model: data, self-play, checkpoint, game, judgment, data again."""

import re
from uuid import uuid4

import pytest
from playwright.sync_api import Page, expect

from tests.browser.at_table import play_to_the_end
from tests.browser.test_pages import SMALL, WIDE
from tests.webapp.scenarios.files import casino

pytestmark = pytest.mark.slow
NAME = f"cycle-{uuid4().hex[:6]}"
DIALOGUES = 12
STEPS = 3
TRAIN_SECONDS = 240
SERVE_SECONDS = 180
QUICK = {
    "rollout": {"rollout · scenarios": 2, "rollout · games": 2},
    "sampling": {"sampling · max tokens": 32},
    "learn": {"learn · steps": STEPS, "learn · save every": 1, "learn · critic warmup": 1, "learn · threads": 1},
}


def test_from_a_dataset_to_a_dataset(visit, tiny):
    page = visit("rosa", viewport=WIDE).page
    import_conversations(page)
    run = launch_self_play(page)
    watch_it_learn(page, run)
    read_the_run(page, run)
    sit_down_against_its_checkpoint(page)
    match = play_and_rate(page)
    queue_and_annotate(page, match)
    version = export_to_a_dataset(page)
    learn_from_the_export(page, version)


def import_conversations(page: Page) -> None:
    page.goto("/datasets/")
    page.get_by_role("button", name="Import", exact=True).click()
    page.get_by_label("Format").select_option("casino")
    file = {"name": "own.json", "mimeType": "application/json", "buffer": casino(*[keep] * DIALOGUES).encode()}
    page.get_by_label("File").set_input_files(file)
    page.get_by_label("Name").fill(NAME)
    page.get_by_role("button", name="Read it").click()
    expect(page.locator("#import-status")).to_contain_text(
        f"{DIALOGUES} scenarios and {DIALOGUES} conversations were read"
    )
    page.get_by_role("button", name="Store it").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(f"{NAME} v1")


def keep(dialogue: dict[str, object]) -> None:
    """Every dialogue of the file stays as it is."""


def launch_self_play(page: Page) -> str:
    """Start an OMAR run on the dataset with the tiny model; returns the run's address."""
    page.goto("/runs/")
    page.get_by_role("button", name="New run").click()
    page.get_by_role("link").filter(has=page.get_by_text("Quick trial", exact=True)).click()
    page.get_by_label("Name", exact=True).fill(f"{NAME} run")
    choose(page, "Dataset", f"{NAME} v1")
    choose(page, "Model", "tiny")
    for section, fields in QUICK.items():
        folded = page.locator("details", has=page.locator("summary", has_text=re.compile(rf"^\s*{section}\b")))
        if folded.get_attribute("open") is None:
            folded.locator("summary").click()
        for label, value in fields.items():
            folded.get_by_label(label, exact=True).fill(str(value))
    page.get_by_role("button", name="Start the run").first.click()
    page.wait_for_url(re.compile(r"/runs/\d+/$"))
    return page.url


def choose(page: Page, label: str, option: str) -> None:
    """Choose the option of a list that begins with a text."""
    box = page.get_by_label(label, exact=True)
    offered = box.locator("option", has_text=re.compile(rf"^\s*{re.escape(option)}")).first
    expect(offered).to_be_attached()  # a page that is still loading has no options
    box.select_option(label=offered.inner_text())


def watch_it_learn(page: Page, run: str) -> None:
    """State, step and curves are updated; text that was entered into the page stays."""
    page.evaluate("window.stayed = true")
    header = page.locator("#run-header")
    expect(header).to_contain_text(re.compile("queued|starting|running"))
    expect(header.locator(".state")).to_have_text("running", timeout=TRAIN_SECONDS * 1000)
    expect(page.locator("#curves canvas").first).to_be_visible(timeout=TRAIN_SECONDS * 1000)
    expect(header.locator(".state")).to_have_text("succeeded", timeout=TRAIN_SECONDS * 1000)
    expect(header).to_contain_text(f"{STEPS} / {STEPS}")
    expect(page.locator(".curve h4", has_text=re.compile("reward", re.IGNORECASE)).first).to_be_visible()
    assert page.evaluate("window.stayed") is True
    assert page.url == run


def read_the_run(page: Page, run: str) -> None:
    """Every tab of a real run, down to the tokens of a conversation, also on a small screen."""
    tabs = ["Conversations", "Evaluation", "Log", "Configuration", "Lineage", "Curves"]
    for tab in tabs:
        page.get_by_role("navigation", name="This run").get_by_role("link", name=tab).click()
        expect(page.get_by_role("navigation", name="This run").locator("a[aria-current]")).to_have_text(tab)
        fits(page)
    page.goto(f"{run}conversations/")
    page.locator("td a[href*='/conversations/']").first.click()
    expect(page.locator("ol.dialogue .turn").first).to_be_visible()
    fits(page)
    page.get_by_role("button", name="Tokens", exact=True).click()
    sampled = page.locator(".tk:not(.masked)[title]")
    expect(sampled.first).to_be_visible()
    assert re.search(r"-?\d", str(sampled.first.get_attribute("title")))
    assert page.locator(".tk.masked").count() > 0
    fits(page)


def fits(page: Page) -> None:
    """No sideways scroll, wide and small."""
    for size in (SMALL, WIDE):
        page.set_viewport_size(size)
        page.wait_for_function("() => document.scrollingElement.scrollWidth <= innerWidth", timeout=5000)


def sit_down_against_its_checkpoint(page: Page) -> None:
    page.goto(f"/checkpoints/?q={NAME}")
    page.locator("tbody tr", has_text=f"{NAME} run").first.get_by_role("rowheader").get_by_role("link").click()
    expect(page.get_by_text(f"{NAME} v1")).to_be_visible()
    page.get_by_role("button", name="Play against it").click()
    choose(page, "Scenario", f"{NAME} v1")
    expect(page.get_by_label("Seat 2").locator("option:checked")).to_contain_text("Model:")
    page.get_by_text("The table:").click()
    page.get_by_label("Seconds for a move").fill("300")
    expect(page.get_by_text("used to train models", exact=False)).to_be_visible()
    page.get_by_role("button", name="Yes: start the game").click()
    page.wait_for_url(re.compile(r"/play/\d+/$"))


def play_and_rate(page: Page) -> str:
    """Play over the socket until the game is over, rate the other seat and see who it was; returns the match number."""
    match = page.url.rstrip("/").rsplit("/", 1)[1]
    play_to_the_end(page, "I need food most, and you?", SERVE_SECONDS)
    page.get_by_role("button", name="Rate it, and see who they were").click()
    page.locator("form.judging summary").click()
    fill_scales(page)
    page.get_by_role("button", name="Save, and see what they thought").click()
    expect(page.locator(".reveals")).to_contain_text("step")
    return match


def fill_scales(page: Page) -> None:
    """Choose a value in every row of the rating form."""
    rows = page.locator("fieldset.question-row:visible")
    assert rows.count() >= 5
    for number in range(rows.count()):
        rows.nth(number).locator("input[type=radio]").nth(1).check()


def queue_and_annotate(page: Page, match: str) -> None:
    page.goto("/judgments/")
    page.get_by_role("button", name="New queue").click()
    page.get_by_label("Name", exact=True).fill(f"{NAME} queue")
    choose(page, "Codebook", "fine-grained")
    page.get_by_label("Matches", exact=True).select_option(match)
    page.get_by_label("Annotators", exact=True).select_option(label="rosa")
    page.get_by_role("button", name="Create the queue").click()
    expect(page.locator("#progress")).to_contain_text("0 of 2 scored")
    page.goto("/judgments/")
    page.get_by_role("listitem").filter(has_text=f"{NAME} queue").get_by_role("link", name="Judge: 2 left").click()
    for done in range(2):
        expect(page.get_by_text(f"{done} of 2 done")).to_be_visible()
        expect(page.locator("ol.talk:visible")).to_contain_text("I need food most")
        fill_scales(page)
        page.get_by_role("button", name="Save and next").click()
    expect(page.get_by_text("Nothing is left for you to judge")).to_be_visible()


def export_to_a_dataset(page: Page) -> str:
    """Export the judged game; returns the version's name as the forms show it."""
    page.goto("/judgments/")
    page.get_by_role("link", name=f"{NAME} queue").last.click()
    expect(page.locator("#progress")).to_contain_text("2 of 2 scored")
    page.get_by_label("Name", exact=True).fill(f"{NAME}-judged")
    page.get_by_role("button", name="Export").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(f"{NAME}-judged v1")
    expect(page.locator("#main dl.facts")).to_contain_text("1 scenario, 1 conversation")
    page.locator("#scenarios a").first.click()
    expect(page.locator("main")).to_contain_text("I need food most")
    expect(page.locator("main")).to_contain_text("judgments")
    return f"{NAME}-judged v1"


def learn_from_the_export(page: Page, version: str) -> None:
    """A cold start on the exported game: one update, one checkpoint."""
    page.goto("/runs/new/?preset=sft")
    page.get_by_label("Name", exact=True).fill(f"{NAME} cold start")
    choose(page, "Dataset", version)
    choose(page, "Model", "tiny")
    page.get_by_label("Weights").select_option("all")
    page.get_by_role("button", name="Start the run").first.click()
    page.wait_for_url(re.compile(r"/runs/\d+/$"))
    expect(page.locator("#run-header .state")).to_have_text("succeeded", timeout=TRAIN_SECONDS * 1000)
    page.get_by_role("link", name="Lineage").click()
    expect(page.locator("main")).to_contain_text(version)
    expect(page.locator("main a[href^='/checkpoints/']").last).to_be_visible()
